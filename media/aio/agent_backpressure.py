"""Backpressure on an agent's socket, so that an agent that floods it does not slow down others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import picows

__all__ = ["ReadBackpressure"]

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

T = TypeVar("T")


class ReadBackpressure:
    """
    Pauses reading from a socket briefly after much data or much work.

    The pause is short, so that a command behind the audio is still executed soon. The kernel keeps unread
    data, and the agent's writes block on it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: picows.WSTransport | None = None
        self._left: float = _BURST_BYTES
        self._since_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._held = False

    def open(self, transport: picows.WSTransport) -> None:
        """Set the socket to pause."""
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
            self._transport.underlying_transport.pause_reading()

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
            self._transport.underlying_transport.pause_reading()
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
        if self._transport is not None and not self._transport.underlying_transport.is_closing():
            self._transport.underlying_transport.resume_reading()
