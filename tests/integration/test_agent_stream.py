"""A stream to a voice agent over a loopback WebSocket."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_stream import AgentStream
from media.streams import (
    AgentClear,
    AgentClosed,
    AgentDtmf,
    AgentEvent,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentMarkReached,
    AgentTransfer,
    StreamConnectError,
    StreamSetup,
)
from tests.support.agent_bot import Bot, FakeTap, no_leaks, to_loopback
from tests.support.agent_paths import Carrier
from tests.support.waiting import time_passes


@pytest.fixture(autouse=True)
async def leaks(carrier: None) -> AsyncIterator[None]:
    async with no_leaks():
        yield


class Events:
    """Events of a stream, to be waited for; its marks are beside them."""

    def __init__(self) -> None:
        self.seen: list[AgentEvent] = []
        self.marks: list[AgentEvent] = []
        self._queue: asyncio.Queue[AgentEvent] = asyncio.Queue()

    def __call__(self, event: AgentEvent) -> None:
        if isinstance(event, AgentMark | AgentMarkReached):
            self.marks.append(event)
            return
        self.seen.append(event)
        self._queue.put_nowait(event)

    async def next(self) -> AgentEvent:
        async with asyncio.timeout(40):
            return await self._queue.get()


def setup(url: str, **changes: Any) -> StreamSetup:
    values = {"stream_sid": "s-1", "call_sid": "c-1", "account_sid": "a-1", "from_": "+91987", "to": "+91804"}
    return StreamSetup(url=url, **(values | changes))


async def connect(
    bot: Bot, events: Callable[[AgentEvent], None], *, announce: bool = True, **settings: Any
) -> AgentStream:
    return await AgentStream.connect(
        setup(bot.url),
        resolve=to_loopback,
        on_event=events,
        settings=AgentStreamSettings(**settings),
        announce=announce,
        carrier=Carrier.stream,
    )


def payload(frame: dict[str, Any]) -> bytes:
    return base64.b64decode(frame["media"]["payload"])


async def media(bot: Bot, audio: bytes) -> None:
    await bot.send(event="media", media={"payload": base64.b64encode(audio).decode()})


async def wait_closed(bot: Bot) -> None:
    await bot.until_closed()


async def test_a_whole_conversation() -> None:
    async def converse(bot: Bot) -> None:
        assert payload(await bot.until("media")) == b"\1\2" * 160
        await media(bot, b"\5\6" * 320)
        await bot.send(event="mark", mark={"name": "greeting"})
        assert (await bot.until("mark"))["mark"] == {"name": "greeting", "status": "played"}
        await bot.send(event="mark", mark={"name": "answer"})
        await bot.send(event="clear")
        assert (await bot.until("mark"))["mark"] == {"name": "answer", "status": "cleared"}
        assert (await bot.until("dtmf"))["dtmf"] == {"digit": "5", "duration": "160"}
        await bot.send(event="dtmf", dtmf={"digits": "1#"})
        assert (await bot.until("dtmf_sent"))["dtmf"] == {"digits": "1#"}
        await bot.send(event="transfer", transfer={"to": "+919812345678"})
        assert (await bot.until("transfer"))["transfer"] == {"status": "ringing"}
        await bot.send(event="hold", hold={"active": True})
        error = (await bot.until("error"))["error"]
        assert error == {"code": "refused", "message": "no hold here", "ref": "hold"}
        await bot.send(event="hangup", hangup={"drain": False, "reason": "done"})
        assert (await bot.until("stop"))["stop"] == {
            "call_sid": "c-1",
            "account_sid": "a-1",
            "reason": "stopped",
            "detail": "stream_hangup",
        }
        await bot.until_closed()

    bot, events = Bot(converse), Events()
    async with bot.running():
        stream = await connect(bot, events)
        tap = FakeTap(stream.mark_reached)
        stream.start(tap)
        stream.send_audio(b"\1\2" * 160 + b"\3\4" * 160)
        await tap.until(lambda tap: "mark greeting" in tap.done)
        assert bytes(tap.written) == b"\5\6" * 320
        tap.reach()
        assert await events.next() == AgentClear()
        stream.send_dtmf("5", 160)
        digits = await events.next()
        assert digits == AgentDtmf("1#")
        stream.accept(digits)
        assert await events.next() == AgentTransfer("+919812345678")
        stream.transfer_status("ringing")
        hold = await events.next()
        assert isinstance(hold, AgentHold)
        stream.refuse("hold", "no hold here")
        assert await events.next() == AgentHangup(False, "done", ends_call=True)
        await stream.stop("stopped", "stream_hangup")

    # Each mark is told, and then what became of it.
    played, cleared = AgentMarkReached("greeting"), AgentMarkReached("answer", cleared=True)
    assert events.marks == [AgentMark("greeting"), played, AgentMark("answer"), cleared]
    stream.mark_reached("late")
    assert len(events.marks) == 4, "nothing is told after the end"
    assert [frame["event"] for frame in bot.received[:4]] == ["connected", "start", "media", "media"]
    numbered = [int(frame["sequence_number"]) for frame in bot.received[1:]]
    assert numbered == list(range(1, len(numbered) + 1))
    sent = [frame["media"] for frame in bot.received if frame["event"] == "media"]
    assert [(item["chunk"], item["timestamp"]) for item in sent] == [("1", "20"), ("2", "40")]
    assert bot.close_code == 1000
    assert stream.closed
    assert (stream.frames_sent, stream.frames_dropped) == (2, 0)
    assert not any(isinstance(event, AgentClosed) for event in events.seen)


async def test_the_upgrade_request() -> None:
    bot = Bot(wait_closed)
    async with bot.running():
        url = f"{bot.url};v=1/a%20b?customer=42&empty=&x=%2F&token=a+b"
        stream = await AgentStream.connect(
            setup(url, secret="key", extra_headers=(("X-Trace", "7"),)),
            resolve=to_loopback,
            on_event=print,
            carrier=Carrier.stream,
        )
        await stream.stop()
    request = bot.request
    assert request is not None
    assert request.raw_path == url.partition(str(bot.port))[2]
    assert request.headers["Host"] == f"127.0.0.1:{bot.port}"
    assert request.headers["User-Agent"] == "trunkline/1.0"
    assert request.headers["X-Call-Sid"] == "c-1"
    assert request.headers["X-Service-Signature"].startswith("sha256=")
    assert request.headers["X-Trace"] == "7"
    assert "Sec-WebSocket-Protocol" not in request.headers
    assert "Sec-WebSocket-Extensions" not in request.headers


async def test_an_outbound_call_is_described_when_it_is_answered() -> None:
    async def listen(bot: Bot) -> None:
        await bot.send(event="mark", mark={"name": "early"})
        assert [frame["event"] for frame in bot.received] == ["connected"]
        await bot.until("start")
        await bot.until_closed()

    bot = Bot(listen, opening_frames=1)
    async with bot.running():
        stream = await connect(bot, Events(), announce=False)
        tap = FakeTap()
        stream.start(tap)
        await tap.until(lambda tap: tap.done == ["mark early"])
        await stream.stop()
    assert [frame["event"] for frame in bot.received] == ["connected", "start", "stop"]


async def test_what_is_answered_before_the_call_is_described_waits() -> None:
    """Clients guess the protocol from the first two messages; nothing may come between them."""

    async def hurry(bot: Bot) -> None:
        await bot.send(event="mark", mark={"name": "early"})
        await bot.send(event="clear")
        await bot.send(event="nonsense")
        await bot.send(event="hold", hold={"active": True})
        await bot.until("error")
        await bot.until_closed()

    bot, events = Bot(hurry, opening_frames=1), Events()
    async with bot.running():
        stream = await connect(bot, events, announce=False)
        assert await events.next() == AgentClear()
        assert await events.next() == AgentHold(True)
        stream.start(FakeTap())
        await stream.stop()
    assert [frame["event"] for frame in bot.received] == ["connected", "start", "mark", "error", "stop"]
    assert [frame.get("sequence_number") for frame in bot.received] == [None, "1", "2", "3", "4"]


async def test_a_call_that_is_never_answered_gets_no_stop() -> None:
    bot = Bot(wait_closed, opening_frames=1)
    async with bot.running():
        stream = await connect(bot, Events(), announce=False)
        stream.send_audio(bytes(320))
        await stream.stop()
    assert [frame["event"] for frame in bot.received] == ["connected"]
    assert bot.close_code == 1000


async def test_what_the_agent_says_before_the_answer_waits() -> None:
    async def speak(bot: Bot) -> None:
        await media(bot, b"\1\1" * 160)
        await bot.send(event="mark", mark={"name": "lost"})
        await bot.send(event="clear")
        assert (await bot.until("mark"))["mark"] == {"name": "lost", "status": "cleared"}
        await media(bot, b"\2\2" * 160)
        await bot.send(event="mark", mark={"name": "kept"})
        await media(bot, b"\3\3" * 160)
        await bot.send(event="hold", hold={"active": True})
        await bot.until_closed()

    bot, events = Bot(speak), Events()
    async with bot.running():
        stream = await connect(bot, events)
        assert await events.next() == AgentClear()
        assert await events.next() == AgentHold(True)
        tap = FakeTap(stream.mark_reached)
        stream.start(tap)
        assert tap.done == ["write 320", "mark kept", "write 320"]
        assert bytes(tap.written) == b"\2\2" * 160 + b"\3\3" * 160
        await stream.stop()


async def test_early_audio_is_bounded() -> None:
    async def flood(bot: Bot) -> None:
        for _ in range(5):
            await media(bot, bytes(500_000))
        assert (await bot.until("error"))["error"]["code"] == "playout_overflow"
        await bot.send(event="hold", hold={"active": True})
        await bot.until_closed()

    bot, events = Bot(flood), Events()
    async with bot.running():
        stream = await connect(bot, events)
        await events.next()
        tap = FakeTap()
        stream.start(tap)
        assert len(tap.written) == 1_500_000
        await stream.stop()
    assert [frame["event"] for frame in bot.received].count("error") == 1


async def test_overflow_of_the_playout_queue_is_told() -> None:
    async def listen(bot: Bot) -> None:
        assert (await bot.until("error"))["error"]["code"] == "playout_overflow"
        await bot.until_closed()

    bot = Bot(listen)
    async with bot.running():
        stream = await connect(bot, Events())
        stream.playout_overflow(40)
        await stream.stop()


@pytest.mark.parametrize(
    ("code", "abnormal", "drain"),
    [
        (1000, False, True),
        (4003, False, False),
        (4100, False, True),
        (1001, True, False),
        (1011, True, False),
    ],
)
async def test_a_close_of_the_agent(code: int, abnormal: bool, drain: bool) -> None:
    async def leave(bot: Bot) -> None:
        await media(bot, bytes(48_000))
        await bot.socket.close(code=code, message=b"bye")

    bot, events = Bot(leave), Events()
    async with bot.running():
        stream = await connect(bot, events)
        tap = FakeTap()
        stream.start(tap)
        assert await events.next() == AgentClosed(code, abnormal, drain, "bye")
        # Three seconds are queued; the application plays them out if it should.
        assert len(tap.written) == 48_000
        assert stream.closed
        for call in (stream.stop, stream.stop):
            await call()
        stream.send_audio(bytes(320))
        stream.send_dtmf("1", 100)
        stream.mark_reached("x", True)
    assert len(events.seen) == 1


async def test_a_connection_that_breaks() -> None:
    async def vanish(bot: Bot) -> None:
        await bot.until("media")
        assert bot.request is not None and bot.request.transport is not None
        bot.request.transport.abort()

    bot, events = Bot(vanish), Events()
    async with bot.running():
        stream = await connect(bot, events)
        stream.start(FakeTap())
        stream.send_audio(bytes(320))
        closed = await events.next()
        assert isinstance(closed, AgentClosed)
        assert (closed.code, closed.abnormal, closed.drain) == (1006, True, False)
        await stream.stop()


async def test_an_agent_that_gives_no_sign_of_life() -> None:
    async def sleep(bot: Bot) -> None:
        await bot.released.wait()

    bot, events = Bot(sleep, autoping=False), Events()
    async with bot.running():
        stream = await connect(bot, events, ping_interval_s=0.05, pong_timeout_s=0.2, close_timeout_s=0.2)
        assert await events.next() == AgentClosed(4408, abnormal=True, reason="no pong")
        await stream.stop()


async def test_an_agent_that_answers_pings_stays() -> None:
    async def stay(bot: Bot) -> None:
        await bot.socket.ping(b"are you there")
        await bot.until_closed()

    bot, events = Bot(stay), Events()
    async with bot.running():
        stream = await connect(bot, events, ping_interval_s=0.02, pong_timeout_s=5.0)
        await time_passes(0.3)
        assert not stream.closed
        await stream.stop()
    assert bot.close_code == 1000
    assert events.seen == []


async def test_nonsense_is_answered_and_then_too_much() -> None:
    async def babble(bot: Bot) -> None:
        await bot.socket.send_str("nonsense")
        assert (await bot.until("error"))["error"]["code"] == "invalid_json"
        await bot.socket.send_bytes(b"\0\1")
        assert (await bot.until("error"))["error"]["code"] == "binary_frame"
        await bot.send(event="transfer", transfer={})
        assert (await bot.until("error"))["error"]["ref"] == "transfer"
        for _ in range(300):
            await bot.send(label="rtvi-ai", type="metrics")
        await bot.send(event="hold", hold={"active": True})
        await bot.until("hold")
        for _ in range(98):
            await bot.socket.send_str("nonsense")
        await bot.until_closed()

    bot, events = Bot(babble), Events()
    async with bot.running():
        stream = await connect(bot, events)
        stream.start(FakeTap())
        assert await events.next() == AgentHold(True)
        stream.accept(AgentHold(True))
        closed = await events.next()
        assert closed == AgentClosed(1008, abnormal=True, reason="too many malformed frames")
        await stream.stop()
    assert bot.close_code == 1008
    assert bot.received[-1]["event"] == "stop"
    assert [frame["event"] for frame in bot.received].count("error") <= 20


async def test_marks_are_bounded() -> None:
    async def mark(bot: Bot) -> None:
        for number in range(1001):
            await bot.send(event="mark", mark={"name": str(number)})
        assert (await bot.until("error"))["error"]["code"] == "too_many_marks"
        await bot.until_closed()

    bot = Bot(mark)
    async with bot.running():
        stream = await connect(bot, Events())
        tap = FakeTap(stream.mark_reached)
        stream.start(tap)
        await tap.until(lambda tap: len(tap.done) == 1000)
        tap.reach()
        await stream.stop()
    assert len([frame for frame in bot.received if frame["event"] == "mark"]) == 1000


async def test_an_event_that_cannot_be_handled_ends_the_stream() -> None:
    async def hang_up(bot: Bot) -> None:
        await bot.send(event="hangup")
        await bot.until_closed()

    seen: list[AgentEvent] = []

    def fail(event: AgentEvent) -> None:
        seen.append(event)
        if isinstance(event, AgentHangup):
            raise RuntimeError("a bug of ours")

    bot = Bot(hang_up)
    async with bot.running():
        stream = await connect(bot, fail)
        async with asyncio.timeout(40):
            await bot.closed.wait()
        await stream.stop()
    assert bot.close_code == 1011
    assert [type(event) for event in seen] == [AgentHangup, AgentClosed]


async def test_an_agent_that_closes_at_once_is_no_stream() -> None:
    async def refuse(bot: Bot) -> None:
        await bot.socket.close(code=4003, message=b"bad token")

    bot, events = Bot(refuse, opening_frames=0), Events()
    async with bot.running():
        try:
            stream = await connect(bot, events)
        except StreamConnectError as error:
            assert error.reason == "protocol"
            assert events.seen == []
        else:
            # The close may also come a moment after the handshake.
            assert await events.next() == AgentClosed(4003, abnormal=False, reason="bad token")
            await stream.stop()


async def test_stop_does_not_wait_for_ever() -> None:
    async def ignore(bot: Bot) -> None:
        await bot.released.wait()

    bot = Bot(ignore)
    async with bot.running():
        stream = await connect(bot, Events(), close_timeout_s=0.1)
        stopping = asyncio.gather(stream.stop(), stream.stop())
        async with asyncio.timeout(40):
            await stopping


async def test_a_stop_that_is_cancelled_still_closes() -> None:
    async def ignore(bot: Bot) -> None:
        await bot.released.wait()

    bot, events = Bot(ignore), Events()
    async with bot.running():
        stream = await connect(bot, events, close_timeout_s=600.0)
        stopping = asyncio.create_task(stream.stop())
        await time_passes(0.05)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        async with asyncio.timeout(40):
            await stream.stop()
    assert events.seen == []
