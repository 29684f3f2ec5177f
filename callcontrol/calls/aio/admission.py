"""Whether the server itself can carry one more call, before anything is allocated for it."""

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
"""What may be lacking, and how that is said."""


class CallGate:
    """
    Closed while a call could not be recorded, or would take what the calls that are up need.

    ``refused`` counts the calls it kept out, by what was lacking. Closing and opening are logged, not each
    call that comes meanwhile.
    """

    def __init__(self, database_fails: Callable[[], bool], limits: HostLimits | None = None) -> None:
        self.refused: Counter[str] = Counter()
        self._database_fails = database_fails
        self._limits = limits or HostLimits()
        self._told: str | None = None

    def lacks(self) -> str | None:
        """Say what is lacking now: ``database``, ``descriptors`` or ``memory``; None when calls are taken."""
        reason = "database" if self._database_fails() else self._limits.lack()
        if reason != self._told:
            if reason is None:
                log.warning("new calls are taken again")
            else:
                log.error("new calls are refused: %s", REASONS[reason])
            self._told = reason
        return reason

    def admits(self) -> bool:
        """Whether a call that comes now may begin; counts one that may not."""
        reason = self.lacks()
        if reason is None:
            return True
        self.refused[reason] += 1
        return False

    def check(self) -> None:
        """
        Let a call begin that is about to be placed.

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
