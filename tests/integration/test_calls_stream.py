"""Calls that are streamed to a voice agent over a real WebSocket, in and out."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.records.journal import MAX_MARKS
from callcontrol.models import CallStatus
from media.audio import tone
from sip import Answered, Cancelled, Ended, Failed, Progress
from tests.support.agent_bot import Bot
from tests.support.domain import CALLEE, OWN_NUMBER
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

Script = Callable[[Bot], Awaitable[None]]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


async def echo(bot: Bot) -> None:
    """Send back what is heard."""
    while frame := await bot.next():
        if frame["event"] == "media":
            await bot.send(event="media", media={"payload": frame["media"]["payload"]})


async def listen(bot: Bot) -> None:
    await bot.until_closed()


def saying(pcm: bytes, then: Script | None = None) -> Script:
    """Say something at once, then do something else, or close."""

    async def script(bot: Bot) -> None:
        await bot.send(event="media", media={"payload": base64.b64encode(pcm).decode()})
        if then is not None:
            await then(bot)
        else:
            await bot.socket.close()

    return script


def sending(message: dict[str, Any]) -> Script:
    """Send one command, then listen."""

    async def script(bot: Bot) -> None:
        await bot.send(**message)
        await bot.until_closed()

    return script


def frames(bot: Bot, event: str) -> list[dict[str, Any]]:
    return [frame for frame in bot.received if frame["event"] == event]


async def test_an_inbound_call_is_streamed_both_ways(world: World) -> None:
    async with Bot(echo).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        a.open().send_dtmf("5")
        assert await eventually(lambda: bool(frames(bot, "dtmf")))
        a.hang_up()
        record = await world.ended()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
        assert record.status is CallStatus.COMPLETED and record.hangup_source == "caller"
        assert record.stream is not None and record.stream.state == "stopped"
        start = bot.received[1]["start"]
        assert (start["call_sid"], start["stream_sid"]) == (record.call_sid, record.stream.stream_sid)
        assert (start["from"], start["to"], start["direction"]) == ("+919811111111", OWN_NUMBER, "inbound")
        stop = bot.received[-1]
        assert stop["event"] == "stop"
        assert (stop["stop"]["reason"], stop["stop"]["detail"]) == ("callended", "caller_hangup")
        heard = b"".join(base64.b64decode(frame["media"]["payload"]) for frame in frames(bot, "media"))
        assert tone_level_dbfs(heard[-8000:], 440.0) > -20.0
    assert any(isinstance(event, Progress) and event.status == 180 for event in a.events)
    assert [name for name in world.records.event_names() if name != "call.dtmf"] == [
        "call.initiated",
        "call.ringing",
        "call.answered",
        "stream.started",
        "stream.stopped",
        "call.completed",
    ]


async def test_marks_of_the_agent_are_in_the_journal_within_bounds(world: World) -> None:
    async def count(bot: Bot) -> None:
        await bot.send(event="media", media={"payload": base64.b64encode(tone(600.0, 100)).decode()})
        await bot.send(event="mark", mark={"name": "greeting"})
        await bot.until("mark")
        await bot.send(event="media", media={"payload": base64.b64encode(tone(600.0, 5000)).decode()})
        await bot.send(event="mark", mark={"name": "n" * 256})
        await bot.send(event="clear")
        await bot.until("mark")
        for number in range(100):
            await bot.send(event="mark", mark={"name": f"piece {number}"})
        await bot.send(event="hangup", hangup={"drain": True})
        await bot.until_closed()

    async with Bot(count).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
    journal = world.records.journal
    entries = journal.of(record.call_sid)
    marks = [(entry.name, entry.details) for entry in entries if entry.kind == "mark"]
    assert marks[:2] == [("agent.mark", {"name": "greeting"}), ("mark.played", {"name": "greeting"})]
    assert [name for name, _ in marks[2:5]] == ["agent.mark", "agent.clear", "mark.cleared"]
    assert marks[2][1] == {"name": "n" * 64}
    # Many marks leave room for the rest of the call.
    assert len(marks) == MAX_MARKS and journal.dropped(record.call_sid) > 0
    assert entries[-1].kind != "mark"


async def test_sixteen_kilohertz(world: World) -> None:
    async with Bot(echo).running() as bot:
        world.stream(bot.url, sample_rate=16000)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        assert len(base64.b64decode(frames(bot, "media")[0]["media"]["payload"])) == 640
        a.hang_up()
        await world.ended()


async def test_an_outbound_call_is_streamed_and_the_agent_waits_for_the_answer(world: World) -> None:
    def ring(call: PhoneCall) -> None:
        call.ring()

    world.phone.on_call = ring
    async with Bot(echo, opening_frames=1).running() as bot:
        record = await world.place(stream_url=bot.url)
        assert record.status is CallStatus.QUEUED
        b = await world.phone.next_call()
        assert await eventually(lambda: bot.connections == 1), "the agent is connected while it rings"
        await time_passes(0.1)
        assert not frames(bot, "start")
        b.answer()
        b.speak(440.0)
        await b.hears(440.0)
        assert frames(bot, "start")[0]["start"]["direction"] == "outbound"
        b.hang_up()
        record = await world.ended()
        assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "callee")
        assert (record.from_, record.to, record.price_paise) == (OWN_NUMBER, CALLEE, 60)


@pytest.mark.parametrize("status", [401, 404])
async def test_an_agent_that_refuses_leaves_the_caller_unanswered(world: World, status: int) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_get("/ws", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        world.stream(f"ws://127.0.0.1:{runner.addresses[0][1]}/ws")
        a = world.phone.call(OWN_NUMBER, world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 480
        record = await world.ended()
    finally:
        await runner.cleanup()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.FAILED,
        "STREAM_DISCONNECTED",
        "stream",
    )
    data = world.published("stream.failed")["data"]
    assert (data["reason"], data["http_status"], data["attempts"]) == ("http_status", status, 1)
    assert record.price_paise == 0


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ws://unknown.example/ws", "dns"),
        ("ws://forbidden.example/ws", "connect"),
        ("ws://127.0.0.1:1/", "connect"),
    ],
)
async def test_an_agent_that_cannot_be_reached(world: World, url: str, reason: str) -> None:
    world.stream(url)
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    await world.ended()
    assert world.published("stream.failed")["data"]["reason"] == reason


async def test_an_agent_that_cannot_be_reached_takes_an_outbound_call_back(world: World) -> None:
    world.phone.on_call = PhoneCall.ring
    await world.place(stream_url="ws://127.0.0.1:1/")
    b = await world.phone.next_call()
    await b.wait(Cancelled)
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "STREAM_DISCONNECTED")


async def test_the_caller_cancels_while_the_agent_is_being_connected(world: World) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    world.stream(f"ws://127.0.0.1:{port}/")
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Progress)
    a.hang_up()
    record = await world.ended()
    assert (record.status, record.hangup_source) == (CallStatus.NO_ANSWER, "caller")
    server.close()


async def test_an_agent_that_closes_is_heard_to_its_end(world: World) -> None:
    seconds = 1.5
    async with Bot(saying(tone(880.0, int(seconds * 1000)))).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.COMPLETED,
        "NORMAL_CLEARING",
        "stream",
    )
    loud = [
        index
        for index in range(0, len(a.heard) - 320, 320)
        if tone_level_dbfs(bytes(a.heard[index : index + 320]), 880.0) > -16.0
    ]
    assert len(loud) * 0.02 >= seconds - 0.1


async def test_a_short_last_word_is_heard_too(world: World) -> None:
    async with Bot(saying(tone(880.0, 40))).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        begun = asyncio.get_running_loop().time()
        await a.wait(Ended)
        assert asyncio.get_running_loop().time() - begun < 9.0, "the drain limit was not waited for"
        await world.ended()
    assert tone_level_dbfs(bytes(a.heard), 880.0) > -60.0


async def test_an_agent_that_closes_at_once_is_not(world: World) -> None:
    async def leave(bot: Bot) -> None:
        await bot.socket.close(code=4001)

    async with Bot(saying(tone(880.0, 20_000), leave)).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        begun = asyncio.get_running_loop().time()
        await a.wait(Ended)
        assert asyncio.get_running_loop().time() - begun < 9.0, "nothing was waited for"
        assert (await world.ended()).hangup_source == "stream"


@pytest.mark.parametrize("drain", [True, False])
async def test_an_agent_hangs_up(world: World, drain: bool) -> None:
    script = saying(tone(880.0, 800), sending({"event": "hangup", "hangup": {"drain": drain}}))
    async with Bot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
        assert bot.received[-1]["stop"] == {
            "call_sid": record.call_sid,
            "account_sid": record.account_sid,
            "reason": "stopped",
            "detail": "stream_hangup",
        }
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "stream")
    if drain:
        assert any(a.heard), "what it had said is heard"


async def test_an_agent_that_is_lost_ends_the_call(world: World) -> None:
    async def die(bot: Bot) -> None:
        assert bot.request is not None and bot.request.transport is not None
        bot.request.transport.abort()

    async with Bot(die).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "STREAM_DISCONNECTED")
    assert world.published("stream.failed")["data"]["reason"] == "dropped"


async def test_an_agent_sends_digits(world: World) -> None:
    async with Bot(sending({"event": "dtmf", "dtmf": {"digits": "12#"}})).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await a.until(lambda: a.digits == "12#")
        assert await eventually(lambda: bool(frames(bot, "dtmf_sent")))
        a.hang_up()
        await world.ended()


async def test_marks_and_clear(world: World) -> None:
    async def script(bot: Bot) -> None:
        await saying(tone(880.0, 200), sending({"event": "mark", "mark": {"name": "played"}}))(bot)

    async def clear(bot: Bot) -> None:
        await bot.send(event="media", media={"payload": base64.b64encode(tone(880.0, 30_000)).decode()})
        await bot.send(event="mark", mark={"name": "cleared"})
        await time_passes(0.5)
        await bot.send(event="clear")
        await bot.until_closed()

    async with Bot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        assert await eventually(lambda: bool(frames(bot, "mark")))
        assert frames(bot, "mark")[0]["mark"] == {"name": "played", "status": "played"}
        a.hang_up()
        await a.wait(Ended)
        assert await eventually(lambda: world.control.active_calls == 0)
    async with Bot(clear).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        assert await eventually(lambda: bool(frames(bot, "mark")))
        assert frames(bot, "mark")[0]["mark"]["status"] == "cleared"
        await a.hears_silence()
        a.hang_up()
        await a.wait(Ended)


async def test_an_agent_transfers_the_caller(world: World) -> None:
    command = {"event": "transfer", "transfer": {"to": CALLEE, "timeout": 20}}
    async with Bot(sending(command)).running() as bot:
        world.stream(bot.url)

        def ring(call: PhoneCall) -> None:
            call.ring()

        world.phone.on_call = ring
        a = world.phone.call(OWN_NUMBER, world.port)
        b = await world.phone.next_call(2)
        assert b.request.from_.uri.user == OWN_NUMBER
        assert await eventually(lambda: bool(frames(bot, "transfer")))
        b.answer()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
        assert [frame["transfer"]["status"] for frame in frames(bot, "transfer")] == ["ringing", "answered"]
        assert bot.received[-1]["stop"]["detail"] == "transferred"
        a.speak(440.0)
        b.speak(1000.0)
        await b.hears(440.0)
        await a.hears(1000.0)
        b.hang_up()
        await a.wait(Ended)
        record = await world.ended()
    assert (record.hangup_source, record.price_paise) == ("callee", 100)
    assert "call.transferred" in world.records.event_names()


async def test_a_transfer_that_fails_leaves_the_stream_as_it_was(world: World) -> None:
    async def script(bot: Bot) -> None:
        await bot.send(event="transfer", transfer={"to": CALLEE})
        await bot.until("transfer")
        await bot.send(event="transfer", transfer={"to": "+12025550123"})
        await bot.until("transfer")
        await bot.send(event="transfer", transfer={"to": "nobody"})
        await bot.until("error")
        await echo(bot)

    world.phone.on_call = lambda call: call.reject(486)
    async with Bot(script).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        a.speak(440.0)
        await a.hears(440.0)
        failures = [frame["transfer"] for frame in frames(bot, "transfer")]
        assert [(item["status"], item["hangup_cause"]) for item in failures] == [
            ("failed", "USER_BUSY"),
            ("failed", "CALL_REJECTED"),
        ]
        a.hang_up()
        assert (await world.ended()).hangup_source == "caller"


async def test_the_api_hangs_up_a_streamed_call(world: World) -> None:
    async with Bot(listen).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        record = world.records.only()
        await world.control.hangup_call(record.account_sid, record.call_sid)
        await a.wait(Ended)
        record = await world.ended()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
        assert bot.received[-1]["stop"]["detail"] == "api_hangup"
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "api")


async def test_an_agent_that_does_not_answer_a_close_is_left_behind(world: World) -> None:
    async def stall(bot: Bot) -> None:
        await bot.released.wait()

    async with Bot(stall).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.hang_up()
        assert (await world.ended()).status is CallStatus.COMPLETED
