"""Admission of calls: checks the server's resources before anything is allocated for a call."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from callcontrol.calls.aio.resource_limits import HostLimits
from callcontrol.errors import ServiceUnavailable

__all__ = ["REASONS", "CallGate"]

log = logging.getLogger(__name__)

RETRY_AFTER_S: Final = 5.0

REASONS: Final = {
    "database": "the database is not taking writes",
    "descriptors": "the process has too few file descriptors left",
    "memory": "the process has too little memory left",
}
"""Lacking resources, and their descriptions."""


class CallGate:
    """
    Admission gate: closed while a call could not be recorded, or would use up resources of active calls.

    ``refused`` counts the refused calls, by the lacking resource. Closing and opening are logged, not each
    refused call.
    """

    def __init__(self, database_fails: Callable[[], bool], limits: HostLimits | None = None) -> None:
        self.refused: Counter[str] = Counter()
        self._database_fails = database_fails
        self._limits = limits or HostLimits()
        self._told: str | None = None

    def lacks(self) -> str | None:
        """Return the lacking resource: ``database``, ``descriptors`` or ``memory``; None without any."""
        reason = "database" if self._database_fails() else self._limits.lack()
        if reason != self._told:
            if reason is None:
                log.warning("accepting new calls again")
            else:
                log.error("rejecting new calls: %s", REASONS[reason])
            self._told = reason
        return reason

    def admits(self) -> bool:
        """Return True when a new call may begin; count it as refused otherwise."""
        reason = self.lacks()
        if reason is None:
            return True
        self.refused[reason] += 1
        return False

    def check(self) -> None:
        """
        Check that a call may be placed.

        Raises:
            ServiceUnavailable: It may not; the message says why.
        """
        if not self.admits():
            raise ServiceUnavailable(
                f"No call can be placed now: {REASONS[self._told or 'database']}; try again shortly.",
                retry_after_s=RETRY_AFTER_S,
            )

    def begun(self) -> None:
        """Count a call that has begun."""
        self._limits.begun()
