"""Browsers that are called: pages of a telephone ring, and the first that answers has the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from tests.integration.test_browser_calls import NUMBER, TONE, Desk, replacing
from tests.support.browser_peer import BrowserPeer
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import Receiver

HERE_HZ, THERE_HZ = 440.0, 1000.0
ECHO = "+919800000001"

pytestmark = pytest.mark.asyncio(loop_scope="module")


class RingingPage:
    """A page that is open: the events that it has got."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    async def sees(self, name: str) -> dict[str, Any]:
        """Wait for an event, and return its data."""
        await until(lambda: any(seen == name for seen, _ in self.events))
        return next(data for seen, data in self.events if seen == name)

    async def read(self, response: aiohttp.ClientResponse) -> None:
        text = ""
        async for chunk in response.content.iter_any():
            text += chunk.decode()
            *parts, text = text.split("\n\n")
            for part in parts:
                lines = part.splitlines()
                if lines and lines[0].startswith("event: "):
                    self.events.append((lines[0][7:], json.loads(lines[1][6:])))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("called"), TRUSTED_SOURCES="127.0.0.0/8"))
    agent, receiver = DemoAgent(tone(THERE_HZ, 1000)), Receiver()
    await server.start()
    await agent.start()
    await receiver.start()
    customer = await add_customer(server.storage, NUMBER)
    async with aiohttp.ClientSession() as http:
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        assert server.control.engine.stats().ports_in_use == 0
        assert server.services.browser_calls.socket.legs == 0
    await receiver.close()
    await agent.stop()
    await server.stop()


@asynccontextmanager
async def page(desk: Desk, identity: str = "asha") -> AsyncIterator[RingingPage]:
    token = await desk.token(identity=identity, receives_calls=True)
    headers = {"Authorization": f"Bearer {token}"}
    opened = RingingPage()
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{desk.server.url}/v1/webrtc/events", headers=headers) as response,
    ):
        assert response.status == 200, await response.text()
        reading = asyncio.create_task(opened.read(response))
        try:
            await opened.sees("ready")
            yield opened
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def call_in(desk: Desk, from_: str = TONE) -> str:
    """Call the number from a party of the sandbox; return the call's sid."""
    body = {"from": from_, "to": NUMBER}
    status, made, _ = await desk.ask("POST", "/v1/sandbox/inbound", body)
    assert status == 201, made
    return str(made["call_sid"])


async def answer(desk: Desk, peer: BrowserPeer, call_sid: str) -> Any:
    return await desk.ask("POST", f"/v1/webrtc/calls/{call_sid}/answer", {"sdp": peer.offer()})


async def hang_up(desk: Desk, call_sid: str, peer: BrowserPeer) -> None:
    await desk.ask("DELETE", f"/v1/webrtc/calls/{call_sid}")
    await peer.leave()
    await until(lambda: desk.server.control.active_calls == 0)


async def test_a_browser_is_called_and_hears_the_caller(desk: Desk) -> None:
    await desk.bind(target="browser", identity="asha")
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with page(desk) as first, page(desk) as second:
        inbound = await call_in(desk)
        ring = await first.sees("ringing")
        assert (await second.sees("ringing")) == ring
        assert (ring["from"], ring["to"]) == (TONE, "asha")
        status, made, _ = await answer(desk, peer, ring["call_sid"])
        assert (status, made["state"], made["direction"]) == (200, "connecting", "incoming"), made
        await peer.connect(made["sdp"])
        assert (await second.sees("over"))["reason"] == "answered on another page"
        status, error, _ = await answer(desk, BrowserPeer(tone(HERE_HZ, 100)), ring["call_sid"])
        assert (status, error["code"]) == (409, "CONFLICT")
        assert (await desk.ask("POST", f"/v1/webrtc/calls/{ring['call_sid']}/refuse"))[0] == 409
        await desk.reaches(ring["call_sid"], "active")
        await until(lambda: len(peer.heard) > 32000)
        heard = find_tone(samples_of(bytes(peer.heard))[-8000:], 8000)
        assert heard.frequency_hz == pytest.approx(THERE_HZ, abs=3)
        await hang_up(desk, ring["call_sid"], peer)
    record = await desk.record(inbound)
    assert (record["status"], record["hangup_source"]) == ("completed", "callee")
    assert peer.unreadable == 0


async def test_a_browser_that_is_called_is_heard(desk: Desk) -> None:
    await desk.bind(target="browser", identity="asha")
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with page(desk) as opened:
        await call_in(desk, ECHO)
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, peer, ring["call_sid"])
        await peer.connect(made["sdp"])
        await desk.reaches(ring["call_sid"], "active")
        await until(
            lambda: (
                len(peer.heard) > 32000
                and abs(find_tone(samples_of(bytes(peer.heard))[-8000:], 8000).frequency_hz - HERE_HZ) < 3
            )
        )
        await hang_up(desk, ring["call_sid"], peer)


async def test_a_refusal_ends_the_ringing_of_all_pages(desk: Desk) -> None:
    await desk.bind(target="browser", identity="asha")
    async with page(desk) as first, page(desk) as second:
        inbound = await call_in(desk)
        ring = await first.sees("ringing")
        assert (await desk.ask("POST", f"/v1/webrtc/calls/{ring['call_sid']}/refuse"))[0] == 204
        assert (await second.sees("over"))["reason"] == "refused"
        record = await desk.record(inbound)
    assert (record["status"], record["hangup_cause"]) == ("busy", "CALL_REJECTED")


async def test_a_telephone_without_a_page_is_offline_at_once(desk: Desk) -> None:
    await desk.bind(target="browser", identity="nobody")
    async with page(desk):
        record = await desk.record(await call_in(desk))
    assert (record["status"], record["hangup_cause"]) == ("no-answer", "SUBSCRIBER_ABSENT")


async def test_the_ringing_ends_with_the_last_page(desk: Desk) -> None:
    await desk.bind(target="browser", identity="asha")
    async with page(desk) as opened:
        inbound = await call_in(desk)
        ring = await opened.sees("ringing")
    ended = await desk.reaches(ring["call_sid"], "ended")
    assert ended["reason"] == "no page is open"
    assert (await desk.record(inbound))["hangup_cause"] == "SUBSCRIBER_ABSENT"


async def test_a_call_that_nobody_answers_ends_with_the_time(desk: Desk) -> None:
    await desk.bind(target="browser", identity="asha", timeout=5)
    async with page(desk) as opened:
        inbound = await call_in(desk)
        assert (await opened.sees("over"))["reason"] == "the caller gave up"
        record = await desk.record(inbound)
    assert record["status"] == "no-answer"


async def test_only_a_token_that_receives_calls_opens_a_page(desk: Desk) -> None:
    token = await desk.token()
    status, error, _ = await desk.ask("GET", "/v1/webrtc/events", key=token)
    assert (status, error["code"]) == (403, "FORBIDDEN")
    token = await desk.token(receives_calls=True)
    status, error, _ = await desk.ask("GET", "/v1/webrtc/events?identity=ravi", key=token)
    assert (status, error["code"]) == (403, "FORBIDDEN")
    assert (await desk.ask("GET", "/v1/webrtc/events"))[0] == 400


async def test_a_browser_calls_another(desk: Desk) -> None:
    calling, called = BrowserPeer(tone(HERE_HZ, 2000)), BrowserPeer(tone(700.0, 2000))
    token = await desk.token(identity="ravi", may_call=["browser:asha"])
    other = await desk.token(identity="ravi")
    body = {"sdp": calling.offer(), "to": "browser:asha"}
    assert (await desk.ask("POST", "/v1/webrtc/calls", body, key=other))[0] == 403
    async with page(desk) as opened, desk.calling(calling, key=token, to="browser:asha") as call:
        ring = await opened.sees("ringing")
        assert ring["from"] == "ravi"
        _, made, _ = await answer(desk, called, ring["call_sid"])
        await called.connect(made["sdp"])
        await desk.reaches(call["call_sid"], "active")
        await until(lambda: len(calling.heard) > 32000 and len(called.heard) > 32000)
        for hears, hz in ((calling, 700.0), (called, HERE_HZ)):
            found = find_tone(samples_of(bytes(hears.heard))[-8000:], 8000)
            assert found.frequency_hz == pytest.approx(hz, abs=3)
        await called.leave()
    await asyncio.wait_for(calling.closed.wait(), PATIENCE_S)


async def test_a_browser_calls_an_outside_number_as_a_number_of_the_account(desk: Desk) -> None:
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    bound = await desk.token(**{"from": NUMBER})
    body = {"sdp": peer.offer(), "to": TONE}
    assert (await desk.ask("POST", "/v1/webrtc/calls", body, key=bound))[0] == 403
    token = await desk.token(may_call=[TONE], **{"from": NUMBER})
    async with desk.calling(peer, key=token, to=TONE) as call:
        await desk.reaches(call["call_sid"], "active")
        await until(lambda: len(peer.heard) > 32000)
        found = find_tone(samples_of(bytes(peer.heard))[-8000:], 8000)
        assert found.frequency_hz == pytest.approx(THERE_HZ, abs=3)
    assert (await desk.record(call["call_sid"]))["to"] == TONE


async def test_a_call_is_held_and_resumed(desk: Desk) -> None:
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        session = await desk.stream(call["call_sid"])
        await desk.reaches(call["call_sid"], "active")
        path = f"/v1/webrtc/calls/{call['call_sid']}"
        for direction, answered in (("inactive", "inactive"), ("sendrecv", "sendrecv")):
            sdp = peer.offer(replacing("sendrecv", direction))
            status, changed, _ = await desk.ask("PATCH", path, {"sdp": sdp})
            assert status == 200 and f"a={answered}" in changed["sdp"].splitlines(), changed
        heard = len(session.heard)
        await until(lambda: len(session.heard) > heard + 32000)
        tail = find_tone(samples_of(bytes(session.heard))[-8000:], session.sample_rate_hz)
        assert tail.frequency_hz == pytest.approx(HERE_HZ, abs=3)
