"""A whole server that records calls, and somebody who fetches the recordings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from api.process.server import Server
from callcontrol.accounts.keys import SCOPES
from callcontrol.aio.tokens import new_id
from tests.support.customers import add_registered_number
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import look_again

__all__ = ["NUMBER", "PARTY_A", "PATIENCE_S", "Desk", "served"]

NUMBER, PARTY_A = "+918047555001", "9800000007"
PATIENCE_S = 40.0


@dataclass
class Desk:
    """A server, and somebody with a key and a browser."""

    server: Server
    http: aiohttp.ClientSession
    account_sid: str
    key: str
    kept: dict[str, str] = field(default_factory=dict)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None) if await response.read() else {}
            return response.status, answer.get("data", answer.get("error"))

    async def fetch(self, url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Ask as a browser does, without a key."""
        lines = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(method, self.server.url + url, headers=lines) as response:
            return response.status, dict(response.headers), await response.read()

    async def becomes(self, call_sid: str, **wanted: str) -> dict[str, Any]:
        """The call, once it looks that way."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, call = await self.ask("GET", f"/v1/Accounts/{self.account_sid}/Calls/{call_sid}")
                if all(call[name] == value for name, value in wanted.items()):
                    assert isinstance(call, dict)
                    return call
                await look_again()

    async def recorded(self) -> str:
        """The SID of a call with a recording; one for all tests."""
        if "call" not in self.kept:
            self.kept["call"] = await self.record()
        return self.kept["call"]

    async def record(self, **options: Any) -> str:
        """Record a call, and wait until its recording is complete."""
        body = {"from": NUMBER, "to": f"+91{PARTY_A}", "verbs": [{"verb": "pause", "length": 60}]}
        _, call = await self.ask("POST", "/v1/calls", {**body, "record": True, "time_limit": 1, **options})
        await self.becomes(call["call_sid"], recording_status="completed")
        return str(call["call_sid"])

    async def link(self, call_sid: str) -> str:
        status, data = await self.ask("GET", f"/v1/calls/{call_sid}/recording")
        assert status == 200, data
        return str(data["url"])


@asynccontextmanager
async def served(data_dir: Path, **settings: Any) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(data_dir, **settings))
    await server.start()
    try:
        storage = server.storage
        account, _ = await storage.accounts.create(new_id(), 10_000_000, kyc=True, max_cps=1000)
        key = await storage.keys.create(account.account_sid, "platform", SCOPES["platform"])
        if storage.directory.number(NUMBER) is None:
            await add_registered_number(storage, account.account_sid, NUMBER)
        async with aiohttp.ClientSession() as http:
            yield Desk(server, http, account.account_sid, key)
    finally:
        await server.stop()
