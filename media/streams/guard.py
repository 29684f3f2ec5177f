"""Counting what happens too often."""

from __future__ import annotations

from collections import deque

__all__ = ["RateGuard"]


class RateGuard:
    """Tells when something happened more than `limit` times within `window_s` seconds."""

    __slots__ = ("_times", "_window_s")

    def __init__(self, limit: int, window_s: float) -> None:
        self._times: deque[float] = deque(maxlen=limit)
        self._window_s = window_s

    def exceeded(self, now: float) -> bool:
        """Count one occurrence at `now`; whether it is one too many."""
        times = self._times
        full = len(times) == times.maxlen and now - times[0] < self._window_s
        times.append(now)
        return full
