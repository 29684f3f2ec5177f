"""The life of a stream in whole calls: agents come back, hold, mute, record, leave during a transfer."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.models import CallStatus
from media.aio.agent_settings import AgentStreamSettings
from media.audio import tone
from sip import Answered, Ended
from tests.support.agent_bot import Bot
from tests.support.domain import CALLEE, OWN_NUMBER
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.world import World, running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path, hold_music="tones") as world:
        yield world


def frames(bot: Bot, event: str) -> list[dict[str, Any]]:
    return [frame for frame in bot.received if frame["event"] == event]


async def echo(bot: Bot) -> None:
    """Send back what is heard."""
    while frame := await bot.next():
        if frame["event"] == "media":
            await bot.send(event="media", media={"payload": frame["media"]["payload"]})


async def test_an_agent_whose_connection_broke_comes_back(world: World) -> None:
    async def break_once(bot: Bot) -> None:
        if bot.connections > 1:
            await echo(bot)
            return
        for _ in range(10):
            await bot.until("media")
        assert bot.request is not None and bot.request.transport is not None
        bot.request.transport.abort()

    async with Bot(break_once).running() as bot:
        world.stream(bot.url, stream_max_retries=3)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        first, second = [frame["start"] for frame in frames(bot, "start")]
        assert first["call_sid"] == second["call_sid"] and "reconnect" not in first
        assert second["reconnect"] is True and second["attempt"] == 1
        assert second["previous_stream_sid"] == first["stream_sid"] != second["stream_sid"]
        again = [frame for frame in frames(bot, "media") if frame["stream_sid"] == second["stream_sid"]]
        assert again[0]["media"]["timestamp"] == "20", "the clock of a stream begins with it"
        a.hang_up()
        record = await world.ended()
    assert record.stream is not None and record.stream.stream_sid == second["stream_sid"]
    names = [name for name in world.records.event_names() if name.startswith("stream.")]
    assert names == ["stream.started", "stream.reconnecting", "stream.started", "stream.stopped"]


async def test_an_agent_that_stays_away_ends_the_call(world: World) -> None:
    async def die(bot: Bot) -> None:
        await bot.until("media")
        await bot.socket.close(code=1011)

    async with Bot(die).running() as bot:
        world.stream(bot.url, stream_max_retries=1)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
        assert bot.connections == 2
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "STREAM_DISCONNECTED")
    assert world.published("stream.failed")["data"]["close_code"] == 1011


async def test_an_agent_holds_the_caller(world: World) -> None:
    async def held(bot: Bot) -> None:
        await bot.send(event="hold", hold={"active": True})
        await bot.until("hold")
        for _ in range(30):
            await bot.until("media")
        await bot.send(event="hold", hold={"active": False})
        await echo(bot)

    async with Bot(held).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        assert await eventually(lambda: len(frames(bot, "hold")) == 2)
        assert any(a.heard), "the caller hears music"
        order = [frame for frame in bot.received if frame["event"] in ("media", "hold")]
        began = order.index(frames(bot, "hold")[0])
        meanwhile = order[began + 5 : began + 25]
        heard = b"".join(base64.b64decode(frame["media"]["payload"]) for frame in meanwhile)
        assert not any(heard), "its agent hears silence"
        await a.hears(440.0)
        a.hang_up()
        await world.ended()


async def test_an_agent_mutes_itself_and_records(world: World) -> None:
    async def script(bot: Bot) -> None:
        for action in ("pause", "start", "pause", "resume", "stop", "start"):
            await bot.send(event="record", record={"action": action})
        await bot.send(event="mute", mute={"active": True})
        await bot.until("mute")
        await bot.until_closed()

    async with Bot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        assert await eventually(lambda: bool(frames(bot, "mute")))
        since = bot.received.index(frames(bot, "mute")[0])
        assert await eventually(
            lambda: sum(frame["event"] == "media" for frame in bot.received[since + 5 :]) > 20
        )
        later = [frame for frame in bot.received[since + 5 :] if frame["event"] == "media"]
        assert not any(b"".join(base64.b64decode(frame["media"]["payload"]) for frame in later[3:]))
        a.hang_up()
        record = await world.ended()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
    done = [frame["record"]["action"] for frame in frames(bot, "record")]
    assert done == ["start", "pause", "resume", "stop"]
    assert [frame["error"]["ref"] for frame in frames(bot, "error")] == ["record", "record"]
    assert record.recording_status == "completed"


async def test_an_agent_may_leave_before_its_transfer_is_answered(world: World) -> None:
    async def leave(bot: Bot) -> None:
        await bot.send(event="transfer", transfer={"to": CALLEE})
        await bot.until("transfer")
        await bot.socket.close()

    def ring(call: PhoneCall) -> None:
        call.ring()

    world.phone.on_call = ring
    async with Bot(leave).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        b = await world.phone.next_call(2)
        assert await eventually(lambda: bot.socket.closed)
        await a.until(lambda: tone_level_dbfs(bytes(a.heard[-3200:]), 400.0) > -40.0)
        b.answer()
        a.speak(440.0)
        b.speak(1000.0)
        await b.hears(440.0)
        await a.hears(1000.0)
        b.hang_up()
        await a.wait(Ended)
        record = await world.ended()
    assert record.hangup_source == "callee"
    assert "call.transferred" in world.records.event_names()


async def test_what_agents_are_told_where_it_is_asked_for(tmp_path: Path) -> None:
    async def listen(bot: Bot) -> None:
        await bot.until_closed()

    async with running(tmp_path, streams=AgentStreamSettings()) as world, Bot(listen).running() as bot:
        world.stream(f"{bot.url}?stream_events=hold")
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        assert await eventually(lambda: bool(frames(bot, "media")))
        a.hold()
        assert await eventually(lambda: [frame["hold"]["active"] for frame in frames(bot, "hold")] == [True])
        a.resume()
        assert await eventually(
            lambda: [frame["hold"]["active"] for frame in frames(bot, "hold")] == [True, False]
        )
        a.hang_up()
        await world.ended()


async def test_an_agent_is_told_when_too_much_of_its_audio_waits(world: World) -> None:
    async def burst(bot: Bot) -> None:
        payload = base64.b64encode(bytes(16_000)).decode()
        for _ in range(70):
            await bot.send(event="media", media={"payload": payload})
        await bot.until("buffer")
        await bot.send(event="clear")
        await bot.until("buffer")
        await bot.until_closed()

    async with Bot(burst).running() as bot:
        world.stream(f"{bot.url}?stream_events=buffer")
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        assert await eventually(lambda: len(frames(bot, "buffer")) == 2)
        full, free = [frame["buffer"] for frame in frames(bot, "buffer")]
        assert (full["state"], free["state"]) == ("xoff", "xon")
        assert full["level_ms"] >= 60_000 > 30_000 >= free["level_ms"]
        a.hang_up()
        await world.ended()


async def test_an_agent_may_hear_both_parties(world: World) -> None:
    async def talk(bot: Bot) -> None:
        while frame := await bot.next():
            if frame["event"] == "media" and frame["media"]["track"] == "inbound":
                said = base64.b64encode(tone(900.0, 20)).decode()
                await bot.send(event="media", media={"payload": said})

    def level(bot: Bot, track: str, freq_hz: float) -> float:
        heard = [frame for frame in frames(bot, "media") if frame["media"]["track"] == track][-20:]
        pcm = b"".join(base64.b64decode(frame["media"]["payload"]) for frame in heard)
        return tone_level_dbfs(pcm, freq_hz) if len(pcm) >= 6400 else -100.0

    async with Bot(talk).running() as bot:
        world.stream(bot.url, stream_track="both")
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        assert await eventually(lambda: level(bot, "inbound", 440.0) > -25.0)
        assert await eventually(lambda: level(bot, "outbound", 900.0) > -25.0)
        assert level(bot, "inbound", 900.0) < -40.0
        a.hang_up()
        await world.ended()
