"""Event loop lag: delay of a timer after its due time."""

from __future__ import annotations

import asyncio

from callcontrol.histogram import Histogram

__all__ = ["LoopLag"]

_EVERY_S = 0.1
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class LoopLag:
    """
    Measures the lag of the event loop ten times a second.

    Attributes:
        lag_s: Histogram of the lags since the start, in seconds.
    """

    def __init__(self) -> None:
        self.lag_s = Histogram(_BUCKETS_S)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer."""
        self._set()

    def close(self) -> None:
        """Stop the timer."""
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
