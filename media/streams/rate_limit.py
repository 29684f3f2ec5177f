"""Rate limit."""

from __future__ import annotations

from collections import deque

__all__ = ["RateLimit"]


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
