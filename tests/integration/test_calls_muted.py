"""Parties that are muted during a call: who hears them, what lasts, and RTP without a gap."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.events.commands import MuteDirection
from callcontrol.calls.live.requests import LiveUpdate
from fixtures.audio_check import find_tone, read_stereo
from sip import Answered, Confirmed, Ended, OfferAnswered
from tests.support.agent_bot import Bot
from tests.support.domain import ACCOUNT_SID, OWN_NUMBER, make_carrier, make_gateway
from tests.support.phone import Phone, PhoneCall, engine_settings, eventually
from tests.support.rtp_counter import counter
from tests.support.waiting import time_passes
from tests.support.world import World, running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    media = engine_settings(continuous=True)
    async with running(tmp_path, media=media, media_timeout_s=0.0, hold_music="none") as world:
        world.directory.put(carriers=[make_carrier(allows_refer=True)])
        yield world


def runner_of(world: World) -> CallRunner:
    runner = world.control.active(world.records.only().call_sid)
    assert runner is not None
    return runner


async def mute(world: World, *, muted: bool = True, direction: MuteDirection = "says") -> None:
    """Mute the first party of the only call, or end that."""
    update = LiveUpdate(mute_status="mute" if muted else "unmute", mute_direction=direction)
    await world.control.update_call(ACCOUNT_SID, world.records.only().call_sid, update)


def shown(world: World) -> list[tuple[str | None, str | None]]:
    """Party and mute of each leg, as pages show them."""
    return [(leg.name, leg.muted) for leg in runner_of(world).legs]


async def talking(world: World) -> tuple[PhoneCall, PhoneCall]:
    """Two parties, each of whom says a tone of its own: 440 and 1000 Hz."""
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    await b.wait(Confirmed)
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    return a, b


async def test_the_other_leg_gets_rtp_without_a_gap_while_one_is_muted_and_heard_again(world: World) -> None:
    async with counter() as far:
        world.forward()
        world.phone.on_call = far.answer
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        for _ in range(3):
            await far.check(2.0)
            await mute(world)
            await far.check(2.0)
            await mute(world, muted=False)
        a.hang_up()
        await world.ended()


async def test_a_leg_that_hears_nobody_gets_rtp_without_a_gap(world: World) -> None:
    async with counter() as far:
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port, body=far.sdp())
        await a.wait(Answered)
        (await world.phone.next_call(2)).speak(1000.0)
        for _ in range(3):
            await far.check(2.0)
            await mute(world, direction="both")
            await far.check(2.0)
            await mute(world, muted=False, direction="both")
        a.hang_up()
        await world.ended()


async def test_a_mute_lasts_over_new_offers_and_over_a_transfer_of_the_other_party(world: World) -> None:
    carol = Phone(world.far_engine)
    await carol.start()
    world.phones.append(carol)
    world.directory.put(
        carriers=[make_carrier("carrier-c", prefixes=("+999",), allows_refer=True)],
        gateways=[make_gateway("gateway-c", port=carol.port, carrier_sid="carrier-c")],
    )
    a, b = await talking(world)
    await mute(world)
    await b.hears_silence()
    await a.hears(1000.0)
    assert shown(world) == [("a", "says"), ("b", None)]
    for describe in (PhoneCall.hold, PhoneCall.resume):
        a.events.clear()
        describe(a)
        await a.wait(OfferAnswered)
        await b.hears_silence()
    await a.hears(1000.0)
    b.session.refer(f"sip:carol@127.0.0.1:{carol.port}")
    c = await carol.next_call()
    await b.wait(Ended)
    c.speak(1500.0)
    await a.hears(1500.0)
    await c.hears_silence()
    assert shown(world) == [("a", "says"), ("b", None)]
    await mute(world, muted=False)
    await c.hears(440.0)
    assert shown(world) == [("a", None), ("b", None)]
    names = [entry.name for entry in world.records.journal.of(world.records.only().call_sid)]
    assert [name for name in names if name.endswith("mute")] == ["mute", "unmute"]
    a.hang_up()
    await world.ended()


async def test_the_recording_has_silence_where_a_party_was_muted(world: World) -> None:
    a, b = await talking(world)
    await mute(world)
    await b.hears_silence()
    update = LiveUpdate(recording="start")
    await world.control.update_call(ACCOUNT_SID, world.records.only().call_sid, update)
    await time_passes(0.6)  # Long enough to tell tones apart.
    a.hang_up()
    record = await world.ended()
    assert await eventually(lambda: record.recording_status == "completed")
    assert record.recording_path is not None
    said, heard, rate_hz = read_stereo(Path(record.recording_path))
    assert not any(said)
    assert abs(find_tone(heard, rate_hz).frequency_hz - 1000.0) < 10


async def test_the_agent_of_a_muted_party_hears_silence(world: World) -> None:
    heard = bytearray()

    async def listens(bot: Bot) -> None:
        while frame := await bot.next():
            if frame["event"] == "media":
                heard.extend(base64.b64decode(frame["media"]["payload"]))

    async def hears(*, anything: bool) -> None:
        """Wait for half a second that the agent gets in full."""
        size = 8000
        heard.clear()
        assert await eventually(lambda: len(heard) >= size and any(heard[-size:]) is anything)

    async with Bot(listens).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await hears(anything=True)
        await mute(world)
        await hears(anything=False)
        assert shown(world) == [("a", "says")]
        await mute(world, muted=False)
        await hears(anything=True)
        a.hang_up()
        await asyncio.wait_for(bot.closed.wait(), 40)
        await world.ended()
