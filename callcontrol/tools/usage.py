"""Counts of the use of tools, by day, tool and key."""

from dataclasses import dataclass
from typing import Final

KEPT_DAYS: Final = 400
"""Days for which counts are kept."""

MAX_USAGE_ROWS: Final = 1000
"""Maximum number of rows of an answer."""


@dataclass(frozen=True, slots=True, order=True)
class UsageKey:
    """Key of a count: a day (``YYYY-MM-DD`` in UTC), a tool and an app key of an account."""

    account_sid: str
    day: str
    tool: str
    key_id: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of a tool: number of uses, number of failures, total and longest duration in milliseconds."""

    calls: int = 0
    errors: int = 0
    total_ms: int = 0
    max_ms: int = 0

    @property
    def mean_ms(self) -> int:
        """Mean duration, in milliseconds."""
        return round(self.total_ms / self.calls) if self.calls else 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.errors + other.errors,
            self.total_ms + other.total_ms,
            max(self.max_ms, other.max_ms),
        )


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """Filter of usage: from the first day to the last, both included, of a tool, by a key."""

    first_day: str
    last_day: str
    tool: str | None = None
    key_id: str | None = None
