"""Which target of several is tried next, and which are left alone for a while (RFC 3263 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sip.location.rfc3263 import Target

__all__ = ["Failover", "Outcome", "TargetRests", "Tried"]

MAX_TRIED = 4
"""Targets one request is sent to."""
ATTEMPT_LIMIT_S = 12.0
"""After this time no further target is begun with: the caller's next gateway may be better."""
REST_S = 30.0
LONGEST_REST_S = 300.0
MAX_RESTING = 4096

Outcome = Literal["timeout", "transport", "resolve", "unavailable", "response"]
"""`unavailable` is a 503; `response` any other final response, which ends the search."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A target that was tried, and what came of it."""

    transport: str
    host: str
    port: int
    outcome: Outcome
    retry_after_s: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}:{host}:{self.port} {self.outcome}"


class Failover:
    """
    The targets of one request, in the order they are tried; none is tried twice.

    Once a target has said more than 100 the request is in its hands, and no other is tried: a phone
    may be ringing.
    """

    __slots__ = ("_at", "_began", "_heard", "_targets", "current", "tried")

    def __init__(self, targets: Sequence[Target], now: float) -> None:
        self._targets = targets
        self._at = 0
        self._began = now
        self._heard = False
        self.current: Target | None = None
        self.tried: list[Tried] = []

    def hear(self, status: int) -> None:
        """Note a response of the current target."""
        self._heard = self._heard or 100 < status < 503 or status > 503

    def note(self, outcome: Outcome, retry_after_s: int | None = None) -> None:
        """Note what came of the current target, once."""
        target, self.current = self.current, None
        if target is not None:
            self.tried.append(Tried(target.transport, target.host, target.port, outcome, retry_after_s))

    def next(self, now: float) -> Target | None:
        """The target to try next; None when there is none, or it is not to be."""
        if self._heard or self._at >= min(len(self._targets), MAX_TRIED):
            return None
        if self._at and now - self._began >= ATTEMPT_LIMIT_S:
            return None
        self.current = self._targets[self._at]
        self._at += 1
        return self.current


@dataclass(slots=True)
class _Rest:
    target: Target
    until: float
    lasts_s: float
    asked: bool = False


Place = tuple[str, str, int]


class TargetRests:
    """
    Targets that failed, and until when others are tried before them.

    A target rests longer each time it fails again, and for as long as it asks with Retry-After; one
    response ends that. A target at rest is still tried when no other is left.
    """

    def __init__(self) -> None:
        self._rests: dict[Place, _Rest] = {}

    def __len__(self) -> int:
        return len(self._rests)

    def failed(self, target: Target, now: float, retry_after_s: float | None = None) -> None:
        """Let a target rest."""
        place = (target.transport, target.host, target.port)
        former = self._rests.pop(place, None)
        lasts_s = REST_S if former is None else former.lasts_s
        if former is not None and former.until <= now:
            lasts_s = min(2 * lasts_s, LONGEST_REST_S)
        if len(self._rests) >= MAX_RESTING:
            del self._rests[next(iter(self._rests))]
        rest_s = lasts_s if retry_after_s is None else min(retry_after_s, LONGEST_REST_S)
        until = max(now + rest_s, 0.0 if former is None else former.until)
        self._rests[place] = _Rest(target, until, lasts_s)

    def answered(self, target: Target) -> None:
        """End the rest of a target that answers."""
        if self._rests:
            self._rests.pop((target.transport, target.host, target.port), None)

    def at_rest(self, target: Target, now: float) -> bool:
        """Whether others are to be tried before this one."""
        rest = self._rests.get((target.transport, target.host, target.port))
        return rest is not None and rest.until > now

    def due(self, now: float) -> list[Target]:
        """
        Targets whose rest is over and that are to be asked whether they are alive, before calls are.

        One that rested for the longest time is given a call instead: it may be one that answers calls only.
        """
        found = []
        for rest in self._rests.values():
            if rest.until <= now and not rest.asked and rest.lasts_s < LONGEST_REST_S:
                rest.asked = True
                found.append(rest.target)
        return found

    def order(self, targets: Sequence[Target], now: float) -> list[Target]:
        """Put targets at rest behind the others."""
        if not self._rests:
            return list(targets)
        return sorted(targets, key=lambda target: self.at_rest(target, now))
