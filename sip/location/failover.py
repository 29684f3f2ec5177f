"""Failover between the targets of a request, and back-off of targets that failed (RFC 3263 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sip.location.rfc3263 import Target

MAX_TRIED = 4
"""Limit of targets per request."""
ATTEMPT_LIMIT_S = 12.0
"""After this time no further target is tried: the caller's next gateway may be better."""
BACKOFF_S = 30.0
MAX_BACKOFF_S = 300.0
MAX_BACKED_OFF = 4096

Outcome = Literal["timeout", "transport", "resolve", "unavailable", "response"]
"""`unavailable` is a 503; `response` any other final response, which ends the search."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A target that was tried, and its outcome."""

    transport: str
    host: str
    port: int
    outcome: Outcome
    retry_after_s: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}:{host}:{self.port} {self.outcome}"


@dataclass(slots=True)
class Failover:
    """
    Targets of one request, in the order of trying; none is tried twice.

    After a target has sent any response but 100 and 503, no other target is tried: a phone may be ringing.
    """

    _targets: Sequence[Target]
    _began: float
    _at: int = 0
    _responded: bool = False
    current: Target | None = None
    tried: list[Tried] = field(default_factory=list)

    def receive(self, status: int) -> None:
        """Record a response of the current target."""
        self._responded = self._responded or 100 < status < 503 or status > 503

    def note(self, outcome: Outcome, retry_after_s: int | None = None) -> None:
        """Record the outcome of the current target; only the first one counts."""
        target, self.current = self.current, None
        if target is not None:
            self.tried.append(Tried(target.transport, target.host, target.port, outcome, retry_after_s))

    def next(self, now: float) -> Target | None:
        """Return the next target; None when none is left, the time is over or a target has responded."""
        if self._responded or self._at >= min(len(self._targets), MAX_TRIED):
            return None
        if self._at and now - self._began >= ATTEMPT_LIMIT_S:
            return None
        self.current = self._targets[self._at]
        self._at += 1
        return self.current


@dataclass(slots=True)
class _Backoff:
    target: Target
    until: float
    lasts_s: float
    asked: bool = False


Place = tuple[str, str, int]


class ServerBackoff:
    """
    Back-off of targets that failed: until it ends, other targets are tried before them.

    The back-off starts at `BACKOFF_S` and doubles with each failure after its end, up to `MAX_BACKOFF_S`. A
    Retry-After sets it instead, within the same limit. Any response ends it. A backed-off target is still
    tried when no other is left.
    """

    def __init__(self) -> None:
        self._backoffs: dict[Place, _Backoff] = {}

    def failed(self, target: Target, now: float, retry_after_s: float | None = None) -> None:
        """Back a target off after a failure."""
        place = (target.transport, target.host, target.port)
        former = self._backoffs.pop(place, None)
        lasts_s = BACKOFF_S if former is None else former.lasts_s
        if former is not None and former.until <= now:
            lasts_s = min(2 * lasts_s, MAX_BACKOFF_S)
        if len(self._backoffs) >= MAX_BACKED_OFF:
            del self._backoffs[next(iter(self._backoffs))]
        backoff_s = lasts_s if retry_after_s is None else min(retry_after_s, MAX_BACKOFF_S)
        until = max(now + backoff_s, 0.0 if former is None else former.until)
        self._backoffs[place] = _Backoff(target, until, lasts_s)

    def answered(self, target: Target) -> None:
        """End the back-off of a target that responds."""
        if self._backoffs:
            self._backoffs.pop((target.transport, target.host, target.port), None)

    def is_backed_off(self, target: Target, now: float) -> bool:
        """True while other targets are tried before this one."""
        backoff = self._backoffs.get((target.transport, target.host, target.port))
        return backoff is not None and backoff.until > now

    def due(self, now: float) -> list[Target]:
        """
        Return the targets to probe with OPTIONS, once each, because their back-off is over.

        A target with the longest back-off is not probed but gets a call: it may respond to calls only.
        """
        found = []
        for backoff in self._backoffs.values():
            if backoff.until <= now and not backoff.asked and backoff.lasts_s < MAX_BACKOFF_S:
                backoff.asked = True
                found.append(backoff.target)
        return found

    def order(self, targets: Sequence[Target], now: float) -> list[Target]:
        """Sort backed-off targets behind the others."""
        if not self._backoffs:
            return list(targets)
        return sorted(targets, key=lambda target: self.is_backed_off(target, now))
