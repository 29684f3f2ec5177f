"""Circuit breaker of a server: after failures in a row it is left alone, then tried by one request."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final


class BreakerState(IntEnum):
    """State of a circuit breaker: requests pass, none passes, one has passed to try the server."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


class BreakerEvent(Enum):
    """Input of a circuit breaker; `ANSWERED` is any answer of a server that works, a refusal included."""

    ANSWERED = 0
    FAILED = 1
    FAILED_OFTEN = 2
    COOLDOWN_OVER = 3
    ABANDONED = 4


@dataclass(slots=True)
class CircuitBreaker:
    """
    Decides by the results of earlier requests if a server is asked; times are on the monotonic clock.

    Whoever `allows` let pass reports the result by `answered`, `failed` or `abandoned`.

    Attributes:
        failures: Failures in a row that open it.
        first_cooldown_s: Time for which it is open; each failed trial doubles it, up to `max_cooldown_s`.
        cooldown_s: Length of the present or last cooldown.
    """

    failures: int = 3
    first_cooldown_s: float = 5.0
    max_cooldown_s: float = 60.0
    state: BreakerState = BreakerState.CLOSED
    cooldown_s: float = 0.0
    _in_a_row: int = 0
    _until: float = 0.0

    def allows(self, now: float) -> bool:
        """Return True if a request may be made; once per cooldown for the trial of an open one."""
        if self.state is BreakerState.OPEN and now >= self._until:
            self._trigger(BreakerEvent.COOLDOWN_OVER)
            return True
        return self.state is BreakerState.CLOSED

    def answered(self) -> None:
        """Report that the server works."""
        self._in_a_row = 0
        self.cooldown_s = 0.0
        self._trigger(BreakerEvent.ANSWERED)

    def failed(self, now: float) -> None:
        """Report that the server did not answer, or failed."""
        self._in_a_row += 1
        before = self.state
        often = self._in_a_row >= self.failures
        self._trigger(BreakerEvent.FAILED_OFTEN if often else BreakerEvent.FAILED)
        # Requests that fail together are one failure: those after the first change nothing.
        if self.state is BreakerState.OPEN and before is not BreakerState.OPEN:
            self.cooldown_s = min(2 * self.cooldown_s or self.first_cooldown_s, self.max_cooldown_s)
            self._until = now + self.cooldown_s

    def abandoned(self) -> None:
        """Report that the request ended without a result; the next one is the trial, if this was."""
        self._trigger(BreakerEvent.ABANDONED)

    def _trigger(self, event: BreakerEvent) -> None:
        if (self.state, event) not in IGNORED:
            (self.state,) = RULES[self.state, event]


_S, _E = BreakerState, BreakerEvent
RULES: Final[Mapping[tuple[BreakerState, BreakerEvent], tuple[BreakerState]]] = MappingProxyType(
    {
        (_S.CLOSED, _E.FAILED_OFTEN): (_S.OPEN,),
        # A request from before the opening was answered after all.
        (_S.OPEN, _E.ANSWERED): (_S.CLOSED,),
        (_S.OPEN, _E.COOLDOWN_OVER): (_S.HALF_OPEN,),
        (_S.HALF_OPEN, _E.ANSWERED): (_S.CLOSED,),
        (_S.HALF_OPEN, _E.FAILED): (_S.OPEN,),
        (_S.HALF_OPEN, _E.FAILED_OFTEN): (_S.OPEN,),
        (_S.HALF_OPEN, _E.ABANDONED): (_S.OPEN,),
    }
)
IGNORED: Final = frozenset(
    {(_S.CLOSED, _E.ANSWERED), (_S.CLOSED, _E.FAILED), (_S.CLOSED, _E.ABANDONED)}
    # Only an open one has a cooldown that ends.
    | {(state, _E.COOLDOWN_OVER) for state in (_S.CLOSED, _S.HALF_OPEN)}
    # What was under way at the opening fails as the others did.
    | {(_S.OPEN, event) for event in (_E.FAILED, _E.FAILED_OFTEN, _E.ABANDONED)}
)

STATES = tuple(state.name.lower() for state in BreakerState)
"""States of a circuit breaker, as metrics have them."""


@dataclass(frozen=True, slots=True)
class ServerWords:
    """
    Words of the log for a server: `the recogniser` and `a party`, for example.

    Attributes:
        server: Name of the server.
        meanwhile: Consequence of its failure, such as `it is left alone`.
        trial: Name of what it is tried by.
    """

    server: str
    meanwhile: str
    trial: str


class ServerBreaker:
    """
    A `CircuitBreaker` to which the requests to its server report; changes are counted and logged.

    `clock` tells the monotonic time.

    Attributes:
        changes: Number of changes, by the new state.
    """

    def __init__(
        self,
        breaker: CircuitBreaker,
        words: ServerWords,
        logger: logging.Logger,
        clock: Callable[[], float],
    ) -> None:
        self.changes: Counter[str] = Counter(dict.fromkeys(STATES, 0))
        self._breaker = breaker
        self._words = words
        self._logger = logger
        self._clock = clock

    @property
    def state(self) -> BreakerState:
        """State of the breaker."""
        return self._breaker.state

    def allows(self) -> bool:
        """Return True if the server may be asked now."""
        with self._watched():
            return self._breaker.allows(self._clock())

    def report(self, works: bool | None) -> None:
        """Report what a request has shown of the server; None for nothing."""
        with self._watched():
            if works is None:
                self._breaker.abandoned()
            elif works:
                self._breaker.answered()
            else:
                self._breaker.failed(self._clock())

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Count and log a change."""
        before = self._breaker.state
        yield
        now, words = self._breaker.state, self._words
        if now is before:
            return
        self.changes[now.name.lower()] += 1
        match now:
            case BreakerState.OPEN:
                cooldown_s = self._breaker.cooldown_s
                self._logger.warning("%s fails: %s for %.1f s", words.server, words.meanwhile, cooldown_s)
            case BreakerState.HALF_OPEN:
                self._logger.info("%s is tried by %s", words.server, words.trial)
            case BreakerState.CLOSED:
                self._logger.info("%s works again", words.server)
