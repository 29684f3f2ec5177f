"""
Sending to the network: the pace of a channel, and the delays of retries.

The pace is even, with a little leeway. One time is stored of a channel: when its last message
would have left, had all been evenly spaced. It may be ahead of the clock by the leeway; messages that would
take it further have to wait.
"""

from dataclasses import dataclass
from typing import Final

CAMPAIGN_LEEWAY_MICROS: Final = 400_000
"""
Leeway of a campaign's messages, in microseconds.

It is enough to send them in a few turns a second, each of many messages, and less than that of single
messages, so that a campaign leaves room for those.
"""

SINGLE_LEEWAY_MICROS: Final = 1_000_000
"""Leeway of single messages: they precede those of campaigns, up to a second's worth of messages."""

UNAVAILABLE: Final = "NETWORK_UNAVAILABLE"
"""The ``error_code`` of messages that could not be handed to the network."""

MAX_ATTEMPTS: Final = 15
"""With the delays below that is half an hour."""

_FIRST_S: Final = 1.0
_LAST_S: Final = 300.0
_SPREAD: Final = 0.2
_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Admission:
    """Number of messages that may leave now, the time to store then, and the time when more may leave."""

    count: int
    reached_at: int
    more_at: int


def admit(reached_at: int, now: int, per_second: int, wanted: int, leeway: int) -> Admission:
    """
    Admit up to ``wanted`` messages; times and leeway are in microseconds.

    At least one may leave whenever the leeway is not used up.
    """
    interval = _SECOND // per_second
    ahead = max(reached_at, now)
    room = leeway - (ahead - now)
    count = min(wanted, room // interval + 1) if room >= 0 else 0
    reached = ahead + count * interval
    return Admission(count, reached if count else reached_at, max(reached - leeway, now))


def retry_delay_s(attempts: int, *, jitter: float) -> float | None:
    """Seconds from the last of ``attempts`` to the next one; None for no more. ``jitter`` is from 0 to 1."""
    if attempts >= MAX_ATTEMPTS:
        return None
    delay_s = min(_FIRST_S * 2 ** (attempts - 1), _LAST_S)
    return float(delay_s * (1 - _SPREAD + 2 * _SPREAD * jitter))
