"""Records of calls with browsers: their recordings, the quality of their legs, and what they are charged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, read_stereo, samples_of
from media.audio import tone
from tests.integration.test_browser_calls import NUMBER, TONE, Desk
from tests.integration.test_called_browsers import answer, call_in, hang_up, page
from tests.support.browser_peer import BrowserPeer
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import until
from tests.support.webhook_stage import Receiver

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROWSER_HZ, SECOND_HZ, TONE_HZ = 440.0, 700.0, 1000.0
# Of each started minute.
INBOUND_INR, OUTBOUND_INR = 0.4, 0.6
ENOUGH_BYTES = 32_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("records"), TRUSTED_SOURCES="127.0.0.0/8"))
    await server.start()
    customer = await add_customer(server.storage, NUMBER)
    async with aiohttp.ClientSession() as http:
        agent, receiver = DemoAgent(tone(TONE_HZ, 100)), Receiver()
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        assert server.control.engine.stats().ports_in_use == 0
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def peer() -> BrowserPeer:
    return BrowserPeer(tone(BROWSER_HZ, 2000))


async def recorded(desk: Desk, call_sid: str) -> dict[str, Any]:
    """The call's record, once its recording is complete."""
    found: dict[str, Any] = {}

    async def complete() -> bool:
        found.update(await desk.record(call_sid))
        return bool(found["recording_status"] == "completed")

    await until(complete)
    return found


async def sides(desk: Desk, call_sid: str) -> list[float]:
    """Frequencies of the tones on both sides of a recording, of the first party and the other."""
    stored = await desk.server.storage.calls.find(call_sid)
    assert stored is not None and stored.recording_path is not None
    left, right, rate_hz = await asyncio.to_thread(read_stereo, Path(stored.recording_path))
    found = [find_tone(side, rate_hz) for side in (left, right)]
    assert all(tone.share > 0.8 for tone in found), found
    return [tone.frequency_hz for tone in found]


def measured(record: dict[str, Any], *legs: str) -> None:
    """Each leg has figures for what was received from it and sent to it."""
    by_name = {leg["leg"]: leg for leg in record["quality"]["legs"]}
    assert set(by_name) == set(legs), by_name
    for leg in by_name.values():
        received = leg["received"]
        assert 1.0 <= received["mos"] <= 5.0, leg
        assert received["jitter_ms"] >= 0.0 and 0.0 <= received["packet_loss_pct"] <= 100.0, leg
        assert leg["codec"] == "PCMU", leg
    assert 1.0 <= record["quality"]["mos"] <= 5.0


async def charged(desk: Desk, record: dict[str, Any]) -> float:
    """Charge of the wallet for a call, which is its price."""
    _, ledger, _ = await desk.ask("GET", "/v1/wallet/ledger?per_page=100")
    (entry,) = [one for one in ledger if one["kind"] == "charge" and one["call_sid"] == record["call_sid"]]
    assert record["price"] == -entry["amount"] and record["bill_duration_sec"] == 60, (record, entry)
    return float(record["price"])


async def test_a_browser_that_calls_is_recorded_measured_and_charged(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="forward", forward_to=TONE, record=True)
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        await until(lambda: len(peer.heard) > ENOUGH_BYTES)
    record = await recorded(desk, call["call_sid"])
    assert await sides(desk, call["call_sid"]) == pytest.approx([BROWSER_HZ, TONE_HZ], abs=10)
    measured(record, "a", "b")
    assert await charged(desk, record) == pytest.approx(INBOUND_INR + OUTBOUND_INR)


async def test_a_browser_that_is_called_is_recorded_measured_and_charged(
    desk: Desk, peer: BrowserPeer
) -> None:
    await desk.bind(target="browser", identity="asha", record=True)
    async with page(desk) as opened:
        inbound = await call_in(desk)
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, peer, ring["call_sid"])
        await peer.connect(made["sdp"])
        await until(lambda: len(peer.heard) > ENOUGH_BYTES)
        await hang_up(desk, ring["call_sid"], peer)
    record = await recorded(desk, inbound)
    assert await sides(desk, inbound) == pytest.approx([TONE_HZ, BROWSER_HZ], abs=10)
    measured(record, "a", "b")
    assert await charged(desk, record) == pytest.approx(INBOUND_INR + OUTBOUND_INR)


async def test_a_browser_that_calls_another_is_charged_for_both(desk: Desk, peer: BrowserPeer) -> None:
    called = BrowserPeer(tone(SECOND_HZ, 2000))
    token = await desk.token(identity="ravi", may_call=["browser:asha"])
    async with page(desk) as opened, desk.calling(peer, key=token, to="browser:asha") as call:
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, called, ring["call_sid"])
        await called.connect(made["sdp"])
        await until(lambda: len(called.heard) > ENOUGH_BYTES and len(peer.heard) > ENOUGH_BYTES)
        heard = find_tone(samples_of(bytes(called.heard))[-8000:], 8000)
        assert heard.frequency_hz == pytest.approx(BROWSER_HZ, abs=3)
        await hang_up(desk, ring["call_sid"], called)
    record = await desk.record(call["call_sid"])
    measured(record, "a", "b")
    assert await charged(desk, record) == pytest.approx(INBOUND_INR + OUTBOUND_INR)
