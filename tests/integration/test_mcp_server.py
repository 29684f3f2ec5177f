"""The official client of the Model Context Protocol with a real server, its tools and its telephone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import pytest
from aiohttp import web
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.support.mcp_stage import PATH, http_client, session_at
from tests.support.phone import PATIENCE_S
from tests.support.server_process import ServerProcess
from tests.support.waiting import look_again

ECHO = "+919800000001"
_SCHEMA = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}

pytestmark = [pytest.mark.timeout(180), pytest.mark.real_time(reason="a server in a process of its own")]


@dataclass
class Running:
    """A server, and keys of its demo account."""

    server: ServerProcess
    key: str
    admin: str
    platform: str

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """The official client, which asks for the newest version of the protocol."""
        async with http_client(self.key) as http:
            transport = streamable_http_client(self.server.url + PATH, http_client=http)
            async with Client(transport) as client:
                yield client

    def register(self, name: str, url: str) -> None:
        """Register a tool of the account."""
        body = {"name": name, "description": "Finds an order.", "url": url, "input_schema": _SCHEMA}
        reply = self.server.request("POST", "/integrations/admin/tools", self.admin, body)
        assert reply.status == 201, reply


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    environment = {
        "TRUNKLINE_SANDBOX_CARRIER": "1",
        "TRUNKLINE_SANDBOX_LISTEN": "udp:127.0.0.1:0",
        "TRUNKLINE_DRAIN_S": "1",
    }
    server = ServerProcess(tmp_path_factory.mktemp("mcp"), environment=environment)
    server.start()
    try:
        server.first_key()  # Waits for the greeting.
        (line,) = [line for line in server.log().splitlines() if "demo account" in line]
        account = line.split()[2].rstrip(",")

        def key_of(service: str) -> str:
            return str(server.command("keys", "create", "--account", account, "--service", service)["key"])

        yield Running(server, key_of("tools"), key_of("admin"), key_of("platform"))
    finally:
        server.stop()
    assert "Traceback" not in server.log(), server.log()


@asynccontextmanager
async def shop() -> AsyncIterator[str]:
    """The server that a tool of the account asks."""

    async def find(request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response({"state": "packed", "number": asked["number"]})

    app = web.Application()
    app.router.add_post("/find", find)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/find"
    finally:
        await runner.cleanup()


async def test_built_in_tools_place_a_call(running: Running) -> None:
    async with running.client() as client:
        assert client.session.protocol_version == "2026-07-28"
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"place_call", "call_status", "hang_up", "send_otp", "wallet_balance"} <= names
        placed = await client.call_tool("place_call", {"to": ECHO, "message": "Hello."})
        assert not placed.is_error and placed.structured_content["to"] == ECHO, placed
        named = {"call_sid": placed.structured_content["call_sid"]}
        status = None
        async with asyncio.timeout(PATIENCE_S):
            while status != "completed":
                await look_again()
                status = (await client.call_tool("call_status", named)).structured_content["status"]
        over = await client.call_tool("hang_up", named)
        assert over.is_error and over.structured_content["error"]["code"] == "CALL_ENDED"
        wallet = await client.call_tool("wallet_balance")
        assert wallet.structured_content["currency"] == "INR"


async def test_what_is_wrong_with_arguments_is_told_to_the_model(running: Running) -> None:
    async with session_at(running.server.url, running.key) as session:
        result = await session.call_tool("place_call", {"to": 7, "massage": "Hello."})
        assert isinstance(result, types.CallToolResult) and result.is_error
        (content,) = result.content
        assert isinstance(content, types.TextContent)
        assert "arguments.to" in content.text and "massage" in content.text
        with pytest.raises(MCPError, match="Unknown tool"):
            await session.call_tool("make_coffee", {})


async def test_tools_of_the_account_come_and_are_used_while_a_session_is_open(running: Running) -> None:
    heard = asyncio.Event()

    async def listen(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async with shop() as url, session_at(running.server.url, running.key, message_handler=listen) as session:
        before = {tool.name for tool in (await session.list_tools()).tools}
        for number in range(100):
            # The stream on which it is told may be open a moment later than the session.
            await asyncio.to_thread(running.register, f"find_order_{number}", url)
            try:
                await asyncio.wait_for(heard.wait(), 0.5)
                break
            except TimeoutError:
                continue
        assert heard.is_set()
        after = {tool.name for tool in (await session.list_tools()).tools}
        assert "find_order_0" in after - before
        found = await session.call_tool("find_order_0", {"number": "17"})
        assert isinstance(found, types.CallToolResult)
        assert found.structured_content == {"state": "packed", "number": "17"}


async def test_a_key_of_another_service_opens_nothing(running: Running) -> None:
    for key in (running.platform, running.admin, "vt_" + "x" * 43):
        with pytest.raises((ExceptionGroup, MCPError)):
            async with session_at(running.server.url, key):
                raise AssertionError("it was let in")


async def test_sessions_of_before_are_not_known_after_a_restart(running: Running) -> None:
    async with session_at(running.server.url, running.key) as session:
        await session.send_ping()
        await asyncio.to_thread(running.server.stop)
        await asyncio.to_thread(running.server.start)
        with pytest.raises(MCPError):
            await session.send_ping()
    async with session_at(running.server.url, running.key) as session:
        await session.send_ping()
