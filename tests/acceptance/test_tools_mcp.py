"""The tool-integration service: tools, the Model Context Protocol, and administration."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.http import Api, Reply
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import META, TOOL
from tests.acceptance.shapes import assert_fits, assert_platform_error, count, moment, uuid_text
from tests.acceptance.stage import Customer, Line, NewCustomer, mobile
from tests.support.server_process import ServerProcess

ROOT = "/integrations"
ADMIN = f"{ROOT}/admin"
BUILT_IN = {"place_call", "call_status", "hang_up", "send_otp", "send_message", "wallet_balance"}
FIND_ORDER = {
    "name": "find_order",
    "description": "Tells what has become of an order.",
    "input_schema": {
        "type": "object",
        "properties": {"number": {"type": "string"}},
        "required": ["number"],
        "additionalProperties": False,
    },
}


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer with the tools of one test alone."""
    return new_customer()


@pytest.fixture
async def app(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for an app key."""
    return Api(session, server.url, customer.key_of("tools"))


@pytest.fixture
async def admin(app: Api, customer: Customer) -> Api:
    """The API for the admin token."""
    return app.with_key(customer.key_of("admin"))


async def execute(app: Api, name: str, **arguments: Any) -> Reply:
    """Execute a tool."""
    return await app.post(f"{ROOT}/v1/tools/{name}/execute", {"arguments": arguments})


async def test_the_information_document_and_health_need_no_key(app: Api) -> None:
    nobody = app.with_key(None)
    found = (await nobody.get(ROOT)).expect(200)
    document = found.body if "service" in found.body else found.data
    assert_fits(document, {"docs": str, "endpoints": (dict, list), "service": str, "version": str})
    assert (await nobody.get(f"{ROOT}/health")).expect(200).body


async def test_tools_are_listed(app: Api) -> None:
    listed = (await app.get(f"{ROOT}/v1/tools")).expect(200)
    assert_fits(listed.body, {"data": [TOOL]})
    assert {tool["name"] for tool in listed.data} >= BUILT_IN
    for tool in listed.data:
        assert tool["description"] and tool["input_schema"]["type"] == "object"


async def test_a_tool_is_executed(app: Api, line: Line) -> None:
    reply = (await execute(app, "place_call", to=mobile(), message="Your table is ready.")).expect(200)
    wanted = {"tool": "place_call", "duration_ms": count, "result": {"call_sid": uuid_text, "to": mobile()}}
    assert_fits(reply.body, {"data": wanted, "meta": META})
    rung = await (await line.phone.rings(mobile())).until_answered()
    assert rung.shown == line.number
    sid = reply.data["result"]["call_sid"]
    state = (await execute(app, "call_status", call_sid=sid)).expect(200).data["result"]
    assert state["status"] == "in-progress"
    (await execute(app, "hang_up", call_sid=sid)).expect(200)
    await rung.until_ended()
    again = await execute(app, "hang_up", call_sid=sid)
    assert again.status in (200, 409)


async def test_tools_that_cannot_be_executed(app: Api) -> None:
    assert_platform_error(await execute(app, "fly"), 404, "NOT_FOUND")
    reply = await execute(app, "place_call", message="Hello")
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "arguments.to")
    wrong = await app.post(f"{ROOT}/v1/tools/wallet_balance/execute", {"arguments": 7})
    assert_platform_error(wrong, 400, "VALIDATION_ERROR", "arguments")


async def test_keys_of_tools_and_of_their_administration(app: Api, admin: Api) -> None:
    rows = (
        *(("GET", f"{ROOT}/v1/tools"), ("POST", f"{ROOT}/v1/tools/wallet_balance/execute")),
        *(("POST", f"{ROOT}/mcp"), ("GET", f"{ADMIN}/tools"), ("POST", f"{ADMIN}/tools")),
        *(("GET", f"{ADMIN}/keys"), ("GET", f"{ADMIN}/usage"), ("POST", f"{ADMIN}/keys")),
    )
    for method, path in rows:
        for key in (None, "vt_unknown"):
            reply = await app.with_key(key).request(method, path, {} if method == "POST" else None)
            assert_platform_error(reply, 401, "UNAUTHORIZED")
    assert_platform_error(await app.get(f"{ADMIN}/tools"), 403, "FORBIDDEN")
    assert_platform_error(await admin.get(f"{ROOT}/v1/tools"), 403, "FORBIDDEN")


async def test_an_unknown_path_of_the_administration_needs_the_token_too(app: Api) -> None:
    for method in ("GET", "POST"):
        reply = await app.with_key(None).request(method, f"{ADMIN}/unknown")
        assert_platform_error(reply, 401, "UNAUTHORIZED")


async def test_a_tool_of_ones_own_is_managed_and_executed(app: Api, admin: Api, receiver: Receiver) -> None:
    receiver.answers["/find"] = lambda asked: {"state": "sent", "number": asked.json["number"]}
    body = {**FIND_ORDER, "url": receiver.url("/find")}
    reply = (await admin.post(f"{ADMIN}/tools", body)).expect(201)
    assert_fits(reply.body, {"data": {**TOOL, "name": "find_order", "secret": str}})
    done = (await execute(app, "find_order", number="A-1042")).expect(200)
    assert done.data["result"] == {"state": "sent", "number": "A-1042"}
    assert_signed(await receiver.request_to("/find"), reply.data["secret"])
    refused = await execute(app, "find_order", order="A-1042")
    assert_platform_error(refused, 400, "VALIDATION_ERROR")

    path = f"{ADMIN}/tools/find_order"
    shown = (await admin.get(path)).expect(200).data
    assert shown["is_enabled"] is True and "secret" not in shown
    changed = (await admin.post(path, {"title": "Find an order"})).expect(200).data
    assert changed["title"] == "Find an order"
    (await admin.post(f"{path}/disable")).expect(200)
    assert_platform_error(await execute(app, "find_order", number="1"), 409, "CONFLICT")
    listed = (await app.get(f"{ROOT}/v1/tools")).expect(200).data
    assert "find_order" not in [tool["name"] for tool in listed]
    (await admin.post(f"{path}/enable")).expect(200)
    receiver.answers["/find"] = lambda _: 500
    assert_platform_error(await execute(app, "find_order", number="1"), 502, "TOOL_FAILED")
    (await admin.post(f"{path}/delete")).expect(204)
    assert_platform_error(await admin.get(path), 404, "NOT_FOUND")
    assert_platform_error(await admin.post(f"{ADMIN}/tools", {}), 400, "VALIDATION_ERROR")


async def test_app_keys_are_managed_and_their_usage_is_counted(app: Api, admin: Api) -> None:
    body = {"name": "Front desk", "tools": ["wallet_balance"]}
    made = (await admin.post(f"{ADMIN}/keys", body)).expect(201).data
    assert_fits(made, {"id": uuid_text, **body, "key": str, "created_at": moment})
    limited = app.with_key(made["key"])
    listed = (await limited.get(f"{ROOT}/v1/tools")).expect(200).data
    assert [tool["name"] for tool in listed] == ["wallet_balance"]
    balance = (await execute(limited, "wallet_balance")).expect(200).data["result"]
    assert 1000 in balance.values(), balance
    assert_platform_error(await execute(limited, "place_call", to=mobile()), 404, "NOT_FOUND")
    keys = (await admin.get(f"{ADMIN}/keys")).expect(200).data
    assert made["id"] in [key["id"] for key in keys] and "key" not in keys[0]
    used = await admin.until(f"{ADMIN}/usage", lambda found: found["calls"] == 1)
    assert (used["rows"][0]["tool"], used["rows"][0]["key_id"]) == ("wallet_balance", made["id"])
    (await admin.post(f"{ADMIN}/keys/{made['id']}/revoke")).expect(200)
    assert_platform_error(await limited.get(f"{ROOT}/v1/tools"), 401, "UNAUTHORIZED")


class Mcp:
    """A client of the protocol over streamable HTTP, in its session version."""

    def __init__(self, app: Api) -> None:
        self._app = app
        self._headers = {"Accept": "application/json, text/event-stream"}
        self._id = 0

    async def start(self) -> Any:
        """Open a session."""
        client = {"name": "acceptance", "version": "1"}
        parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        reply = await self._send({"method": "initialize", "params": parameters, "id": 0})
        self._headers["Mcp-Session-Id"] = reply.headers["Mcp-Session-Id"]
        await self._send({"method": "notifications/initialized"}, status=202)
        return message(reply)["result"]

    async def ask(self, method: str, **parameters: Any) -> Any:
        """Send a request, and return the message with its response."""
        self._id += 1
        found = message(await self._send({"method": method, "params": parameters, "id": self._id}))
        assert found["id"] == self._id
        return found

    async def _send(self, body: dict[str, Any], status: int = 200) -> Reply:
        reply = await self._app.request(
            "POST", f"{ROOT}/mcp", {"jsonrpc": "2.0", **body}, headers=self._headers
        )
        return reply.expect(status)


def message(reply: Reply) -> Any:
    """The message in a response: JSON, or the last event of a stream."""
    if reply.headers["Content-Type"].startswith("application/json"):
        return reply.body
    events = [line for line in reply.content.decode().splitlines() if line.startswith("data:")]
    return json.loads(events[-1].removeprefix("data:"))


async def test_tools_are_used_over_the_model_context_protocol(app: Api, line: Line) -> None:
    mcp = Mcp(app)
    opened = await mcp.start()
    assert_fits(opened, {"protocolVersion": "2025-06-18", "serverInfo": {"name": str, "version": str}})
    assert "tools" in opened["capabilities"]
    listed = (await mcp.ask("tools/list"))["result"]["tools"]
    assert_fits(listed, [{"name": str, "description": str, "inputSchema": dict}])
    assert {tool["name"] for tool in listed} >= BUILT_IN
    called = {"name": "place_call", "arguments": {"to": mobile(), "message": "Hello."}}
    done = (await mcp.ask("tools/call", **called))["result"]
    assert not done.get("isError")
    assert_fits(done["structuredContent"], {"call_sid": uuid_text, "to": mobile()})
    await (await (await line.phone.rings(mobile())).until_answered()).hang_up()
    refused = (await mcp.ask("tools/call", name="place_call", arguments={}))["result"]
    assert refused["isError"] is True
    assert "VALIDATION_ERROR" in refused["content"][0]["text"]
    assert (await mcp.ask("tools/call", name="fly", arguments={}))["error"]["code"] == -32602
    assert (await mcp.ask("ping"))["result"] == {}
