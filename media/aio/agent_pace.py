"""How fast an agent is read, so that one that floods its socket takes nothing from the others."""

from __future__ import annotations

import asyncio

import picows

__all__ = ["ReadPace"]

# Some four hundred times real time at 16 kHz: whoever sends more is held back, and loses nothing by it.
_BURST_BYTES = 1 << 20
_BURST_S = 0.05


class ReadPace:
    """
    Reads nothing from a socket for the rest of a moment in which it has brought a great deal.

    It never stops for longer: a command that waits behind the audio is still obeyed soon. The kernel keeps
    what is not read, and the agent's own writing waits for that.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: picows.WSTransport | None = None
        self._left = _BURST_BYTES
        self._since_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def open(self, transport: picows.WSTransport) -> None:
        """Hold this socket back."""
        self._transport = transport

    def took(self, size: int) -> None:
        """Note that so many bytes were read."""
        self._left -= size
        if self._left < 0:
            self._rest()

    def stop(self) -> None:
        """Hold nothing back any more: the answer to a close is still to be read."""
        if self._timer is not None:
            self._timer.cancel()
            self._resume()

    def _rest(self) -> None:
        now_s = self._loop.time()
        wait_s = self._since_s + _BURST_S - now_s
        self._left, self._since_s = _BURST_BYTES, now_s
        if wait_s > 0 and self._timer is None and self._transport is not None:
            self._transport.underlying_transport.pause_reading()
            self._timer = self._loop.call_later(wait_s, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._since_s = self._loop.time()
        if self._transport is not None and not self._transport.underlying_transport.is_closing():
            self._transport.underlying_transport.resume_reading()
