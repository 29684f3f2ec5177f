"""
How fast a channel sends: evenly, with a little leeway.

What is kept of a channel is one moment: when its last message would have left, had all been evenly spaced.
It may lie ahead of the clock by the leeway; what would take it further has to wait.
"""

from typing import Final

__all__ = ["DIRECT_LEEWAY_MICROS", "QUEUE_LEEWAY_MICROS", "Admission", "admit"]

from dataclasses import dataclass

QUEUE_LEEWAY_MICROS: Final = 400_000
"""
Of what waits in the queue: enough for it to leave in a few turns a second, each of many messages, and less
than what is sent by itself has, so that a campaign leaves room for that.
"""

DIRECT_LEEWAY_MICROS: Final = 1_000_000
"""Of a message that is sent by itself: it goes before what waits, up to a second's worth of messages."""

_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Admission:
    """How many messages may leave now, what moment is kept then, and when more may leave."""

    count: int
    reached_at: int
    more_at: int


def admit(reached_at: int, now: int, per_second: int, wanted: int, leeway: int) -> Admission:
    """
    Let up to ``wanted`` messages through; moments and leeway are in microseconds.

    At least one may leave whenever the leeway is not used up.
    """
    interval = _SECOND // per_second
    ahead = max(reached_at, now)
    room = leeway - (ahead - now)
    count = min(wanted, room // interval + 1) if room >= 0 else 0
    reached = ahead + count * interval
    return Admission(count, reached if count else reached_at, max(reached - leeway, now))
