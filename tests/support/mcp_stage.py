"""The endpoint of the Model Context Protocol on loopback, over tools that tests make."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
from aiohttp import web
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client

from api.http.app import create_app
from api.mcp.gateway import McpGateway
from api.process.metrics import Metrics
from callcontrol.accounts.keys import SCOPES
from callcontrol.errors import NotFound
from callcontrol.models import Principal
from callcontrol.tools.models import Tool, ToolResult
from tests.support.api_facts import ACCOUNT, TOOLS_KEY
from tests.support.api_stage import ApiStage, api_stage
from tests.support.phone import PATIENCE_S

OTHER_KEY = "vt_" + "o" * 43
PATH = "/integrations/mcp"

Use = Callable[[Mapping[str, Any]], Awaitable[Any]]


def tool(name: str, **parts: Any) -> Tool:
    """A tool that takes anything."""
    described = {"title": name.title(), "description": f"Does {name}.", "kind": "http", **parts}
    return Tool(name=name, input_schema={"type": "object"}, **described)


@dataclass
class StubTools:
    """Tools by name, and what using them does."""

    known: dict[str, tuple[Tool, Use]] = field(default_factory=dict)
    listeners: set[Callable[[str], None]] = field(default_factory=set)
    listed: int = 0

    def add(self, described: Tool, use: Use) -> None:
        self.known[described.name] = described, use

    def change(self, account_sid: str = ACCOUNT) -> None:
        for listener in self.listeners:
            listener(account_sid)

    async def list(self, principal: Principal) -> Sequence[Tool]:
        self.listed += 1
        return [self.known[name][0] for name in sorted(self.known)]

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name not in self.known:
            raise NotFound("There is no such tool.")
        return ToolResult(await self.known[name][1](arguments))

    def on_change(self, listener: Callable[[str], None]) -> Callable[[], None]:
        self.listeners.add(listener)
        return lambda: self.listeners.discard(listener)


@dataclass
class McpStage:
    """The endpoint, and how its clients are made."""

    url: str
    tools: StubTools
    api: ApiStage
    gateway: McpGateway

    @asynccontextmanager
    async def client(self, mode: str = "legacy", key: str = TOOLS_KEY, **parts: Any) -> AsyncIterator[Client]:
        """The official client, by either generation of the protocol."""
        async with http_client(key) as http:
            transport = streamable_http_client(self.url + PATH, http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE_S, **parts) as client:
                yield client

    @asynccontextmanager
    async def session(self, key: str = TOOLS_KEY, **parts: Any) -> AsyncIterator[ClientSession]:
        """A session of the official client, initialized."""
        async with session_at(self.url, key, **parts) as session:
            yield session


def http_client(key: str) -> httpx2.AsyncClient:
    """An HTTP client with a key."""
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S)


@asynccontextmanager
async def session_at(url: str, key: str, **parts: Any) -> AsyncIterator[ClientSession]:
    """A session of the official client with a server."""
    async with (
        http_client(key) as http,
        streamable_http_client(url + PATH, http_client=http) as (read, write),
        ClientSession(read, write, **parts) as session,
    ):
        await session.initialize()
        yield session


@asynccontextmanager
async def mcp_stage() -> AsyncIterator[McpStage]:
    """Run a stage."""
    with tempfile.TemporaryDirectory() as folder:
        async with api_stage(Path(folder)) as api, _served(api) as stage:
            yield stage


@asynccontextmanager
async def _served(api: ApiStage) -> AsyncIterator[McpStage]:
    tools = StubTools()
    await api.add_key(OTHER_KEY, "tools", SCOPES["tools"])
    sock = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    gateway = McpGateway(cast(Any, tools), api.storage.keys, api.lifecycle, url)
    limits = dict.fromkeys(SCOPES, 1_000_000)
    app = create_app(
        api.services,
        mcp=gateway,
        lifecycle=api.lifecycle,
        metrics=Metrics(),
        public_url=url,
        requests_per_minute=limits,
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, sock).start()
    try:
        yield McpStage(url, tools, api, gateway)
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await gateway.close()
            await runner.cleanup()
