"""How fast an agent is read, so that one that floods its socket takes nothing from the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import picows

__all__ = ["ReadPace"]

# Some four hundred times real time at 16 kHz: whoever sends more is held back, and loses nothing by it.
_BURST_BYTES = 1 << 20
_BURST_S = 0.05
_BYTES_PER_S = _BURST_BYTES / _BURST_S

# What any frame costs beside its bytes: the smallest are as much work as those of twenty milliseconds.
_FRAME_BYTES = 4096

# The share of the time that messages which take long to read may take from the others.
_LONG_SHARE = 0.25

_MAX_REST_S = 1.0

# What one read brings cannot be held back; so many frames in it are nothing but harm.
_ABUSE_BYTES = 16 << 20

T = TypeVar("T")


class ReadPace:
    """
    Reads nothing from a socket for a moment after it has brought a great deal, or much work.

    It never stops for long: a command that waits behind the audio is still obeyed soon. The kernel keeps
    what is not read, and the agent's own writing waits for that.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: picows.WSTransport | None = None
        self._left: float = _BURST_BYTES
        self._since_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._held = False

    def open(self, transport: picows.WSTransport) -> None:
        """Hold this socket back."""
        self._transport = transport

    def took(self, size: int) -> bool:
        """Note that a frame of so many bytes was read; False when there are more than can be borne."""
        self._left -= size + _FRAME_BYTES
        if self._left >= 0:
            return True
        self._rest()
        return self._left > -_ABUSE_BYTES

    def timed(self, work: Callable[[], T]) -> T:
        """Do what may take long, and count the time that it takes."""
        began_s = self._loop.time()
        try:
            return work()
        finally:
            self.spent(self._loop.time() - began_s)

    def spent(self, seconds: float) -> None:
        """Count time that was spent on a message."""
        self._left -= seconds / _LONG_SHARE * _BYTES_PER_S
        if self._left < 0:
            self._rest()

    def hold(self) -> None:
        """Read nothing until `release`."""
        self._held = True
        if self._transport is not None:
            self._transport.underlying_transport.pause_reading()

    def release(self) -> None:
        """Read on, unless there is still something to be made up for."""
        self._held = False
        if self._timer is None:
            self._resume_reading()

    def stop(self) -> None:
        """Hold nothing back any more: the answer to a close is still to be read."""
        if self._timer is not None:
            self._timer.cancel()
        if self._timer is not None or self._held:
            self._held = False
            self._go_on()

    def _rest(self) -> None:
        """Pause until what was read and done is made up for."""
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
            # What was read with the rest of its buffer, or took long, came on top.
            self._timer = self._loop.call_later(min(owed_s, _MAX_REST_S), self._resume)
            self._left = 0
        else:
            self._go_on()

    def _go_on(self) -> None:
        self._timer = None
        self._left, self._since_s = _BURST_BYTES, self._loop.time()
        if not self._held:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.underlying_transport.is_closing():
            self._transport.underlying_transport.resume_reading()
