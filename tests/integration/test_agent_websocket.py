"""Agents that break the WebSocket protocol, or press against its limits."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_stream import AgentStream
from media.streams import AgentClosed, AgentEvent, AgentHold, AgentMarkReached, StreamSetup
from tests.support.agent_bot import FakeTap, no_leaks, raw_server, to_loopback
from tests.support.agent_paths import Carrier, agent_url
from tests.support.raw_agent import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawAgent, frame
from tests.support.waiting import time_passes

HOLD = b'{"event":"hold","hold":{"active":true}}'
MIB = 1 << 20


@pytest.fixture(autouse=True)
async def leaks(carrier: None) -> AsyncIterator[None]:
    async with no_leaks():
        yield


class Scene:
    """A stream whose agent plays a script of bytes."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        self.stream: AgentStream
        self.tap = FakeTap()

    async def next(self) -> AgentEvent:
        """The next event that is no mark."""
        async with asyncio.timeout(40):
            while isinstance(event := await self.events.get(), AgentMarkReached):
                pass
            return event


@asynccontextmanager
async def scene(play: Callable[[RawAgent], Awaitable[None]], **settings: float) -> AsyncIterator[Scene]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = RawAgent(reader, writer)
        await peer.accept()
        await play(peer)
        await writer.drain()
        await reader.read()

    made = Scene()
    async with raw_server(serve) as port:
        made.stream = await AgentStream.connect(
            StreamSetup(
                url=agent_url(port),
                stream_sid="s",
                call_sid="c",
                account_sid="a",
                from_="+1",
                to="+2",
            ),
            resolve=to_loopback,
            on_event=made.events.put_nowait,
            settings=AgentStreamSettings(close_timeout_s=0.2),
            carrier=Carrier.stream,
        )
        made.stream.start(made.tap)
        yield made
        await made.stream.stop()


async def test_fragments_and_control_frames_between_them_make_one_message() -> None:
    pong = asyncio.get_running_loop().create_future()

    async def play(peer: RawAgent) -> None:
        peer.writer.write(frame(TEXT, HOLD[:10], fin=False))
        peer.writer.write(frame(PING, b"now"))
        peer.writer.write(frame(CONTINUATION, b"", fin=False) * 5)
        peer.writer.write(frame(CONTINUATION, HOLD[10:]))
        pong.set_result(await peer.until(PONG))

    async with scene(play) as made:
        assert await made.next() == AgentHold(True)
        assert await pong == b"now"
        assert not made.stream.closed


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), 1002),
        (frame(CONTINUATION, b"x"), 1002),
        (frame(TEXT, b"x", rsv=4), 1002),
        (frame(BINARY, b"x", rsv=1), 1002),
        (frame(3, b"x"), 1002),
        (frame(PING, b"x", fin=False), 1002),
        (frame(PING, b"x" * 126), 1002),
        (b"\x81\x85\0\0\0\0hello", 1002),
        (frame(CLOSE, struct.pack(">H", 1000) + b"\xff"), 1007),
        (frame(CLOSE, struct.pack(">H", 999)), 1002),
        (frame(TEXT, length=MIB + 1), 1009),
        (frame(TEXT, length=1 << 62), 1009),
        (frame(TEXT, b"x" * (MIB + 1)), 1009),
        (frame(TEXT, b"x" * 600_000, fin=False) + frame(CONTINUATION, b"x" * 600_000), 1009),
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
    ],
)
async def test_a_breach_of_the_protocol_closes_with_its_code(data: bytes, code: int) -> None:
    received = asyncio.get_running_loop().create_future()

    async def play(peer: RawAgent) -> None:
        peer.writer.write(data)
        received.set_result(await peer.until(CLOSE))

    async with scene(play) as made:
        closed = await made.next()
        assert isinstance(closed, AgentClosed)
        assert (closed.code, closed.abnormal, closed.drain) == (code, True, False)
        async with asyncio.timeout(40):
            assert struct.unpack_from(">H", await received) == (code,)
        assert made.events.empty()


async def test_a_message_of_exactly_the_limit_is_read() -> None:
    text = HOLD[:-1] + b" " * (MIB - len(HOLD)) + b"}"

    async def play(peer: RawAgent) -> None:
        peer.writer.write(frame(TEXT, text))
        peer.writer.write(frame(TEXT, text[:-1], fin=False) + frame(CONTINUATION, b"}"))

    async with scene(play) as made:
        assert await made.next() == AgentHold(True)
        assert await made.next() == AgentHold(True)


async def test_a_close_without_a_code_is_a_normal_end() -> None:
    async def play(peer: RawAgent) -> None:
        peer.writer.write(frame(CLOSE))
        await peer.until(CLOSE)

    async with scene(play) as made:
        assert await made.next() == AgentClosed(1005, abnormal=False, drain=True)


async def test_frames_after_the_close_are_not_obeyed() -> None:
    async def play(peer: RawAgent) -> None:
        peer.writer.write(frame(CLOSE, struct.pack(">H", 1000)) + frame(TEXT, HOLD) + frame(PING))

    async with scene(play) as made:
        assert isinstance(await made.next(), AgentClosed)
        await time_passes(0.05)
        assert made.events.empty()


async def test_audio_for_an_agent_that_does_not_read_is_dropped_and_comes_back_fresh() -> None:
    resume, heard_all = asyncio.Event(), asyncio.Event()
    stamps: list[int] = []
    numbers: list[int] = []

    async def play(peer: RawAgent) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # A transport of a socket can.
        await resume.wait()
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]  # As above.
        while not stamps or stamps[-1] < 300_000:
            message = json.loads(await peer.until(TEXT))
            numbers.append(int(message["sequence_number"]))
            if message["event"] == "media":
                stamps.append(int(message["media"]["timestamp"]))
        heard_all.set()

    async with scene(play) as made:
        # Five minutes of audio: far more than all the buffers of the kernel hold.
        for _ in range(1500):
            made.stream.send_audio(bytes(320 * 10))
        made.stream.send_dtmf("1", 100)
        resume.set()
        async with asyncio.timeout(30):
            await heard_all.wait()
        await made.stream.stop()
        dropped = made.stream.frames_dropped
        assert dropped > 1000
        assert made.stream.frames_sent + dropped == 15_000
    # Of what was held back only the last 200 ms are left, and they are numbered without a gap.
    assert stamps[-10:] == list(range(299_820, 300_001, 20))
    assert stamps == sorted(stamps)
    assert numbers == list(range(2, len(numbers) + 2))


async def test_an_agent_that_commands_and_does_not_read_is_cut_off() -> None:
    async def play(peer: RawAgent) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # A transport of a socket can.

    async with scene(play) as made:
        name = "n" * 256
        for _ in range(100_000):
            made.stream.mark_reached(name)
            if made.stream.closed:
                break
            await asyncio.sleep(0)
        closed = await made.next()
        assert closed == AgentClosed(1008, abnormal=True, reason="the agent does not read")
