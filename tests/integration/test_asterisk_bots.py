"""Bots that were written for Asterisk, on whole calls: AudioSocket, and chan_websocket in either form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from callcontrol.models import CallStatus
from fixtures.asterisk import MOST_MESSAGE_BYTES, AudioSocketBot, AudioSocketCall, MediaBot, MediaCall
from media.audio import l16_to_mulaw, tone
from sip import Answered, Ended
from tests.support.dialect_agent import DECODERS
from tests.support.domain import OWN_NUMBER
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

WORDS_AND_JSON = pytest.mark.parametrize("protocol", ["asterisk", "asterisk_json"])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


async def wait(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE_S)


# --- AudioSocket ---


@pytest.mark.parametrize("rate", [8000, 16_000])
async def test_an_audiosocket_bot_hears_and_is_heard_and_gets_keys(world: World, rate: int) -> None:
    async with AudioSocketBot(echo=True).running() as bot:
        world.stream(bot.url, sample_rate=rate)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        a.open().send_dtmf("5")
        assert await eventually(lambda: bot.calls[0].digits == "5")
        a.hang_up()
        record = await world.ended()
        (call,) = bot.calls
        await wait(call.ended)
    assert (call.identifier, call.rate) == (UUID(record.call_sid), rate)
    assert call.hung_up and not call.problems
    assert tone_level_dbfs(bytes(call.heard[-2 * rate :]), 440.0, rate) > -20.0
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "caller")
    assert record.stream is not None and record.stream.protocol == "audiosocket"


async def test_the_identifier_of_a_call_may_be_the_customers(world: World) -> None:
    asked = "40325ec2-5efd-4bd3-805f-53576e581d13"
    async with AudioSocketBot().running() as bot:
        world.stream(bot.url, custom_parameters={"uuid": asked})
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        assert await eventually(lambda: bool(bot.calls) and bot.calls[0].identifier == UUID(asked))
        a.hang_up()
        await world.ended()


async def test_audio_of_another_rate_than_the_streams_is_converted(world: World) -> None:
    async def script(call: AudioSocketCall) -> None:
        call.say(tone(1000, 5000, sample_rate=16_000), 16_000)

    async with AudioSocketBot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await a.hears(1000.0)
        a.hang_up()
        await world.ended()


@pytest.mark.parametrize(
    "leave",
    [
        AudioSocketCall.hang_up,
        lambda call: call.send(0xFF, b"\1"),
        lambda call: call.writer.close(),
        lambda call: call.writer.write_eof(),
    ],
    ids=["hangup", "error", "close", "end of output"],
)
async def test_an_audiosocket_bot_that_leaves_ends_the_call(
    world: World, leave: Callable[[AudioSocketCall], None]
) -> None:
    async def script(call: AudioSocketCall) -> None:
        while len(call.heard) < 16_000:
            await time_passes(0.02)
        leave(call)

    async with AudioSocketBot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
        await wait(bot.calls[0].ended)
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "stream")
    assert record.hangup_cause == "NORMAL_CLEARING"


async def test_an_audiosocket_bot_that_closes_is_heard_to_its_end(world: World) -> None:
    async def script(call: AudioSocketCall) -> None:
        call.say(tone(1000, 800))
        call.writer.write_eof()

    async with AudioSocketBot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await a.hears(1000.0)
        await a.wait(Ended)
        assert (await world.ended()).hangup_source == "stream"


async def test_an_audiosocket_connection_that_breaks_is_opened_anew(world: World) -> None:
    async def script(call: AudioSocketCall) -> None:
        if len(bot.calls) == 1:
            # Half a frame is no end.
            call.writer.write(b"\x10\x01")
            call.writer.close()

    async with AudioSocketBot(script).running() as bot:
        world.stream(bot.url, stream_max_retries=2)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        assert await eventually(lambda: len(bot.calls) == 2 and len(bot.calls[1].heard) > 8000)
        a.hang_up()
        await world.ended()
    names = [name for name in world.records.event_names() if name.startswith("stream.")]
    assert names == ["stream.started", "stream.reconnecting", "stream.started", "stream.stopped"]


async def test_nobody_listens(world: World) -> None:
    async with AudioSocketBot().running() as bot:
        url = bot.url
    world.stream(url)
    world.phone.call(OWN_NUMBER, world.port)
    assert (await world.ended()).hangup_cause == "STREAM_DISCONNECTED"
    assert world.published("stream.failed")["data"]["reason"] == "connect"


# --- chan_websocket ---


async def talk(
    world: World, protocol: str, script: Callable[[MediaCall], Any], **binding: Any
) -> tuple[MediaCall, Any]:
    """Run a call that a bot conducts to its end; returns the bot's side, and what the caller heard."""
    async with MediaBot(script).running() as bot:
        world.stream(bot.url, stream_protocol=protocol, **binding)
        a = world.phone.call(OWN_NUMBER, world.port)
        a.kept_ms = 20_000
        await a.wait(Ended)
        record = await world.ended()
        (call,) = bot.calls
        await wait(call.ended)
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "stream")
    assert not call.problems
    return call, bytes(a.heard)


@WORDS_AND_JSON
@pytest.mark.parametrize(
    ("fields", "format"),
    [
        ({}, "ulaw"),
        ({"encoding": "alaw"}, "alaw"),
        ({"encoding": "l16"}, "slin"),
        ({"sample_rate": 16_000}, "slin16"),
    ],
)
async def test_a_media_bot_hears_and_is_heard_in_every_format(
    world: World, protocol: str, fields: dict[str, Any], format: str
) -> None:
    async with MediaBot(echo=True).running() as bot:
        world.stream(bot.url, stream_protocol=protocol, **fields)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        a.open().send_dtmf("#")
        (call,) = bot.calls
        assert (await asyncio.wait_for(call.until("DTMF_END"), PATIENCE_S))["digit"] == "#"
        a.hang_up()
        record = await world.ended()
        await wait(call.ended)
    assert call.start["format"] == format and call.start["channel_id"] == record.call_sid
    assert call.socket.close_code == 1000 and not call.problems
    rate = fields.get("sample_rate", 8000)
    encoding = {"ulaw": "mulaw", "alaw": "alaw"}.get(format, "l16")
    heard = DECODERS[encoding](bytes(call.heard))  # type: ignore[index]  # A name of the table above.
    assert tone_level_dbfs(heard[-2 * rate :], 440.0, rate) > -20.0


@WORDS_AND_JSON
async def test_a_file_in_one_message_is_played_and_reported_and_the_bot_hangs_up(
    world: World, protocol: str
) -> None:
    async def script(call: MediaCall) -> None:
        audio = l16_to_mulaw(tone(1000, 3000))[:-77]
        assert len(audio) < MOST_MESSAGE_BYTES and len(audio) % 160
        await call.command("ANSWER")
        await call.say(audio, "file 1")
        done = await call.until("MEDIA_BUFFERING_COMPLETED")
        assert done.get("correlation_id", done.get("words")) == "file 1"
        await call.command("REPORT_QUEUE_DRAINED")
        await call.until("QUEUE_DRAINED")
        await call.command("HANGUP")

    call, heard = await talk(world, protocol, script)
    loud = sum(tone_level_dbfs(heard[at : at + 1600], 1000) > -14.0 for at in range(0, len(heard), 1600))
    # Tenths of a second: all of it was heard before it was said to be done.
    assert 28 <= loud <= 31
    assert [said["event"] for said in call.events][-2:] == ["MEDIA_BUFFERING_COMPLETED", "QUEUE_DRAINED"]


async def test_linear_audio_that_is_cut_within_samples_is_whole(world: World) -> None:
    async def script(call: MediaCall) -> None:
        pcm = tone(1000, 1000, sample_rate=16_000)
        await call.command("START_MEDIA_BUFFERING")
        for at in range(0, len(pcm), 999):
            await call.socket.send_bytes(pcm[at : at + 999])
        await call.command("STOP_MEDIA_BUFFERING")
        await call.until("MEDIA_BUFFERING_COMPLETED")
        await call.command("HANGUP")

    _, heard = await talk(world, "asterisk", script, sample_rate=16_000)
    levels = [tone_level_dbfs(heard[at : at + 3200], 1000) for at in range(0, len(heard) - 3200, 800)]
    # Half a sample out of place would be noise.
    assert max(levels) == pytest.approx(-10.0, abs=1.5)


@WORDS_AND_JSON
async def test_a_flush_interrupts_and_what_was_flushed_is_not_reported(world: World, protocol: str) -> None:
    async def script(call: MediaCall) -> None:
        await call.command("MARK_MEDIA", "before")
        await call.until("MEDIA_MARK_PROCESSED")
        await call.say(l16_to_mulaw(tone(1000, 15_000)), "long")
        await call.command("MARK_MEDIA", "after")
        await call.command("REPORT_QUEUE_DRAINED")
        await time_passes(1.0)
        await call.command("GET_STATUS")
        assert 600 < int((await call.until("STATUS"))["queue_length"]) < 750
        await call.command("FLUSH_MEDIA")
        await call.until("QUEUE_DRAINED")
        await call.command("GET_STATUS")
        assert int((await call.until("STATUS", 2))["queue_length"]) == 0
        await call.say(l16_to_mulaw(tone(440, 1000)))
        await call.until("MEDIA_BUFFERING_COMPLETED")
        await call.command("HANGUP")

    call, heard = await talk(world, protocol, script)
    assert len(call.told("MEDIA_MARK_PROCESSED")) == 1
    assert len(call.told("MEDIA_BUFFERING_COMPLETED")) == 1
    assert max(tone_level_dbfs(heard[at : at + 1600], 440) for at in range(0, len(heard), 1600)) > -14.0


@WORDS_AND_JSON
async def test_a_pause_keeps_the_audio_and_plays_silence(world: World, protocol: str) -> None:
    async def script(call: MediaCall) -> None:
        await call.say(l16_to_mulaw(tone(1000, 2000)), "x")
        await time_passes(0.5)
        await call.command("PAUSE_MEDIA")
        await time_passes(2.0)
        await call.command("GET_STATUS")
        status = await call.until("STATUS")
        assert str(status["media_paused"]).lower() == "true"
        assert 60 < int(status["queue_length"]) < 90
        assert not call.told("MEDIA_BUFFERING_COMPLETED")
        await call.command("CONTINUE_MEDIA")
        await call.until("MEDIA_BUFFERING_COMPLETED")
        await call.command("HANGUP")

    _, heard = await talk(world, protocol, script)
    loud = [tone_level_dbfs(heard[at : at + 1600], 1000) > -14.0 for at in range(0, len(heard), 1600)]
    first, last = loud.index(True), len(loud) - loud[::-1].index(True)
    # Two seconds of sound, with two of silence in them.
    assert 18 <= sum(loud) <= 21 and last - first >= 37


@WORDS_AND_JSON
async def test_a_bot_far_ahead_is_told_to_pause_and_to_go_on(world: World, protocol: str) -> None:
    async def script(call: MediaCall) -> None:
        await call.say(l16_to_mulaw(tone(1000, 19_000)))
        await call.until("MEDIA_XOFF")
        await call.command("GET_STATUS")
        assert str((await call.until("STATUS"))["queue_full"]).lower() == "true"
        await call.until("MEDIA_XON")
        await call.command("HANGUP")

    call, _ = await talk(world, protocol, script)
    assert [said["event"] for said in call.events] == ["MEDIA_START", "MEDIA_XOFF", "STATUS", "MEDIA_XON"]


async def test_what_asterisk_does_not_know_is_answered_and_borne(world: World) -> None:
    async def script(call: MediaCall) -> None:
        await call.command("REWIND_MEDIA")
        assert "unknown_event" in str(await call.until("ERROR"))
        await call.command("SET_MEDIA_DIRECTION", direction="in")
        assert "refused" in str(await call.until("ERROR", 2))
        await call.socket.send_str('{"event":"hangup"}')

    await talk(world, "asterisk_json", script)
