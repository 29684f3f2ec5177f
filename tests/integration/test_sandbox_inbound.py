"""Calls of sandbox parties, requested by the API: each binding of a number is tried without a carrier."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from api.process.server import Server
from callcontrol.accounts.keys import SCOPES
from fixtures.agent import AgentSession, DemoAgent
from fixtures.audio_check import find_tone, samples_of
from fixtures.carrier_call import SandboxCall
from media.audio import tone
from tests.support.customers import add_customer, add_platform_carrier
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import Receiver

NUMBER = "+918047662001"
ECHO, SILENT, TONE, LISTENS = (f"+91980000000{digit}" for digit in (1, 4, 7, 9))

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Desk:
    """A customer with one number and no carrier, its voice agent and its web server."""

    server: Server
    agent: DemoAgent
    receiver: Receiver
    http: aiohttp.ClientSession
    account_sid: str
    key: str
    phone_number_id: str

    async def ask(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """The data of an answer that must be a success."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
            assert response.status < 300, answer
            return answer["data"]

    async def bind(self, **binding: Any) -> None:
        path = f"/v1/phone-numbers/{self.phone_number_id}/inbound"
        await self.ask("PUT", path, {"force": True, **binding})

    async def call_in(self, **body: Any) -> tuple[dict[str, Any], SandboxCall]:
        """Place a call of a party to the number; the answer, and the party's side of the call."""
        placed = await self.ask("POST", "/v1/sandbox/inbound", {"to": NUMBER, **body})
        assert self.server.sandbox is not None
        (far,) = [call for call in self.server.sandbox.calls if call.call_id == placed["sip_call_id"]]
        return placed, far

    async def ended(self, call_sid: str) -> dict[str, Any]:
        """A call, once nothing of any call is left."""
        await until(lambda: self.server.control.active_calls == 0)
        call: dict[str, Any] = await self.ask("GET", f"/v1/Accounts/{self.account_sid}/Calls/{call_sid}")
        return call

    async def stream(self, call_sid: str) -> AgentSession:
        """The agent's side of a call."""

        def found() -> list[AgentSession]:
            return [session for session in self.agent.sessions if session.start.get("call_sid") == call_sid]

        await until(lambda: bool(found()))
        return found()[0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("sandbox"), rtp_ports=200))
    agent, receiver = DemoAgent(tone(700.0, 300)), Receiver()
    await server.start()
    await agent.start()
    await receiver.start()
    customer = await add_customer(server.storage, NUMBER)
    async with aiohttp.ClientSession() as http:
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        assert server.control.engine.stats().ports_in_use == 0
    await receiver.close()
    await agent.stop()
    await server.stop()


async def test_a_voice_agent_is_called_and_hears_the_party(desk: Desk) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    placed, far = await desk.call_in(**{"from": TONE}, hangup_after_seconds=2)
    assert (placed["from"], placed["to"]) == (TONE, NUMBER)
    session = await desk.stream(placed["call_sid"])
    await asyncio.wait_for(session.closed.wait(), PATIENCE_S)
    found = find_tone(samples_of(bytes(session.heard))[-8000:], session.sample_rate_hz)
    assert found.frequency_hz == pytest.approx(1000.0, abs=3) and found.share > 0.8
    call = await desk.ended(placed["call_sid"])
    assert (call["direction"], call["from"], call["to"]) == ("inbound", TONE, NUMBER)
    assert (call["status"], call["hangup_source"]) == ("completed", "caller")
    assert call["sip_call_id"] == placed["sip_call_id"]
    assert call["price"] > 0
    assert (await far.finished()).ended_by == "local"


async def test_an_agent_of_the_voice_assistant_answers(desk: Desk) -> None:
    key = await desk.server.storage.keys.create(desk.account_sid, "assistant", SCOPES["assistant"])
    agent = {"name": "Front desk", "language": "en-IN", "stream_url": desk.agent.url, "sample_rate": 16000}
    made = await desk.ask("POST", "/api/v1/agents", agent, key=key)
    await desk.bind(target="voice_agent", agent_id=made["id"], workspace_id=desk.account_sid)
    placed, _ = await desk.call_in(behaviour="listen", hangup_after_seconds=1)
    session = await desk.stream(placed["call_sid"])
    await asyncio.wait_for(session.greeted.wait(), PATIENCE_S)
    assert (await desk.ended(placed["call_sid"]))["from"] == LISTENS
    shown = await desk.ask("GET", f"/api/v1/calls/{placed['call_sid']}", key=key)
    assert (shown["status"], shown["direction"]) == ("completed", "inbound")


async def test_a_webhook_steers_the_call_by_the_digits_of_the_party(desk: Desk) -> None:
    def menu(_: object) -> web.Response:
        step = {"verb": "gather", "num_digits": 1, "timeout": 8, "action_url": desk.receiver.url("/chosen")}
        return web.json_response([step])

    desk.receiver.answers["/menu"] = menu
    desk.receiver.answers["/chosen"] = lambda _: web.json_response([{"verb": "hangup"}])
    await desk.bind(target="webhook", webhook_url=desk.receiver.url("/menu"))
    placed, far = await desk.call_in(send_digits="w5")
    await desk.ended(placed["call_sid"])
    asked = {got.path: json.loads(got.body)["data"] for got in desk.receiver.requests}
    assert (asked["/menu"]["from"], asked["/menu"]["call_sid"]) == (LISTENS, placed["call_sid"])
    assert asked["/chosen"]["digits"] == "5"
    assert (await far.finished()).ended_by == "remote"


async def test_a_forwarded_number_reaches_another_party(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to=TONE)
    placed, far = await desk.call_in(**{"from": ECHO}, hangup_after_seconds=1)
    call = await desk.ended(placed["call_sid"])
    assert (call["status"], call["hangup_source"]) == ("completed", "caller")
    assert desk.server.sandbox is not None
    assert desk.server.sandbox.calls[-1].number == TONE
    assert (await far.finished()).packets > 0


async def test_a_masking_session_connects_the_caller_with_its_other_party(desk: Desk) -> None:
    await desk.ask("POST", "/v1/masking/numbers", {"number": NUMBER, "force": True})
    session = {"party_a": ECHO[3:], "party_b": SILENT[3:], "expires_in_sec": 600}
    await desk.ask("POST", "/v1/masking/sessions", session)
    placed, far = await desk.call_in(**{"from": ECHO}, hangup_after_ringing_seconds=1)
    assert desk.server.sandbox is not None
    await until(lambda: desk.server.sandbox is not None and desk.server.sandbox.calls[-1].number == SILENT)
    await far.finished()
    await desk.ended(placed["call_sid"])
    logs = await desk.ask("GET", "/v1/masking/call-logs")
    assert [log["status"] for log in logs if log["platform_call_sid"] == placed["call_sid"]] == ["no-answer"]


async def test_a_call_is_missed_on_purpose_and_its_subscriber_hears_of_it(desk: Desk) -> None:
    body = {"url": desk.receiver.url("/missed"), "event_types": ["call.missed"]}
    await desk.ask("POST", "/v1/webhooks/subscriptions", body)
    await desk.bind(target="missed_call", timeout=30)
    placed, far = await desk.call_in(hangup_after_ringing_seconds=2)
    heard = await far.finished()
    assert heard.statuses[0] == 180 and 200 not in heard.statuses
    await until(lambda: any(got.path == "/missed" for got in desk.receiver.requests))
    (told,) = [json.loads(got.body)["data"] for got in desk.receiver.requests if got.path == "/missed"]
    assert (told["call_sid"], told["reason"]) == (placed["call_sid"], "caller_hangup")
    assert told["ring_duration_sec"] == 2


async def test_a_refused_call_is_known_too(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to="+919800000003")
    placed, far = await desk.call_in()
    assert (await far.finished()).statuses[-1] == 486
    assert (await desk.ended(placed["call_sid"]))["status"] == "busy"


async def test_only_a_server_with_a_sandbox_has_parties_that_call(tmp_path: Path) -> None:
    server = Server(loopback_settings(tmp_path, SANDBOX_CARRIER="0"))
    await server.start()
    try:
        await add_platform_carrier(server.storage)
        customer = await add_customer(server.storage, NUMBER)
        headers = {"Authorization": f"Bearer {customer.key}"}
        async with (
            aiohttp.ClientSession() as http,
            http.post(server.url + "/v1/sandbox/inbound", json={"to": NUMBER}, headers=headers) as response,
        ):
            answer = await response.json()
            assert (response.status, answer["error"]["code"]) == (404, "NOT_FOUND")
            assert "TRUNKLINE_SANDBOX_CARRIER" in answer["error"]["message"]
    finally:
        await server.stop()
