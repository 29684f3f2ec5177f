"""Reading from an agent: backpressure on a socket of Python, a rate limit, and decoding in order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Generic, Protocol, TypeVar

from media.streams import CommandError

_LOGGER = logging.getLogger(__name__)

# About 400 times real time at 16 kHz: an agent that sends more is paused, without loss.
_BURST_BYTES = 1 << 20
_BURST_S = 0.05
_BYTES_PER_S = _BURST_BYTES / _BURST_S

# Cost of any frame beside its bytes: the smallest take as much work as those of 20 ms.
_FRAME_BYTES = 4096

# Share of the time that messages which take long to decode may use.
_LONG_SHARE = 0.25

_MAX_PAUSE_S = 1.0

# Data of one read cannot be held back; this many frames in it are abuse.
_ABUSE_BYTES = 16 << 20

# A longer piece of audio to convert, or a large object: its decoding time is counted.
_COUNTED_BYTES = 8 * 1024

# Some seconds of audio: to convert them on the loop would delay every other call by more than a frame.
_LONG_BYTES = 32 * 1024

T = TypeVar("T")
Decode = Callable[[bytes], T]


class Pace(Protocol):
    """Pace of reading from a socket."""

    def timed(self, work: Callable[[], T]) -> T:
        """Run work that may take long, and count its time."""

    def spent(self, seconds: float) -> None:
        """Count seconds spent on a message."""

    def hold(self) -> None:
        """Pause reading until `release`."""

    def release(self) -> None:
        """Resume reading."""


class ReadBackpressure:
    """
    Pauses reading from a socket briefly after much data or much work.

    The pause is short, so that a command behind the audio is still executed soon. The kernel keeps unread
    data, and the agent's writes block on it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._left: float = _BURST_BYTES
        self._since_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._held = False

    def open(self, transport: asyncio.Transport) -> None:
        """Set the transport to pause."""
        self._transport = transport

    def read(self, size: int) -> bool:
        """Count a frame of `size` bytes; False if the limit of abuse is exceeded."""
        self._left -= size + _FRAME_BYTES
        if self._left >= 0:
            return True
        self._pause()
        return self._left > -_ABUSE_BYTES

    def timed(self, work: Callable[[], T]) -> T:
        """Run work that may take long, and count its time."""
        began_s = self._loop.time()
        try:
            return work()
        finally:
            self.spent(self._loop.time() - began_s)

    def spent(self, seconds: float) -> None:
        """Count seconds spent on a message."""
        self._left -= seconds / _LONG_SHARE * _BYTES_PER_S
        if self._left < 0:
            self._pause()

    def hold(self) -> None:
        """Pause reading until `release`."""
        self._held = True
        if self._transport is not None:
            self._transport.pause_reading()

    def release(self) -> None:
        """Resume reading, unless a pause for earlier data is running."""
        self._held = False
        if self._timer is None:
            self._resume_reading()

    def stop(self) -> None:
        """Stop pausing: the answer to a close frame must still be read."""
        if self._timer is not None:
            self._timer.cancel()
        if self._timer is not None or self._held:
            self._held = False
            self._refill()

    def _pause(self) -> None:
        """Pause until the budget is refilled."""
        if self._timer is not None or self._transport is None:
            return
        now_s = self._loop.time()
        self._left = min(_BURST_BYTES, self._left + (now_s - self._since_s) * _BYTES_PER_S)
        self._since_s = now_s
        if self._left < 0:
            self._transport.pause_reading()
            self._timer = self._loop.call_later(_BURST_S, self._resume)

    def _resume(self) -> None:
        owed_s = -self._left / _BYTES_PER_S
        if owed_s > _BURST_S:
            # Data from the same read, or long work, exceeded the budget further.
            self._timer = self._loop.call_later(min(owed_s, _MAX_PAUSE_S), self._resume)
            self._left = 0
        else:
            self._refill()

    def _refill(self) -> None:
        self._timer = None
        self._left, self._since_s = _BURST_BYTES, self._loop.time()
        if not self._held:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


class OrderedDecoder(Generic[T]):
    """
    Decodes one agent's messages, long ones in a thread.

    Meanwhile the socket is not read; messages that were read already wait, and so does later work.

    Args:
        pace: Pauses the socket and counts the time of each message.
        take: Called with a function that returns the decoded message or raises its error.
        failed: Called after an unexpected error in decoding.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pace: Pace,
        take: Callable[[Callable[[], T]], None],
        failed: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._pace = pace
        self._take = take
        self._failed = failed
        self._reading = False
        self._waiting: deque[Callable[[], None]] = deque()

    def read(self, decode: Decode[T], data: bytes) -> None:
        """Decode a message and pass it to `take`, now or after the messages before it."""
        if self._reading:
            self._waiting.append(lambda: self._begin(decode, data))
        else:
            self._begin(decode, data)

    def then(self, work: Callable[[], None]) -> None:
        """Run work after all messages received so far."""
        if self._reading:
            self._waiting.append(work)
        else:
            work()

    def forget(self) -> None:
        """Drop all messages, the one being decoded included, and the references to the callbacks."""
        self._waiting.clear()
        self._take = self._failed = _nothing

    def _begin(self, decode: Decode[T], data: bytes) -> None:
        if len(data) < _COUNTED_BYTES:
            self._take(lambda: decode(data))
            return
        if len(data) < _LONG_BYTES:
            self._take(lambda: self._pace.timed(lambda: decode(data)))
            return
        self._reading = True
        self._pace.hold()
        reading = self._loop.run_in_executor(_readers(), _timed, decode, data)
        reading.add_done_callback(self._done)

    def _done(self, reading: asyncio.Future[tuple[Callable[[], T], float]]) -> None:
        self._reading = False
        error = reading.exception()
        if error is not None:
            _LOGGER.error("decoding an agent message failed", exc_info=error)
            self._failed()
        else:
            read, took_s = reading.result()
            self._pace.spent(took_s)
            self._take(read)
        while self._waiting and not self._reading:
            self._waiting.popleft()()
        if not self._reading:
            self._pace.release()


def _nothing(*_: object) -> None:
    """Do nothing; the callback after `forget`."""


@cache
def _readers() -> ThreadPoolExecutor:
    """Return the one thread for all agents: their conversions take at most one core from the calls."""
    return ThreadPoolExecutor(1, thread_name_prefix="agent-reading")


def _timed(decode: Decode[T], data: bytes) -> tuple[Callable[[], T], float]:
    """Decode; returns a function that returns the message or raises its error, and the thread's seconds."""
    began_s = time.thread_time()
    try:
        message = decode(data)
    except CommandError as wrong:
        error = wrong

        def refuse() -> T:
            raise error

        return refuse, time.thread_time() - began_s
    return lambda: message, time.thread_time() - began_s


class RateLimit:
    """Detects more than `limit` occurrences within `window_s` seconds."""

    __slots__ = ("_times", "_window_s")

    def __init__(self, limit: int, window_s: float) -> None:
        self._times: deque[float] = deque(maxlen=limit)
        self._window_s = window_s

    def exceeded(self, now: float) -> bool:
        """Count one occurrence at `now`; True if it exceeds the limit."""
        times = self._times
        full = len(times) == times.maxlen and now - times[0] < self._window_s
        times.append(now)
        return full
