"""Wall-clock times: those of a call, counted from monotonic ones, and their text."""

from datetime import UTC, datetime, timedelta
from typing import Final

from sip.values import frozen

MILLISECOND: Final = timedelta(milliseconds=1)
"""Precision in which times are shown."""


_MICROSECOND: Final = timedelta(microseconds=1)


@frozen
class WallClock:
    """
    Conversion of monotonic times to wall-clock times.

    All times of one call are computed from its creation, so a step of the system clock during the call never
    makes its end earlier than its answer.
    """

    monotonic_s: float
    wall: datetime

    def at(self, now: float) -> datetime:
        """The wall-clock time, in UTC and whole milliseconds, of a monotonic time."""
        moment = self.wall + timedelta(seconds=now - self.monotonic_s)
        return to_millisecond(moment if moment.tzinfo is UTC else moment.astimezone(UTC))

    def at_us(self, now: float) -> int:
        """Microseconds since 1970 of a monotonic time."""
        return round((self.wall.timestamp() + now - self.monotonic_s) * 1_000_000)


def to_millisecond(moment: datetime) -> datetime:
    """Cut a time to the millisecond in which it is shown."""
    return moment - _MICROSECOND * (moment.microsecond % 1000)


def timestamp(moment: datetime | None) -> str | None:
    """Format an aware time as RFC 3339 in UTC, with milliseconds and ``Z``; None for None."""
    if moment is None:
        return None
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
