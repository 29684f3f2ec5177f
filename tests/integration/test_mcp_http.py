"""The Model Context Protocol's endpoint, as HTTP has it: refusals, whose a session is, how streams end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from api.http.body import MAX_BODY_BYTES
from api.mcp import asgi, gateway, sessions
from api.process.lifecycle import Phase
from tests.support.api_facts import ACCOUNT, KEY, TOOLS_KEY
from tests.support.api_stage import asked
from tests.support.mcp_stage import OTHER_KEY, PATH, McpStage, mcp_stage, tool
from tests.support.phone import PATIENCE_S
from tests.support.waiting import look_again, until

BOTH = "application/json, text/event-stream"
VERSION = "2025-11-25"
MODERN = "2026-07-28"


@dataclass
class Raw:
    """A client that says just what it is told."""

    stage: McpStage
    http: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)

    async def send(
        self, method: str = "POST", body: Any = None, *, raw: bytes | None = None, **headers: str | None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, the message answered or the body as text, and the headers."""
        lines = {"Accept": BOTH, "Authorization": f"Bearer {TOOLS_KEY}", **self.headers}
        if method == "POST":
            lines["Content-Type"] = "application/json"
        for name, value in headers.items():
            lines.pop(name.replace("_", "-"), None)
            if value is not None:
                lines[name.replace("_", "-")] = value
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        # Else the library says that it takes anything.
        skipped = {"Accept"} if lines.get("Accept") is None else set()
        async with self.http.request(
            method, self.stage.url + PATH, data=data, headers=lines, skip_auto_headers=skipped
        ) as answer:
            return answer.status, _message(answer.content_type, await answer.text()), answer.headers

    async def open(self, key: str = TOOLS_KEY) -> str:
        """Open a session; its name."""
        status, message, headers = await self.send(body=initialize(), Authorization=f"Bearer {key}")
        assert status == 200 and message["result"]["protocolVersion"] == VERSION, message
        name = headers["Mcp-Session-Id"]
        status, _, _ = await self.send(
            body={"jsonrpc": "2.0", "method": "notifications/initialized"},
            Authorization=f"Bearer {key}",
            Mcp_Session_Id=name,
        )
        assert status == 202
        return name

    @asynccontextmanager
    async def stream(self, session: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The stream on which the server speaks first."""
        lines = {"Accept": BOTH, "Authorization": f"Bearer {TOOLS_KEY}", "Mcp-Session-Id": session}
        async with self.http.get(self.stage.url + PATH, headers=lines) as answer:
            yield answer


def initialize(version: str = VERSION) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def ask(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def call(name: str) -> dict[str, Any]:
    return ask("tools/call", name=name, arguments={})


def _message(kind: str, text: str) -> Any:
    if kind == "text/event-stream":
        (text,) = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return json.loads(text) if kind != "text/plain" and text else text


@pytest.fixture
async def raw() -> AsyncIterator[Raw]:
    async with mcp_stage() as stage, aiohttp.ClientSession() as http:
        yield Raw(stage, http)


def code_of(message: Any) -> Any:
    return message["error"]["code"]


@pytest.mark.parametrize(
    ("version", "agreed"), [("2024-11-05", "2024-11-05"), (VERSION, VERSION), ("1999-01-01", VERSION)]
)
async def test_a_version_is_agreed_on(raw: Raw, version: str, agreed: str) -> None:
    status, message, headers = await raw.send(body=initialize(version))
    assert (status, message["result"]["protocolVersion"]) == (200, agreed)
    assert headers["Mcp-Session-Id"] and headers["X-Request-Id"] and headers["X-RateLimit-Limit"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Server"] == "Trunkline"


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_an_unknown_version_is_refused_in_a_session_and_outside(raw: Raw, method: str) -> None:
    session = await raw.open()
    for name in (session, None):
        status, message, _ = await raw.send(
            method,
            ask("tools/list") if method == "POST" else None,
            MCP_Protocol_Version="2099-01-01",
            Mcp_Session_Id=name,
        )
        assert (status, code_of(message)) == (400, -32022)
        assert message["id"] == (7 if method == "POST" else None)
        assert message["error"]["data"]["requested"] == "2099-01-01"
        assert {VERSION, MODERN} <= set(message["error"]["data"]["supported"])
    assert (await raw.send(body=ask("tools/list"), Mcp_Session_Id=session))[0] == 200, "it goes on"


async def test_who_has_no_key_learns_nothing(raw: Raw) -> None:
    session = await raw.open()
    for method in ("POST", "GET", "DELETE"):
        for line in (None, "Bearer vt_short", f"Basic {TOOLS_KEY}", f"Bearer {TOOLS_KEY[:-1]}x"):
            status, message, headers = await raw.send(method, Authorization=line, Mcp_Session_Id=session)
            assert (status, code_of(message)) == (401, "UNAUTHORIZED")
            assert headers["WWW-Authenticate"].startswith("Bearer")
        status, message, _ = await raw.send(method, Authorization=f"Bearer {KEY}")
        assert (status, code_of(message)) == (403, "FORBIDDEN")


async def test_a_session_is_its_keys_alone_until_it_ends(raw: Raw) -> None:
    session = await raw.open()
    other = await raw.open(OTHER_KEY)
    for name in (other, "no-such-session"):
        for method in ("POST", "GET", "DELETE"):
            status, message, _ = await raw.send(method, ask("ping"), Mcp_Session_Id=name)
            assert (status, code_of(message)) == (404, "NOT_FOUND")
    status, message, _ = await raw.send(body=ask("ping"), Mcp_Session_Id=session)
    assert (status, message["result"]) == (200, {})
    assert (await raw.send("DELETE", Mcp_Session_Id=session))[0] == 200
    for method in ("POST", "GET", "DELETE"):
        assert (await raw.send(method, ask("ping"), Mcp_Session_Id=session))[0] == 404
    own: dict[str, Any] = {"Authorization": f"Bearer {OTHER_KEY}", "Mcp_Session_Id": other}
    assert (await raw.send(body=ask("ping"), **own))[0] == 200


async def test_what_belongs_to_a_session_has_to_name_it(raw: Raw) -> None:
    for method in ("GET", "DELETE"):
        status, message, _ = await raw.send(method)
        assert (status, code_of(message)) == (400, "VALIDATION_ERROR")
        assert message["error"]["details"]["errors"][0]["field"] == "Mcp-Session-Id"
    status, message, _ = await raw.send(body=ask("tools/list"))
    assert status == 400 and code_of(message) == -32600
    assert len(raw.stage.gateway.sessions) == 0, "what opens no session leaves none"


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({}, "protocolVersion, capabilities, clientInfo"),
        (
            {"protocolVersion": VERSION, "capabilities": [], "clientInfo": {"name": 7}},
            "capabilities, clientInfo",
        ),
    ],
)
async def test_a_refused_initialize_opens_no_session(raw: Raw, params: Mapping[str, Any], named: str) -> None:
    status, message, headers = await raw.send(body=initialize() | {"params": params})
    assert (status, code_of(message), message["id"]) == (400, -32602, 0)
    assert message["error"]["message"].endswith(f": {named}.")
    assert "Mcp-Session-Id" not in headers and len(raw.stage.gateway.sessions) == 0


async def test_a_page_of_another_site_is_refused(raw: Raw) -> None:
    for origin in ("http://evil.example", "null", raw.stage.url + "0", "https" + raw.stage.url[4:]):
        status, message, _ = await raw.send(body=initialize(), Origin=origin)
        assert (status, code_of(message)) == (403, "FORBIDDEN")
    assert (await raw.send(body=initialize(), Origin=raw.stage.url))[0] == 200


@pytest.mark.parametrize("version", [VERSION, MODERN])
async def test_garbage_is_refused_and_harms_nobody(raw: Raw, version: str) -> None:
    session = await raw.open()
    own: dict[str, Any] = {
        "MCP_Protocol_Version": version,
        "Mcp_Session_Id": session if version == VERSION else None,
    }
    for body in (b"", b" \n"):
        status, message, _ = await raw.send(raw=body, **own)
        assert (status, code_of(message)) == (400, "VALIDATION_ERROR")
    for body in (
        b"{",
        b"[" * 100_000,
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"jsonrpc": "1.0"}',
        b"7",
    ):
        status, message, _ = await raw.send(raw=body, **own)
        assert status == 400 and code_of(message) < 0, (body[:20], message)
    batch = json.dumps([ask("ping"), ask("ping")]).encode()
    assert (await raw.send(raw=batch, **own))[0] == 400
    for kind in ("text/plain", "application/xml", "application/json-seq"):
        status, message, _ = await raw.send(body=ask("ping"), Content_Type=kind, **own)
        assert (status, code_of(message)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    status, message, _ = await raw.send(raw=b" " * (MAX_BODY_BYTES + 1), **own)
    assert (status, code_of(message)) == (413, "PAYLOAD_TOO_LARGE")
    status, message, _ = await raw.send("PUT", ask("ping"), **own)
    assert (status, code_of(message)) == (405, "METHOD_NOT_ALLOWED")
    for accept in ("application/json", "text/event-stream", "image/png"):
        assert (await raw.send(body=ask("ping"), Accept=accept, **own))[0] == 406
    status, message, _ = await raw.send(body=ask("ping"), Mcp_Session_Id=session, Accept=None)
    assert status == 200, "who does not say what it takes, takes anything"


@pytest.mark.parametrize("version", [None, MODERN])
@pytest.mark.parametrize("body", [[], {"x": 1}, 7], ids=repr)
async def test_what_is_no_message_is_refused_in_plain_words(raw: Raw, body: Any, version: str | None) -> None:
    status, message, _ = await raw.send(body=body, MCP_Protocol_Version=version)
    assert status == 400
    said = message["error"]["message"]
    assert "JSON-RPC" in said and len(said) < 100
    assert "pydantic" not in said and "http" not in said


@pytest.mark.parametrize("version", [VERSION, MODERN])
async def test_what_is_no_request_notification_or_response_is_an_invalid_request(
    raw: Raw, version: str
) -> None:
    session = await raw.open()
    own: dict[str, Any] = {
        "MCP_Protocol_Version": version,
        "Mcp_Session_Id": session if version == VERSION else None,
    }
    envelope = {"jsonrpc": "2.0", "id": 7}
    ids: tuple[Any, ...] = (None, 1.5, True, [], {})
    for body, code, named in (
        *((ask("ping") | {"id": wrong}, -32600, None) for wrong in ids),
        ({"jsonrpc": "2.0", "id": None, "method": "notifications/initialized"}, -32600, None),
        (envelope | {"method": 7}, -32600, 7),
        (envelope | {"method": None}, -32600, 7),
        (ask("ping") | {"jsonrpc": "1.0"}, -32600, 7),
        ({"id": 7, "method": "ping"}, -32600, 7),
        (envelope, -32600, 7),
        (envelope | {"result": []}, -32600, 7),
        (envelope | {"error": {"code": "x", "message": "y"}}, -32600, 7),
        (envelope | {"result": {}, "error": {"code": 1, "message": "y"}}, -32600, 7),
        ({"jsonrpc": "2.0", "id": None, "result": {}}, -32600, None),
        ({"jsonrpc": "2.0", "result": {}}, -32600, None),
        ([], -32600, None),
        ([ask("ping")], -32600, None),
        (7, -32600, None),
        (envelope | {"method": "ping", "params": []}, -32602, 7),
    ):
        status, message, _ = await raw.send(body=body, **own)
        assert (status, code_of(message), message["id"]) == (400, code, named), (body, message)
        assert len(message["error"]["message"]) < 100
    status, message, _ = await raw.send(raw=b'{"jsonrpc": "2.0",', **own)
    assert (status, code_of(message), message["id"]) == (400, -32700, None)


async def test_messages_that_say_what_is_not_understood(raw: Raw) -> None:
    session = await raw.open()
    for body, code in (
        (ask("tools/dance"), -32601),
        (ask("resources/list"), -32601),
        (ask("tools/call"), -32602),
        (ask("tools/call", name=7), -32602),
        (ask("tools/call", name="x", arguments=[]), -32602),
        (ask("tools/call", name="nothing"), -32602),
        (ask("tools/list", cursor=7), -32602),
    ):
        status, message, _ = await raw.send(body=body, Mcp_Session_Id=session)
        assert (status, code_of(message)) == (200, code), (body, message)
        assert message["id"] == 7
    for body in (
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/unheard_of"},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "result": {}, "error": None},
        {"jsonrpc": "2.0", "id": 99, "result": None, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "?"}},
    ):
        assert (await raw.send(body=body, Mcp_Session_Id=session))[0] == 202
    status, message, _ = await raw.send(body=ask("ping"), MCP_Protocol_Version="1999-01-01")
    assert status == 400 and code_of(message) < 0


async def test_a_session_has_one_stream_which_can_be_opened_again(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who comes back is not held up by a stream whose end nobody has looked for yet.
    monkeypatch.setattr(asgi, "_LOOK_AT_STREAM_EVERY_S", 3600.0)
    session = await raw.open()
    async with raw.stream(session) as first:
        assert (first.status, first.content_type) == (200, "text/event-stream")
        assert first.headers["X-Request-Id"] and first.headers["Server"] == "Trunkline"
        async with raw.stream(session) as second:
            assert second.status == 409
        first.close()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with raw.stream(session) as again:
                if again.status == 200:
                    break
            await look_again()


async def test_a_stream_ends_with_its_key(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "_LOOK_AT_STREAM_EVERY_S", 0.05)
    monkeypatch.setattr(asgi, "_ADMIT_EVERY_S", 0.1)
    session = await raw.open()
    async with raw.stream(session) as stream:
        keys = raw.stage.api.storage.keys
        admitted = asked(keys, "authenticate")
        await until(lambda: len(admitted) >= 2)
        async with asyncio.timeout(PATIENCE_S):
            assert not stream.content.at_eof()
            await keys.revoke(ACCOUNT, f"key-{TOOLS_KEY}")
            await stream.read()


async def test_streams_end_with_the_server(raw: Raw) -> None:
    session = await raw.open()
    async with raw.stream(session) as stream:
        await asyncio.wait_for(raw.stage.gateway.close(), PATIENCE_S)
        await asyncio.wait_for(stream.read(), PATIENCE_S)
    status, message, headers = await raw.send(body=initialize())
    assert (status, code_of(message)) == (503, "SERVICE_UNAVAILABLE") and headers["Retry-After"]


async def test_a_server_that_drains_opens_no_sessions(raw: Raw) -> None:
    raw.stage.api.lifecycle.phase = Phase.LEAVING
    session = await raw.open()
    raw.stage.api.lifecycle.phase = Phase.DRAINING
    assert (await raw.send(body=initialize()))[0] == 503
    assert (await raw.send(body=ask("ping"), Mcp_Session_Id=session))[0] == 200


async def test_a_call_goes_on_when_its_client_has_gone(raw: Raw) -> None:
    """As the protocol wants it of sessions: who wants a call cancelled says so."""
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def use(_: Mapping[str, Any]) -> str:
        began.set()
        await may_end.wait()
        ended.set()
        return "done"

    raw.stage.tools.add(tool("slow"), use)
    session = await raw.open()
    calling = asyncio.create_task(raw.send(body=call("slow"), Mcp_Session_Id=session))
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    calling.cancel()
    await asyncio.wait({calling})
    assert (await raw.send(body=ask("ping") | {"id": 8}, Mcp_Session_Id=session))[0] == 200
    may_end.set()
    await asyncio.wait_for(ended.wait(), PATIENCE_S)


async def test_a_session_that_ends_cancels_its_calls(raw: Raw) -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def use(_: Mapping[str, Any]) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    raw.stage.tools.add(tool("endless"), use)
    session = await raw.open()
    calling = asyncio.create_task(raw.send(body=call("endless"), Mcp_Session_Id=session))
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    assert (await raw.send("DELETE", Mcp_Session_Id=session))[0] == 200
    await asyncio.wait_for(cancelled.wait(), PATIENCE_S)
    await asyncio.wait({calling})


async def test_more_sessions_than_an_account_may_have(raw: Raw) -> None:
    first = await raw.open()
    second = await raw.open()
    async with raw.stream(first):
        for _ in range(sessions.MAX_SESSIONS_OF_ACCOUNT):
            assert (await raw.send(body=initialize()))[0] == 200
        assert len(raw.stage.gateway.sessions) == sessions.MAX_SESSIONS_OF_ACCOUNT
        # The one in use stays, whatever its age.
        assert (await raw.send(body=ask("ping"), Mcp_Session_Id=first))[0] == 200
        assert (await raw.send(body=ask("ping"), Mcp_Session_Id=second))[0] == 404


async def test_more_requests_than_an_account_may_have_under_way(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "MAX_POSTS_OF_ACCOUNT", 1)
    began, may_end = asyncio.Event(), asyncio.Event()

    async def use(_: Mapping[str, Any]) -> str:
        began.set()
        await may_end.wait()
        return "done"

    raw.stage.tools.add(tool("long"), use)
    session = await raw.open()
    calling = asyncio.create_task(raw.send(body=call("long"), Mcp_Session_Id=session))
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    status, body, headers = await raw.send(body=ask("ping"), Mcp_Session_Id=session)
    assert (status, body["error"]["code"], headers["Retry-After"]) == (429, "RATE_LIMITED", "1")
    may_end.set()
    assert (await calling)[0] == 200
    assert (await raw.send(body=ask("ping"), Mcp_Session_Id=session))[0] == 200
