"""A server with its sandbox carrier, an agent and a receiver of webhooks, for whole calls over the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.carrier import SandboxCarrier
from fixtures.carrier_call import SandboxCall
from media.audio import tone
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import until
from tests.support.webhook_stage import Receiver

PATIENCE_S = 40.0
AGENT_TONE_HZ = 700.0
NUMBER = "+918047555001"
EVENTS = ["initiated", "ringing", "early-media", "answered", "completed"]
ECHO, SPEECH, BUSY, SILENT, DIGITS, TONE = (f"+91980000000{n}" for n in (1, 2, 3, 4, 6, 7))
MACHINE, EARLY, PERSON = "+919800000010", "+919800000011", "+919800000012"


@dataclass
class LiveStage:
    """Requests to the server, and its visible state."""

    server: Server
    sandbox: SandboxCarrier
    agent: DemoAgent
    receiver: Receiver
    http: aiohttp.ClientSession
    account_sid: str
    key: str
    _bodies: list[dict[str, Any]] = field(default_factory=list)
    """Bodies that the receiver has got, decoded once: tests look again and again."""

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status of an answer, and its data or its error."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
            return response.status, answer.get("data", answer.get("error"))

    async def place(self, to: str, **body: Any) -> str:
        """Place a call whose status webhook gets every event."""
        status, call = await self.ask(
            "POST",
            "/v1/calls",
            {
                "from": NUMBER,
                "to": to,
                "status_webhook_url": self.receiver.url(),
                "status_webhook_events": EVENTS,
                **body,
            },
        )
        assert status == 201, call
        return str(call["call_sid"])

    async def up(self, to: str, **body: Any) -> str:
        """Place a call and wait until it is answered."""
        call_sid = await self.place(to, **body)
        await self.told(call_sid, "call.answered")
        return call_sid

    def path(self, call_sid: str) -> str:
        return f"/v1/Accounts/{self.account_sid}/Calls/{call_sid}"

    async def get(self, call_sid: str) -> dict[str, Any]:
        status, call = await self.ask("GET", self.path(call_sid))
        assert status == 200
        assert isinstance(call, dict)
        return call

    async def becomes(self, call_sid: str, seen: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the call looks a certain way."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if seen(await self.get(call_sid)):
                    return
                await asyncio.sleep(0.02)

    async def change(self, call_sid: str, **body: Any) -> None:
        """Change a call; it must be accepted."""
        status, answer = await self.ask("POST", self.path(call_sid), body)
        assert status == 202, answer

    async def refused(self, call_sid: str, **body: Any) -> str:
        """The code of the refusal to change a call."""
        status, error = await self.ask("POST", self.path(call_sid), body)
        assert status == 409, error
        return str(error["code"])

    async def ended(self, call_sid: str) -> dict[str, Any]:
        """The call, once it is over and its last event was told."""
        await self.told(call_sid, "call.completed")
        return await self.get(call_sid)

    def events(self, call_sid: str) -> list[dict[str, Any]]:
        """The events of a call that were received, in their order of arrival."""
        new = self.receiver.requests[len(self._bodies) :]
        self._bodies += [json.loads(got.body) for got in new]
        return [body for body in self._bodies if body["data"]["call_sid"] == call_sid]

    async def told(self, call_sid: str, event: str) -> dict[str, Any]:
        """The first event of a name, once it was received."""

        def found() -> list[dict[str, Any]]:
            return [body for body in self.events(call_sid) if body["event"] == event]

        await until(lambda: bool(found()))
        return found()[0]

    async def far(self, number: str, which: Callable[[SandboxCall], bool] = lambda _: True) -> SandboxCall:
        """The latest call to a number of the sandbox."""

        def found() -> list[SandboxCall]:
            return [call for call in self.sandbox.calls if call.number == number and which(call)]

        await until(lambda: bool(found()))
        return found()[-1]


@asynccontextmanager
async def live_stage(data_dir: Path, **settings: str) -> AsyncIterator[LiveStage]:
    """Run a stage, to the proof that no call of it is left."""
    server = Server(loopback_settings(data_dir, rtp_ports=400, **settings))
    agent, receiver = DemoAgent(tone(AGENT_TONE_HZ, 1000)), Receiver()
    await server.start()
    await agent.start()
    await receiver.start()
    assert server.sandbox is not None
    server.sandbox.record_directory = data_dir
    storage = server.storage
    customer = await add_customer(storage, NUMBER)
    try:
        async with aiohttp.ClientSession() as http:
            stage = LiveStage(
                server, server.sandbox, agent, receiver, http, customer.account_sid, customer.key
            )
            yield stage
            await until(lambda: server.control.active_calls == 0)
            assert server.control.engine.stats().ports_in_use == 0
            assert await storage.wallet.open_reserves() == []
    finally:
        await agent.stop()
        await receiver.close()
        await server.stop()
