"""A whole server with a telephone as its carrier, for calls that come in and reach somebody's program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from api.process.server import Server
from media.aio import MediaEngine
from sip import Cancelled, Ended, Failed
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.phone import Phone, PhoneCall, engine_settings, eventually

__all__ = ["NUMBER", "InboundStage", "inbound_stage"]

NUMBER = "+918047666001"
CALLER = "+919811111111"
PATIENCE_S = 40.0


@dataclass
class InboundStage:
    """Driver of the server, and of the telephone."""

    server: Server
    phone: Phone
    http: aiohttp.ClientSession
    account_sid: str
    key: str
    number_id: str

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status of an answer, and its data or its error."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
            return response.status, answer.get("data", answer.get("error"))

    async def bind(self, **binding: Any) -> None:
        """Say where calls to the number go."""
        path = f"/v1/phone-numbers/{self.number_id}/inbound"
        status, answer = await self.ask("PUT", path, {**binding, "force": True})
        assert status == 200, answer

    def call(self, *, from_user: str = CALLER) -> PhoneCall:
        """Call the number; all that is heard is kept."""
        made = self.phone.call(NUMBER, self.server.control.user_agent.addresses[0].port, from_user=from_user)
        made.kept_ms = 60_000
        return made

    async def latest(self) -> dict[str, Any]:
        """The latest call, as the API tells of it."""
        status, calls = await self.ask("GET", "/v1/calls?per_page=1")
        assert status == 200 and calls
        return dict(calls[0])

    async def clear(self) -> None:
        """Hang up what a test that failed left behind, so that only that one fails."""
        for call in self.phone.calls:
            if not any(isinstance(event, Ended | Failed | Cancelled) for event in call.events):
                call.hang_up()
        self.phone.calls.clear()
        assert await eventually(lambda: self.server.control.active_calls == 0, PATIENCE_S), "calls are left"

    async def ended(self) -> dict[str, Any]:
        """The latest call, once nothing of it is left."""
        assert await eventually(lambda: self.server.control.active_calls == 0, PATIENCE_S), "the call is up"
        return await self.latest()


@asynccontextmanager
async def inbound_stage(data_dir: Path, **more: str) -> AsyncIterator[InboundStage]:
    """Run a stage, to the proof that no call of it is left."""
    settings = loopback_settings(data_dir, rtp_ports=200, SANDBOX_CARRIER="0", **more)
    server, engine = Server(settings), MediaEngine(engine_settings())
    await engine.start()
    phone = Phone(engine)
    await phone.start()
    await server.start()
    storage = server.storage
    await storage.trunks.add_platform_carrier(
        "telephone", [("udp", "127.0.0.1", phone.port)], inbound=True, outbound=True
    )
    customer = await add_customer(storage, NUMBER)
    try:
        async with aiohttp.ClientSession() as http:
            yield InboundStage(
                server, phone, http, customer.account_sid, customer.key, customer.phone_number_id
            )
            assert await eventually(lambda: server.control.active_calls == 0, PATIENCE_S), "calls are left"
            assert server.control.engine.stats().ports_in_use == 0
    finally:
        await server.stop()
        await phone.close()
        await engine.close()
