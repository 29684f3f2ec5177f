"""Reading from an agent: floods of bytes, of frames and of work are held back, and a call never is."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from media.aio.agent_backpressure import ReadBackpressure

MIB = 1 << 20


class Clock:
    """A loop whose time is set, and that has one timer."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.due: tuple[float, Any] | None = None

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, callback: Any) -> Clock:
        self.due = (self.now_s + delay_s, callback)
        return self

    def cancel(self) -> None:
        self.due = None

    def run(self) -> float:
        """Run timers until none is due; returns the time they took."""
        began_s = self.now_s
        while self.due is not None:
            (self.now_s, callback), self.due = self.due, None
            callback()
        return self.now_s - began_s


class Socket:
    """Socket that is paused and resumed."""

    def __init__(self) -> None:
        self.paused = False
        self.underlying_transport = self

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_closing(self) -> bool:
        return False


def make_pace() -> tuple[ReadBackpressure, Clock, Socket]:
    clock, socket = Clock(), Socket()
    pace = ReadBackpressure(cast(asyncio.AbstractEventLoop, clock))
    pace.open(cast(Any, socket))
    return pace, clock, socket


def test_what_a_call_needs_is_never_held_back() -> None:
    pace, clock, socket = make_pace()
    for _ in range(10_000):
        clock.now_s += 0.02
        assert pace.read(900)
        assert not socket.paused


def test_a_flood_of_bytes_rests_and_goes_on() -> None:
    pace, clock, socket = make_pace()
    assert pace.read(MIB) and socket.paused
    assert 0.04 < clock.run() < 0.2
    assert not socket.paused
    assert pace.read(900) and not socket.paused


def test_small_frames_count_as_the_work_they_are() -> None:
    pace, clock, socket = make_pace()
    for _ in range(1000):
        assert pace.read(0)
    assert socket.paused
    assert clock.run() > 0.04


def test_more_frames_at_once_than_any_agent_has_use_for_are_refused() -> None:
    pace, _, _ = make_pace()
    assert not all([pace.read(0) for _ in range(64_000)])


def test_messages_that_take_long_leave_most_of_the_time_to_others() -> None:
    pace, clock, socket = make_pace()

    def convert() -> str:
        clock.now_s += 0.2
        return "converted"

    assert pace.read(MIB) and pace.timed(convert) == "converted"
    assert socket.paused
    assert clock.run() > 0.4
    assert not socket.paused


def test_what_is_held_stays_held_until_it_is_released() -> None:
    pace, clock, socket = make_pace()
    pace.hold()
    assert pace.read(MIB) and socket.paused
    clock.run()
    assert socket.paused, "the rest is over, but what is held stays"
    pace.release()
    assert not socket.paused
    pace.hold()
    pace.spent(0.2)
    pace.release()
    assert socket.paused, "released, but there is something to be made up for"
    clock.run()
    assert not socket.paused
    pace.hold()
    pace.stop()
    assert not socket.paused


def test_after_its_end_nothing_is_held_back() -> None:
    pace, clock, socket = make_pace()
    pace.read(4 * MIB)
    pace.stop()
    assert not socket.paused and clock.due is None
