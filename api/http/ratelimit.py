"""Limits of requests per minute, and their response headers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from callcontrol.models import Principal, Service

__all__ = ["Allowance", "RateLimit", "RateLimiter", "allowances_of"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """
    Maximum number of requests that one name may make in a window.

    `policy` names the subject of the limit for clients: ``key``, ``account``, ``endpoint`` or ``source``.
    """

    policy: str
    name: str
    limit: int


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Result of counting one request: allowed or not, and the remainder of each window it counts in."""

    allowed: bool
    policy: str
    limit: int
    remaining: int
    reset_in_s: int
    reset_at_epoch_s: int
    window_s: int
    others: tuple[RateLimit, ...] = ()

    def headers(self) -> dict[str, str]:
        """
        Headers of every response: the widespread names, and those of the IETF draft.

        The widespread ones can show one limit only, the nearest. The draft's show all.
        """
        shown = (self, *self.others)
        headers = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_at_epoch_s),
            "RateLimit-Policy": ", ".join(
                f'"{item.policy}";q={item.limit};w={item.window_s}' for item in shown
            ),
            "RateLimit": ", ".join(
                f'"{item.policy}";r={item.remaining};t={item.reset_in_s}' for item in shown
            ),
        }
        if not self.allowed:
            headers["Retry-After"] = str(self.reset_in_s)
        return headers


def allowances_of(
    principal: Principal, service: Service, endpoint: str, default: int, endpoint_limit: int | None
) -> list[Allowance]:
    """
    List the limits that a request of a key to a service counts against.

    Without a limit of the account, each key has `default` requests. A limit of the account is shared by all
    its keys, so that more keys do not give more requests. An endpoint's limit is counted per key. The voice
    assistant counts by account only, separately from the other services, whatever the service of the key.
    """
    if service == "assistant":
        own = principal.assistant_requests_per_minute
        shared = f"{principal.account_sid} assistant"
        listed = [Allowance("account", shared, default if own is None else own)]
    elif principal.requests_per_minute is None:
        listed = [Allowance("key", principal.key_id, default)]
    else:
        listed = [Allowance("account", principal.account_sid, principal.requests_per_minute)]
    if endpoint_limit is not None:
        listed.append(Allowance("endpoint", f"{principal.key_id} {endpoint}", endpoint_limit))
    return listed


@dataclass(slots=True)
class _Window:
    started_s: float
    count: int


class RateLimiter:
    """
    Counts requests per name in windows that begin with the first request of each.

    A refused request is not counted: a client that keeps retrying is admitted when its window ends.
    """

    def __init__(self, window_s: int, *, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self._window_s = window_s
        self._monotonic = monotonic
        self._wall = wall
        self._windows: dict[str, _Window] = {}

    def take(self, allowances: Sequence[Allowance]) -> RateLimit:
        """Count one request against all `allowances`, or against none when one of them is exhausted."""
        now = self._monotonic()
        windows = [self._window(allowance.name, now) for allowance in allowances]
        pairs = list(zip(allowances, windows, strict=True))
        allowed = all(window.count < allowance.limit for allowance, window in pairs)
        if allowed:
            for window in windows:
                window.count += 1
        found = [self._limit(allowance, window, now, allowed) for allowance, window in pairs]
        # The nearest limit first; of exhausted ones, the one with the longest wait.
        nearest, *others = sorted(found, key=lambda item: (item.remaining, -item.reset_in_s))
        return replace(nearest, others=tuple(others)) if others else nearest

    def __len__(self) -> int:
        return len(self._windows)

    def _window(self, name: str, now: float) -> _Window:
        window = self._windows.get(name)
        if window is None or now - window.started_s >= self._window_s:
            self._forget_old(now)
            window = self._windows[name] = _Window(now, 0)
        return window

    def _limit(self, allowance: Allowance, window: _Window, now: float, allowed: bool) -> RateLimit:
        reset_in_s = max(1, math.ceil(window.started_s + self._window_s - now))
        return RateLimit(
            allowed=allowed,
            policy=allowance.policy,
            limit=allowance.limit,
            # A limit that was lowered may be below the count.
            remaining=max(0, allowance.limit - window.count),
            reset_in_s=reset_in_s,
            reset_at_epoch_s=math.ceil(self._wall()) + reset_in_s,
            window_s=self._window_s,
        )

    def _forget_old(self, now: float) -> None:
        """Drop expired windows; one pass per new window limits the table to the names of a minute."""
        if len(self._windows) < 1024:
            return
        self._windows = {
            name: window for name, window in self._windows.items() if now - window.started_s < self._window_s
        }
