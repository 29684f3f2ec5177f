"""Holding on bridged calls: who hears what, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

import pytest

from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.errors import CallEnded
from callcontrol.models import CallStatus
from media.audio import Clip, hold_music, tone, write_wav
from sip import Answered, Confirmed, Ended, OfferAnswered
from tests.support.domain import ACCOUNT_SID, OWN_NUMBER, make_carrier, make_gateway
from tests.support.levels import tone_level_dbfs
from tests.support.phone import Phone, PhoneCall, eventually
from tests.support.world import World, running

MUSIC_HZ = 620.0
WAYS_TO_HOLD: dict[str, Callable[[PhoneCall], None]] = {
    "sendonly": PhoneCall.hold,
    "inactive": lambda call: call.hold("inactive"),
    "0.0.0.0": PhoneCall.hold_by_address,
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    music = tmp_path / "music.wav"
    music.write_bytes(write_wav(Clip(tone(MUSIC_HZ, 1000))))
    async with running(tmp_path, hold_music=str(music)) as world:
        yield world


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


async def change(call: PhoneCall, how: Callable[[PhoneCall], None]) -> None:
    call.events.clear()
    how(call)
    await call.wait(OfferAnswered)


async def hears_only(call: PhoneCall, freq_hz: float, other_hz: float) -> None:
    """Wait until a tone is heard and, once the moment in which it took over is past, nothing of another."""
    await call.hears(freq_hz)
    await call.until(
        lambda: call.hears_now(freq_hz) and tone_level_dbfs(bytes(call.heard[-6400:]), other_hz) < -40
    )


@pytest.mark.parametrize("way", WAYS_TO_HOLD)
async def test_the_party_on_hold_hears_music_until_it_is_fetched_back(world: World, way: str) -> None:
    a, b = await talking(world)
    for holder, held, spoken_hz, answered_hz in ((a, b, 440.0, 1000.0), (b, a, 1000.0, 440.0)):
        await change(holder, WAYS_TO_HOLD[way])
        await hears_only(held, MUSIC_HZ, spoken_hz)
        await holder.hears_silence()
        await change(holder, PhoneCall.resume)
        await held.hears(spoken_hz)
        await holder.hears(answered_hz)
    a.hang_up()
    record = await world.ended()
    assert record.hangup_cause == "NORMAL_CLEARING"


async def test_two_that_hold_each_other(world: World) -> None:
    a, b = await talking(world)
    await change(a, PhoneCall.hold)
    await change(b, PhoneCall.hold)
    await a.hears_silence()
    await b.hears_silence()
    await change(a, PhoneCall.resume)
    await a.hears(MUSIC_HZ)
    await change(b, PhoneCall.resume)
    await a.hears(1000.0)
    await b.hears(440.0)
    b.hang_up()
    await world.ended()


async def test_a_party_that_is_transferred_out_of_hold_hears_the_target_and_no_music(world: World) -> None:
    carol = Phone(world.far_engine)
    await carol.start()
    world.phones.append(carol)
    world.directory.put(
        carriers=[make_carrier(allows_refer=True), make_carrier("carrier-2", prefixes=("+9198990",))],
        gateways=[make_gateway("gateway-c", port=carol.port, carrier_sid="carrier-2")],
    )
    a, b = await talking(world)
    await change(a, PhoneCall.hold)
    await b.hears(MUSIC_HZ)
    a.session.refer("tel:+919899000000")
    c = await carol.next_call()
    c.speak(1500.0)
    await hears_only(b, 1500.0, MUSIC_HZ)
    await c.hears(1000.0)
    b.hang_up()
    await world.ended()


async def test_music_is_played_to_whoever_the_call_is_joined_with(tmp_path: Path) -> None:
    async with running(tmp_path, hold_music="tones") as world:
        a, b = await talking(world)
        await change(a, PhoneCall.hold)
        first_note_hz = 523.25
        await b.until(lambda: tone_level_dbfs(bytes(b.heard[-6400:]), first_note_hz) > -35)
        assert max(abs(sample) for sample in memoryview(hold_music()).cast("h")) < 8000
        a.hang_up()
        await b.wait(Ended)
        await world.ended()


async def test_without_music_the_party_on_hold_hears_what_the_holder_sends(tmp_path: Path) -> None:
    async with running(tmp_path, hold_music="none") as world:
        a, b = await talking(world)
        await change(a, PhoneCall.hold)
        assert await eventually(lambda: b.hears_now(440.0))
        a.hang_up()
        await world.ended()


async def test_a_holder_that_is_gone_for_too_long_ends_the_call(tmp_path: Path) -> None:
    async with running(tmp_path, media_timeout_s=30.0, hold_timeout_s=1.0) as world:
        a, b = await talking(world)
        await change(a, lambda call: call.hold("inactive"))
        a.open().close()
        await b.wait(Ended)
        await a.wait(Ended)
        record = await world.ended()
        assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "MEDIA_TIMEOUT")
        assert record.price_paise == 40 + 60, "nothing is charged after the end"


async def test_a_holder_is_not_waited_for_by_the_media_timeout(tmp_path: Path) -> None:
    async with running(tmp_path, media_timeout_s=1.0) as world:
        a, b = await talking(world)
        await change(a, lambda call: call.hold("inactive"))
        a.open().close()
        assert not await eventually(lambda: bool(world.records.finished), 2.5)
        b.hang_up()
        assert (await world.ended()).hangup_cause == "NORMAL_CLEARING"


async def mute(world: World, update: LiveUpdate) -> None:
    await world.control.update_call(ACCOUNT_SID, world.records.only().call_sid, update)


async def test_a_muted_party_hears_and_is_not_heard_or_the_contrary(world: World) -> None:
    a, b = await talking(world)
    sides: list[tuple[Literal["a", "b"], PhoneCall, PhoneCall, float, float]] = [
        ("a", a, b, 440.0, 1000.0),
        ("b", b, a, 1000.0, 440.0),
    ]
    for party, muted, other, muted_hz, other_hz in sides:
        await mute(world, LiveUpdate(party=party, mute_status="mute"))
        await other.hears_silence()
        await muted.hears(other_hz)
        await mute(world, LiveUpdate(party=party, mute_status="mute", mute_direction="hears"))
        await muted.hears_silence()
        await mute(world, LiveUpdate(party=party, mute_status="unmute", mute_direction="both"))
        await other.hears(muted_hz)
        await muted.hears(other_hz)
    a.hang_up()
    await world.ended()
    with pytest.raises(CallEnded):
        await mute(world, LiveUpdate(mute_status="mute"))
