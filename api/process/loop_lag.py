"""How late the event loop is: how long after its time a timer comes."""

from __future__ import annotations

import asyncio

from callcontrol.histogram import Histogram

__all__ = ["LoopLag"]

_EVERY_S = 0.1
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class LoopLag:
    """
    Looks ten times a second.

    Attributes:
        lag_s: How late each look came, since the start.
    """

    def __init__(self) -> None:
        self.lag_s = Histogram(_BUCKETS_S)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin."""
        self._set()

    def close(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + _EVERY_S
        self._timer = loop.call_at(at, self._look, at)

    def _look(self, due_at: float) -> None:
        self.lag_s.observe(max(asyncio.get_running_loop().time() - due_at, 0.0))
        self._set()
