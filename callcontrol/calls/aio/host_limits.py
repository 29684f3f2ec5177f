"""Admission of calls: checks the server's resources before anything is allocated for a call."""

import asyncio
import logging
import os
import resource
from collections import Counter
from pathlib import Path
from typing import Final

from callcontrol.database.aio.database import Database
from callcontrol.errors import ServiceUnavailable

__all__ = ["CALL_DESCRIPTORS", "REASONS", "CallGate", "HostLimits"]

log = logging.getLogger(__name__)

RETRY_AFTER_S: Final = 5.0

REASONS: Final = {
    "database": "the database is not taking writes",
    "descriptors": "the process has too few file descriptors left",
    "memory": "the process has too little memory left",
}
"""Lacking resources, and their descriptions."""

CALL_DESCRIPTORS: Final = 6
"""Two legs with a socket for RTP and one for RTCP each, an agent's socket or a file, and one to spare."""

_KEPT_DESCRIPTORS: Final = 64
"""Reserved for the API, the database, files and the log, not for calls."""
_KEPT_SHARE: Final = 0.25
_RECOUNT_S: Final = 0.2
_COUNT_AT_LEAST_EVERY_S: Final = 10.0

_MEMORY_SHARE: Final = 0.9
_WEIGH_EVERY_S: Final = 1.0

_FOLDER: Final = Path("/proc/self")
_MEMORY: Final = _FOLDER / "statm"
_CGROUPS: Final = Path("/sys/fs/cgroup")


class HostLimits:
    """
    Checks for every new call whether there are descriptors and memory for it.

    The limits are read each time, because an operator may change them while the process runs (prlimit).
    Counting all descriptors takes a millisecond for some thousand, so the use of new calls is estimated since
    the last count, and they are counted again when the estimate comes near the limit.
    """

    def __init__(self) -> None:
        self._counted_at = -_COUNT_AT_LEAST_EVERY_S
        self._counted = 0
        self._begun = 0
        self._weighed_at = -_WEIGH_EVERY_S
        self._heavy = False
        self._memory_file = _memory_file()

    def lack(self) -> str | None:
        """Return the lacking resource for a new call, ``descriptors`` or ``memory``; None without any."""
        now = asyncio.get_running_loop().time()
        if not self._has_descriptors(now):
            return "descriptors"
        return "memory" if self._is_heavy(now) else None

    def begun(self) -> None:
        """Count a call that begins: it will open its descriptors in a moment."""
        self._begun += 1

    def _has_descriptors(self, now: float) -> bool:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit == resource.RLIM_INFINITY:
            return True
        room = limit - min(_KEPT_DESCRIPTORS, int(limit * _KEPT_SHARE)) - CALL_DESCRIPTORS
        age_s = now - self._counted_at
        tight = self._counted + self._begun * CALL_DESCRIPTORS > room
        if age_s > _COUNT_AT_LEAST_EVERY_S or (tight and age_s > _RECOUNT_S):
            self._counted_at, self._begun = now, 0
            self._counted = len(os.listdir(_FOLDER / "fd"))
        return self._counted + self._begun * CALL_DESCRIPTORS <= room

    def _is_heavy(self, now: float) -> bool:
        if now - self._weighed_at > _WEIGH_EVERY_S:
            self._weighed_at = now
            self._heavy = self._weigh()
        return self._heavy

    def _weigh(self) -> bool:
        pages = _MEMORY.read_bytes().split()
        page_bytes = resource.getpagesize()
        addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
        if addresses != resource.RLIM_INFINITY and int(pages[0]) * page_bytes > addresses * _MEMORY_SHARE:
            return True
        allowed = _number(self._memory_file)
        return allowed is not None and int(pages[1]) * page_bytes > allowed * _MEMORY_SHARE


class CallGate:
    """
    Admission gate: closed while a call could not be recorded, or would use up resources of active calls.

    ``refused`` counts the refused calls, by the lacking resource. Closing and opening are logged, not each
    refused call.
    """

    def __init__(self, database: Database | None = None, limits: HostLimits | None = None) -> None:
        self.refused: Counter[str] = Counter()
        self._database = database
        self._limits = limits or HostLimits()
        self._told: str | None = None

    def lacks(self) -> str | None:
        """Return the lacking resource: ``database``, ``descriptors`` or ``memory``; None without any."""
        failing = self._database is not None and self._database.unwritable
        reason = "database" if failing else self._limits.lack()
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


def _memory_file() -> Path | None:
    """Return the file with the memory limit of this process's control group; None without one."""
    try:
        lines = (_FOLDER / "cgroup").read_text().splitlines()
    except OSError:
        return None
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    return None if group is None else _CGROUPS / group.lstrip("/") / "memory.max"


def _number(path: Path | None) -> int | None:
    """Read a limit; None where there is none (``max``)."""
    if path is None:
        return None
    try:
        return int(path.read_bytes())
    except (OSError, ValueError):
        return None
