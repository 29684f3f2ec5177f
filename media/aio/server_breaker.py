"""Circuit breaker of a server on the clock of the running loop, with its changes counted and logged."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from media.audio.circuit_breaker import BreakerState, CircuitBreaker

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
    A `CircuitBreaker` that its server's connections report to.

    Attributes:
        changes: Number of changes, by the new state.
    """

    def __init__(self, breaker: CircuitBreaker, words: ServerWords, logger: logging.Logger) -> None:
        self.changes: Counter[str] = Counter(dict.fromkeys(STATES, 0))
        self._breaker = breaker
        self._words = words
        self._logger = logger

    @property
    def state(self) -> BreakerState:
        """State of the breaker."""
        return self._breaker.state

    def allows(self) -> bool:
        """Return True if the server may be asked now."""
        with self._watched():
            return self._breaker.allows(asyncio.get_running_loop().time())

    def report(self, works: bool | None) -> None:
        """Report what a request has shown of the server; None for nothing."""
        with self._watched():
            if works is None:
                self._breaker.abandoned()
            elif works:
                self._breaker.answered()
            else:
                self._breaker.failed(asyncio.get_running_loop().time())

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
