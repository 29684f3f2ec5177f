"""Every product reaches a number held here on net, and both sides are charged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from callcontrol.accounts.keys import SCOPES
from fixtures.agent import DemoAgent
from media.audio import tone
from tests.support.customers import add_customer, add_registered_number
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, until

NUMBER, HELD = "+918047663001", "+919876500001"
"""Two numbers of the account: the caller-ID, and a mobile number whose calls go to the agent."""

LISTENS = "+919800000009"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Desk:
    """A customer whose only carrier is the sandbox, and its voice agent."""

    server: Server
    agent: DemoAgent
    http: aiohttp.ClientSession
    account_sid: str
    keys: dict[str, str]

    async def ask(self, method: str, path: str, body: Any = None, *, service: str = "platform") -> Any:
        """The data of an answer that must be a success."""
        headers = {"Authorization": f"Bearer {self.keys[service]}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
            assert response.status < 300, answer
            return answer["data"]

    async def place(self, path: str, body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Place a call that comes in to the agent, which hangs up; the answer, and the inbound call."""
        before = len(self.agent.sessions)
        placed: dict[str, Any] = await self.ask("POST", path, body)
        session = await asyncio.wait_for(self.agent.session(before), PATIENCE_S)
        await asyncio.wait_for(session.greeted.wait(), PATIENCE_S)
        await session.hang_up()
        await until(lambda: self.server.control.active_calls == 0)
        await self.server.storage.calls.flush()
        return placed, await self.call(str(session.start["call_sid"]))

    async def call(self, call_sid: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.ask("GET", f"/v1/Accounts/{self.account_sid}/Calls/{call_sid}")
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server, agent = Server(loopback_settings(tmp_path_factory.mktemp("on-net"))), DemoAgent(tone(700.0, 200))
    await server.start()
    await agent.start()
    storage = server.storage
    customer = await add_customer(storage, NUMBER)
    sid = customer.account_sid
    keys = {
        "platform": customer.key,
        "assistant": await storage.keys.create(sid, "assistant", SCOPES["assistant"]),
    }
    held = await add_registered_number(storage, sid, HELD)
    async with aiohttp.ClientSession() as http:
        desk = Desk(server, agent, http, sid, keys)
        binding = {"target": "media_stream", "stream_url": agent.url}
        await desk.ask("PUT", f"/v1/phone-numbers/{held}/inbound", binding)
        await desk.ask("POST", "/v1/masking/numbers", {"number": NUMBER, "force": True})
        yield desk
        assert server.control.engine.stats().ports_in_use == 0
    await agent.stop()
    await server.stop()


def is_on_net(call: dict[str, Any]) -> bool:
    """Return True for a call that came in to the held number from the account's number, by no carrier."""
    return (call["direction"], call["from"], call["to"], call["carrier_sid"]) == (
        *("inbound", NUMBER, HELD),
        None,
    )


async def test_a_call_by_the_api(desk: Desk) -> None:
    before = await desk.ask("GET", "/v1/wallet")
    body = {"from": NUMBER, "to": HELD, "verbs": [{"verb": "pause", "length": 60}]}
    placed, inbound = await desk.place("/v1/calls", body)
    assert is_on_net(inbound)
    out = await desk.call(placed["call_sid"])
    assert (out["status"], out["carrier_sid"]) == ("completed", None)
    assert out["sip_call_id"] == inbound["sip_call_id"]
    after = await desk.ask("GET", "/v1/wallet")
    spent = round(before["balance"] - after["balance"], 2)
    assert out["price"] > 0 and inbound["price"] > 0
    assert spent == round(out["price"] + inbound["price"], 2)


async def test_a_dial_verb(desk: Desk) -> None:
    verbs = [{"verb": "dial", "target": [{"type": "phone", "number": HELD}]}]
    _, inbound = await desk.place("/v1/calls", {"from": NUMBER, "to": LISTENS, "verbs": verbs})
    assert is_on_net(inbound)


async def test_a_masked_leg(desk: Desk) -> None:
    parties = {"party_a": LISTENS[3:], "party_b": HELD[3:]}
    masked, inbound = await desk.place("/v1/masking/calls", parties)
    assert masked["masked_number"] == NUMBER
    assert is_on_net(inbound), "it shows the masked number, and not the other party's"


async def test_an_agent_that_calls(desk: Desk) -> None:
    agent = {"name": "Caller", "language": "en-IN", "stream_url": desk.agent.url}
    made = await desk.ask("POST", "/api/v1/agents", agent, service="assistant")
    body = {"agent_id": made["id"], "phone_number": HELD, "from": NUMBER}
    before = len(desk.agent.sessions)
    placed = await desk.ask("POST", "/api/v1/calls/outbound", body, service="assistant")
    await until(lambda: len(desk.agent.sessions) == before + 2)
    await desk.agent.sessions[before].hang_up()
    await until(lambda: desk.server.control.active_calls == 0)
    sids = {str(session.start["call_sid"]) for session in desk.agent.sessions[before:]}
    (inbound,) = [await desk.call(sid) for sid in sids - {placed["id"]}]
    assert is_on_net(inbound)
