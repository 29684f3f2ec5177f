"""
An event loop on which time passes only while nothing is left to do.

Timers, sessions, and media engines made on it (`media.aio.engine.EngineDriver`) go by the loop's clock. When
no callback is ready, no socket readable and no engine busy, the clock moves to the next moment at which
something is due, and nobody waits. A minute of a call takes as long as its packets take to be carried, and a
machine that stands still cannot be seen: what is late in real time is on time here.

The product's wall clock goes along. Sockets of this process are as in real time. What runs elsewhere is
waited for while the clock stands still: threads of the loop's executor and subprocesses made on the loop.
What nobody can tell of, such as another process at the other end of a socket, needs real time: such tests are
not for this loop.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from callcontrol.aio import tokens

__all__ = ["VirtualTimeLoop"]

# Time passes at most so many times as fast as in reality while the loop is idle: the kernel delivers what was
# sent over loopback sooner or later, and a thread nobody told of gets its turn.
_SPEED: Final = 50.0
# What a selector can wait for.
_LEAST_WAIT_S: Final = 0.001
# Real time that work elsewhere may take while the clock stands still. After that it goes on, as slowly as the
# real one: what runs elsewhere may itself wait for this loop.
_HOLD_S: Final = 2.0
_LOOK_S: Final = 0.005
# No longer than this at once, so that what others do in the meantime is not passed over.
_STEP_S: Final = 0.25


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own; see the module."""

    def __init__(self) -> None:
        self._now_s = time.monotonic()
        self._engines: list[Callable[[int], int]] = []
        self._elsewhere = 0
        super().__init__(_Selector(self))
        wall_clock = _WallClock(self)
        self._patched = {name: vars(tokens)[name] for name in ("time", "datetime")}
        for name in self._patched:
            setattr(tokens, name, wall_clock)

    def close(self) -> None:
        """End it; the wall clock is the system's again."""
        for name, original in self._patched.items():
            setattr(tokens, name, original)
        self._patched.clear()
        super().close()

    def time(self) -> float:
        """The loop's own time, in seconds."""
        return self._now_s

    def drive_engine(self, advance: Callable[[int], int]) -> Callable[[], None]:
        """Run a media engine by this clock, until the function returned is called."""
        self._engines.append(advance)
        advance(self._now_ns)
        return lambda: self._engines.remove(advance)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # The stub has type parameters.
        """Run a function in a thread; time stands still meanwhile."""
        done = super().run_in_executor(executor, func, *args)
        self._elsewhere += 1
        done.add_done_callback(self._returned)
        return done

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        """Start a program; time stands still until it ends."""
        transport, protocol = await super().subprocess_exec(*args, **options)
        self._elsewhere += 1
        self._hold(transport)
        return transport, protocol

    def _hold(self, transport: asyncio.SubprocessTransport) -> None:
        waiting = self.create_task(transport._wait())  # type: ignore[attr-defined]  # No public method waits.
        waiting.add_done_callback(self._returned)

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self._elsewhere -= 1

    # For the selector.

    @property
    def _now_ns(self) -> int:
        return round(self._now_s * 1e9)

    @property
    def busy_elsewhere(self) -> bool:
        """True while a thread or a program works for this loop."""
        return self._elsewhere > 0

    def run_engines(self) -> float:
        """Run what is due in all engines; returns the time of the next work, in seconds of this clock."""
        now_ns = self._now_ns
        while True:
            due_ns = min((advance(now_ns) for advance in self._engines), default=1 << 62)
            if due_ns > now_ns:
                return due_ns / 1e9

    def move_to(self, when_s: float) -> None:
        """Move the clock forward, never back."""
        self._now_s = max(self._now_s, when_s)


class _WallClock:
    """Stand-in for the modules `time` and `datetime` where the product reads the time of day."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self._began_s, self._began = loop.time(), datetime.now(UTC)

    def now(self, zone: tzinfo) -> datetime:
        """The time of day when the loop was made, and what has passed on it since."""
        return (self._began + timedelta(seconds=self._loop.time() - self._began_s)).astimezone(zone)

    def time(self) -> float:
        """The same, in seconds since 1970."""
        return self.now(UTC).timestamp()

    def time_ns(self) -> int:
        """The same, in nanoseconds."""
        return round(self.time() * 1e9)


class _Selector(selectors.DefaultSelector):
    """Waits for sockets and lets the loop's time pass in place of sleeping."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self._held_since: float | None = None
        self._owed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the ready descriptors; when none is, time has passed by at most `timeout`."""
        loop = self._loop
        if timeout is not None and timeout <= 0:
            return super().select(0)
        until = None if timeout is None else loop.time() + timeout
        while True:
            due = loop.run_engines()
            ready, step_s = self._look_elsewhere()
            if ready:
                return ready
            target = min(due, loop.time() + step_s, *([] if until is None else [until]))
            if ready := self._wait_for(target - loop.time()):
                return ready
            loop.move_to(target)
            if until is not None and target >= until:
                return []

    def _wait_for(self, passing_s: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait in reality for a part of the time that is to pass, or owe it."""
        self._owed_s += passing_s / _SPEED
        if self._owed_s < _LEAST_WAIT_S:
            return []
        began_s = time.monotonic()
        ready = super().select(self._owed_s)
        self._owed_s = 0.0 if not ready else max(0.0, self._owed_s - (time.monotonic() - began_s))
        return ready

    def _look_elsewhere(self) -> tuple[list[tuple[selectors.SelectorKey, int]], float]:
        """Return the descriptors ready while another process works, and the time that may pass then."""
        if not self._loop.busy_elsewhere:
            self._held_since = None
            return super().select(0), _STEP_S
        if self._held_since is None:
            self._held_since = time.monotonic()
        while time.monotonic() < self._held_since + _HOLD_S:
            if ready := super().select(_LOOK_S):
                return ready, 0.0
        return super().select(_LOOK_S), _LOOK_S
