"""Ways that lead to a browser's leg and away from it: fallbacks, the verb dial, transfers, masking."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from tests.integration.test_browser_calls import NUMBER, TONE, Desk
from tests.integration.test_called_browsers import answer, call_in, hang_up, page
from tests.support.browser_peer import BrowserPeer
from tests.support.customers import add_customer, add_registered_number
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import Received, Receiver

OTHER = "+919811766009"
ECHO = "+919800000001"
HERE_HZ, SECOND_HZ, TONE_HZ, AGENT_HZ = 440.0, 700.0, 1000.0, 1300.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("ways"), TRUSTED_SOURCES="127.0.0.0/8"))
    agent, receiver = DemoAgent(tone(AGENT_HZ, 1000)), Receiver()
    await server.start()
    await agent.start()
    await receiver.start()
    customer = await add_customer(server.storage, NUMBER)
    await add_registered_number(server.storage, customer.account_sid, OTHER)
    async with aiohttp.ClientSession() as http:
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        assert server.control.engine.stats().ports_in_use == 0
        assert server.services.browser_calls.socket.legs == 0
    await receiver.close()
    await agent.stop()
    await server.stop()


def saying(*verbs: dict[str, Any]) -> Callable[[Received], web.Response]:
    """Answer of the customer's server with verbs."""
    return lambda _: web.json_response(list(verbs))


async def hears(peer: BrowserPeer, hz: float) -> None:
    """Wait until a tone is what the peer hears last."""

    def heard() -> bool:
        tail = bytes(peer.heard)[-16_000:]
        return len(tail) == 16_000 and abs(find_tone(samples_of(tail), 8000).frequency_hz - hz) < 3

    await until(heard)


def asked(desk: Desk, path: str) -> dict[str, Any]:
    """Last request to the customer's server at a path."""
    found = [got for got in desk.receiver.requests if got.path == path]
    body: dict[str, Any] = json.loads(found[-1].body)
    return body


@asynccontextmanager
async def session_of(desk: Desk, party_a: str, party_b: str) -> AsyncIterator[str]:
    """Mask the number for two parties until the block ends; its identifier."""
    enrolled = await desk.ask("POST", "/v1/masking/numbers", {"number": NUMBER, "force": True})
    assert enrolled[0] == 201, enrolled
    parties = {"party_a": party_a, "party_b": party_b, "expires_in_sec": 600}
    status, session, _ = await desk.ask("POST", "/v1/masking/sessions", parties)
    assert status == 201, session
    try:
        yield str(session["session_id"])
    finally:
        path = f"/v1/masking/sessions/{session['session_id']}"
        assert (await desk.ask("DELETE", path))[0] in (200, 204)


async def change(desk: Desk, call_sid: str, **wanted: Any) -> None:
    """Change an active call by the API."""
    status, told, _ = await desk.ask("POST", f"/v1/Accounts/{desk.account_sid}/Calls/{call_sid}", wanted)
    assert status in (200, 202), told


async def test_a_browser_that_is_not_there_leads_to_the_fallback(desk: Desk) -> None:
    desk.receiver.answers["/fallback"] = saying(
        {"verb": "dial", "target": [{"type": "browser", "identity": "ravi"}]}
    )
    await desk.bind(target="browser", identity="asha", fallback_url=desk.receiver.url("/fallback"))
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with page(desk, "ravi") as opened:
        inbound = await call_in(desk)
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, peer, ring["call_sid"])
        await peer.connect(made["sdp"])
        await hears(peer, TONE_HZ)
        await hang_up(desk, ring["call_sid"], peer)
    told = asked(desk, "/fallback")
    assert (told["event"], told["data"]["call_sid"]) == ("call.fallback", inbound)
    assert (await desk.record(inbound))["status"] == "completed"


async def test_a_browser_that_refuses_leads_to_the_fallback(desk: Desk) -> None:
    desk.receiver.answers["/fallback"] = saying(
        {"verb": "dial", "target": [{"type": "phone", "number": ECHO}], "caller_id": NUMBER}
    )
    await desk.bind(target="browser", identity="asha", fallback_url=desk.receiver.url("/fallback"))
    async with page(desk) as opened:
        inbound = await call_in(desk)
        ring = await opened.sees("ringing")
        assert (await desk.ask("POST", f"/v1/webrtc/calls/{ring['call_sid']}/refuse"))[0] == 204

        async def talks() -> bool:
            path = f"/v1/Accounts/{desk.account_sid}/Calls/{inbound}"
            _, call, _ = await desk.ask("GET", path)
            return bool(call["status"] == "in-progress")

        await until(talks)
        assert (await desk.ask("DELETE", f"/v1/Accounts/{desk.account_sid}/Calls/{inbound}"))[0] in (200, 204)
    assert (await desk.record(inbound))["status"] == "completed"


async def test_the_verb_dial_rings_a_browser_and_goes_on_after_it(desk: Desk) -> None:
    desk.receiver.answers["/verbs"] = saying(
        {"verb": "dial", "target": [{"type": "browser", "identity": "asha"}], "action_url": "/after"}
    )
    desk.receiver.answers["/after"] = saying({"verb": "hangup"})
    await desk.bind(target="webhook", webhook_url=desk.receiver.url("/verbs"))
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with page(desk) as opened:
        inbound = await call_in(desk)
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, peer, ring["call_sid"])
        await peer.connect(made["sdp"])
        await hears(peer, TONE_HZ)
        await hang_up(desk, ring["call_sid"], peer)
    assert asked(desk, "/after")["data"]["call_sid"] == inbound
    assert (await desk.record(inbound))["status"] == "completed"


async def test_a_call_with_an_agent_is_transferred_to_a_browser(desk: Desk) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with page(desk) as opened:
        inbound = await call_in(desk, ECHO)
        session = await desk.stream(inbound)
        await asyncio.wait_for(session.greeted.wait(), PATIENCE_S)
        await change(desk, inbound, transfer={"to": "browser:asha", "timeout": 30})
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, peer, ring["call_sid"])
        await peer.connect(made["sdp"])
        await desk.reaches(ring["call_sid"], "active")
        await hears(peer, HERE_HZ)
        await hang_up(desk, ring["call_sid"], peer)
    assert (await desk.record(inbound))["status"] == "completed"


async def test_a_browser_that_calls_is_transferred_to_a_telephone(desk: Desk) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with desk.calling(peer, **{"from": OTHER}) as call:
        await hears(peer, AGENT_HZ)
        await change(desk, call["call_sid"], transfer={"to": TONE, "caller_id": NUMBER, "timeout": 30})
        await hears(peer, TONE_HZ)
        assert (await desk.reaches(call["call_sid"], "active"))["reason"] is None
    assert (await desk.record(call["call_sid"]))["status"] == "completed"


async def test_a_browser_that_calls_is_transferred_to_another_browser(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to=TONE, caller_id=NUMBER)
    calling, called = BrowserPeer(tone(HERE_HZ, 2000)), BrowserPeer(tone(SECOND_HZ, 2000))
    async with page(desk, "ravi") as opened, desk.calling(calling, **{"from": OTHER}) as call:
        await hears(calling, TONE_HZ)
        await change(desk, call["call_sid"], transfer={"to": "browser:ravi", "party": "a", "timeout": 30})
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, called, ring["call_sid"])
        await called.connect(made["sdp"])
        await hears(calling, SECOND_HZ)
        await hears(called, HERE_HZ)
        await called.leave()
    assert (await desk.record(call["call_sid"]))["status"] == "completed"


async def test_a_browser_reaches_the_other_party_of_its_masking_session(desk: Desk) -> None:
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with session_of(desk, OTHER, TONE) as session_id:
        async with desk.calling(peer, **{"from": OTHER}) as call:
            await hears(peer, TONE_HZ)
        record = await desk.record(call["call_sid"])
    assert record["status"] == "completed"
    _, listed, _ = await desk.ask("GET", "/v1/masking/call-logs")
    assert listed[0]["session_id"] == session_id, listed


async def test_a_masked_party_is_reached_in_a_browser_and_sees_no_number(desk: Desk) -> None:
    numbers = (await desk.ask("GET", "/v1/phone-numbers"))[1]
    other = next(found["id"] for found in numbers if found["number"] == OTHER)
    binding = {"target": "browser", "identity": "asha", "force": True}
    assert (await desk.ask("PUT", f"/v1/phone-numbers/{other}/inbound", binding))[0] == 200
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with session_of(desk, TONE, OTHER), page(desk) as opened:
        await call_in(desk)
        ring = await opened.sees("ringing")
        assert ring["from"] == NUMBER and TONE not in str(ring)
        _, made, _ = await answer(desk, peer, ring["call_sid"])
        await peer.connect(made["sdp"])
        await hears(peer, TONE_HZ)
        await hang_up(desk, ring["call_sid"], peer)
