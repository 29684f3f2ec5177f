"""Money: integer paise internally, rupees in the interfaces."""

from datetime import UTC, datetime
from typing import Final

MAX_PAISE: Final = 10**15
"""Ten trillion rupees: far above any balance, far below what the database's integers hold."""

HOUR_MICROS: Final = 3_600_000_000
"""A time in microseconds since the epoch, divided by this, gives the clock hour of a spend limit (UTC)."""


def rupees(paise: int) -> float:
    """Amount as the JSON number of the interfaces; exact to the paisa below ten trillion rupees."""
    return paise / 100


def pulses(duration_s: int, pulse_s: int = 60) -> int:
    """Started pulses of a duration; none for a duration of 0."""
    return -(-max(duration_s, 0) // pulse_s)


def hour_of(moment: datetime) -> int:
    """Clock hour of a spend limit: hours since the epoch (UTC)."""
    return int(moment.timestamp()) // 3600


def end_of_hour(hour: int) -> datetime:
    """End of a clock hour."""
    return datetime.fromtimestamp((hour + 1) * 3600, UTC)
