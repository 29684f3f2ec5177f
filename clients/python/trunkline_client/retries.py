"""Decision to repeat a request, and after how long. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random
from typing import Final

from trunkline_client.errors import ApiError, ConnectionFailed, TrunklineError
from trunkline_client.operation import Prepared

__all__ = ["DEFAULT_POLICY", "RetryPolicy"]

_WORTH_REPEATING: Final = frozenset({429, 500, 502, 503})
# A repetition whose first attempt is not done yet; the server soon has its answer.
_STILL_RUNNING: Final = (409, "IDEMPOTENCY_CONFLICT")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    Repetition of requests that failed by no fault of their own.

    GET, PUT, PATCH and DELETE are repeated, a POST only with its idempotency key. The wait is that of
    ``Retry-After``, or else doubles from `first_s` up to `longest_s`, of which a random half is left out.
    A server that asks for more than `patience_s` is not waited for.
    """

    retries: int = 3
    first_s: float = 0.5
    longest_s: float = 8.0
    patience_s: float = 60.0

    def wait_s(
        self, attempt: int, request: Prepared, error: TrunklineError, chance: Callable[[], float] = random
    ) -> float | None:
        """Seconds until the next attempt after a failed one, counted from 1; None if there is to be none."""
        if attempt > self.retries or not request.is_repeatable:
            return None
        backoff_s = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1)) * (0.5 + chance() / 2)
        if isinstance(error, ConnectionFailed):
            return backoff_s
        if not isinstance(error, ApiError):
            return None
        still_running = attempt > 1 and (error.status, error.code.upper()) == _STILL_RUNNING
        if error.status not in _WORTH_REPEATING and not still_running:
            return None
        if error.retry_after_s is None:
            return backoff_s
        return error.retry_after_s if error.retry_after_s <= self.patience_s else None


DEFAULT_POLICY: Final = RetryPolicy()
"""Three repetitions, the first after half a second."""
