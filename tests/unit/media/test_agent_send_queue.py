"""Queues for an agent that does not read, and for a call that is not answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from media.aio.agent_send_queue import AgentSendQueue
from media.aio.early_playout import EarlyPlayout
from media.aio.tap import AgentTap
from media.streams import AgentMark, ExotelDialect, StreamSetup

SETUP = StreamSetup(url="ws://x/", stream_sid="s", call_sid="c", account_sid="a", from_="+1", to="+2")


class Socket:
    """A transport that is full after `room` more frames."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.room: int | None = None
        self.outbox: AgentSendQueue

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert low < high

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data))
        if self.room is not None:
            self.room -= 1
            if self.room == 0:
                self.outbox.writable(False)


def made(frames: int = 10) -> tuple[AgentSendQueue, Socket, ExotelDialect]:
    dialect, socket = ExotelDialect(SETUP), Socket()
    socket.outbox = AgentSendQueue(dialect, frames)
    socket.outbox.open(cast(asyncio.Transport, socket))
    return socket.outbox, socket, dialect


def stamps(socket: Socket) -> list[int]:
    media = [frame["media"] for frame in socket.sent if isinstance(frame, dict) and "media" in frame]
    return [int(item["timestamp"]) for item in media]


def test_nothing_waits_while_the_socket_takes_it() -> None:
    outbox, socket, dialect = made()
    outbox.audio(b"\0\0", 20)
    assert outbox.control(dialect.dtmf("1", 100))
    assert stamps(socket) == [20]
    assert socket.sent[1]["event"] == "dtmf"
    assert (outbox.frames_sent, outbox.frames_dropped) == (1, 0)


def test_the_oldest_audio_is_dropped_and_answers_are_kept() -> None:
    outbox, socket, dialect = made(frames=3)
    outbox.writable(False)
    for stamp in range(20, 140, 20):
        outbox.audio(b"\0\0", stamp)
        assert outbox.control(dialect.dtmf("1", stamp))
    assert socket.sent == []
    outbox.writable(True)
    assert [frame["event"] for frame in socket.sent] == ["dtmf"] * 6 + ["media"] * 3
    assert [frame["sequence_number"] for frame in socket.sent] == [str(number) for number in range(1, 10)]
    assert stamps(socket) == [80, 100, 120]
    assert (outbox.frames_sent, outbox.frames_dropped) == (3, 3)


def test_a_socket_that_fills_up_again_stops_the_flush() -> None:
    outbox, socket, dialect = made()
    outbox.writable(False)
    for stamp in (20, 40, 60):
        outbox.audio(b"\0\0", stamp)
        outbox.control(dialect.dtmf("1", stamp))
    for sent in (2, 4, 6):
        socket.room = 2
        outbox.writable(True)
        assert len(socket.sent) == sent
    assert [frame["sequence_number"] for frame in socket.sent] == ["1", "2", "3", "4", "5", "6"]


def test_answers_are_bounded() -> None:
    outbox, _, dialect = made()
    outbox.writable(False)
    frame = dialect.error("x", "y" * 1000)
    kept = 0
    while outbox.control(frame):
        kept += 1
    assert 200 < kept < 300


def test_the_end_takes_answers_along_but_no_audio() -> None:
    outbox, socket, dialect = made()
    outbox.writable(False)
    outbox.audio(b"\0\0", 20)
    outbox.control(dialect.dtmf("1", 100))
    outbox.finish(dialect.stop("stopped", "api_hangup"))
    assert [frame["event"] for frame in socket.sent] == ["dtmf", "stop"]
    assert outbox.frames_dropped == 1


class Tap(AgentTap):
    def __init__(self) -> None:
        self.done: list[object] = []

    def write(self, audio: bytes) -> None:
        self.done.append(audio)

    def mark(self, name: str) -> None:
        self.done.append(name)

    def clear(self) -> None:
        raise AssertionError("nothing is played yet")


def test_early_audio_and_marks_keep_their_order() -> None:
    early, tap = EarlyPlayout(8), Tap()
    assert early.audio(b"1234")
    early.mark(AgentMark("a"))
    assert early.audio(b"")
    assert early.audio(b"5678")
    assert not early.audio(b"9")
    early.play(tap)
    assert tap.done == [b"1234", "a", b"5678"]
    early.play(tap)
    assert len(tap.done) == 3


def test_clearing_early_audio_gives_the_marks_back_and_makes_room() -> None:
    early = EarlyPlayout(4)
    assert early.audio(b"1234")
    early.mark(AgentMark("a"))
    assert early.clear() == [AgentMark("a")]
    assert early.audio(b"5678")
