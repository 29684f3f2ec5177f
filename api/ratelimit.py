"""A limit of requests per key and minute, and the headers that tell clients about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["RateLimit", "RateLimiter"]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What one request found: whether it may go on, and what is left of the window."""

    allowed: bool
    limit: int
    remaining: int
    reset_in_s: int
    reset_at_epoch_s: int
    window_s: int

    def headers(self) -> dict[str, str]:
        """The headers of every answer: the widespread names, and those of the IETF draft."""
        headers = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_at_epoch_s),
            "RateLimit-Policy": f'"key";q={self.limit};w={self.window_s}',
            "RateLimit": f'"key";r={self.remaining};t={self.reset_in_s}',
        }
        if not self.allowed:
            headers["Retry-After"] = str(self.reset_in_s)
        return headers


@dataclass(slots=True)
class _Window:
    started_s: float
    count: int


class RateLimiter:
    """
    Counts requests per name in windows that begin with the first request of each.

    A refused request is not counted: a client that keeps knocking is let in when its window ends.
    """

    def __init__(
        self, limit: int, window_s: int, *, monotonic: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._limit = limit
        self._window_s = window_s
        self._monotonic = monotonic
        self._wall = wall
        self._windows: dict[str, _Window] = {}

    def take(self, name: str) -> RateLimit:
        """Count one request of `name`."""
        now = self._monotonic()
        window = self._windows.get(name)
        if window is None or now - window.started_s >= self._window_s:
            self._forget_old(now)
            window = self._windows[name] = _Window(now, 0)
        allowed = window.count < self._limit
        if allowed:
            window.count += 1
        reset_in_s = max(1, math.ceil(window.started_s + self._window_s - now))
        return RateLimit(
            allowed=allowed,
            limit=self._limit,
            remaining=self._limit - window.count,
            reset_in_s=reset_in_s,
            reset_at_epoch_s=math.ceil(self._wall()) + reset_in_s,
            window_s=self._window_s,
        )

    def __len__(self) -> int:
        return len(self._windows)

    def _forget_old(self, now: float) -> None:
        """Drop windows that are over; one pass per new window keeps the table to the names of a minute."""
        if len(self._windows) < 1024:
            return
        self._windows = {
            name: window for name, window in self._windows.items() if now - window.started_s < self._window_s
        }
