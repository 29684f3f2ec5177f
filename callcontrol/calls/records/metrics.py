"""Metrics of the calls of a process, from its start on."""

from collections import Counter
from datetime import datetime
from itertools import product
from typing import Final

from callcontrol.histogram import Histogram
from callcontrol.models import CallRecord, CallStatus

__all__ = ["CallMetrics", "StreamMetrics"]

_SET_UP_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_DURATION_S: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_DIRECTIONS: Final = ("inbound", "outbound")
_OUTCOMES: Final = tuple(status.value for status in CallStatus if status.ended)
_REFUSALS: Final = ("draining", "loop", "no_room", "not_allowed", "not_recorded", "unknown_number")


class StreamMetrics:
    """
    Streams to voice agents.

    Attributes:
        open: Connected streams.
        connects: Attempts to reach an agent, by result: ``connected``, or the reason of the failure.
        frames_dropped: Audio frames dropped because agents were too slow.
    """

    def __init__(self) -> None:
        self.open = 0
        self.connects: Counter[str] = Counter(connected=0)
        self.frames_dropped = 0


class CallMetrics:
    """
    Counts and durations of calls.

    Attributes:
        ended: Ended calls, by direction and final status.
        answered: Ended calls that were answered, by direction.
        causes: Ended calls, by hangup cause and hangup source.
        set_up_s: Time from a call's beginning to its answer, by direction.
        post_dial_delay_s: Time from the beginning of a placed call until the party rang, or answered.
        duration_s: Durations of answered calls, by direction.
        refused: Refused new calls, by reason.
        wallet_failures: Failures of wallets: ``reserve`` or ``extend`` for insufficient money;
            ``unavailable`` when the database did not answer.
        streams: Metrics of the streams to voice agents.
    """

    def __init__(self) -> None:
        self.ended: Counter[tuple[str, str]] = Counter(dict.fromkeys(product(_DIRECTIONS, _OUTCOMES), 0))
        self.answered: Counter[str] = Counter(dict.fromkeys(_DIRECTIONS, 0))
        self.causes: Counter[tuple[str, str]] = Counter()
        self.set_up_s = {direction: Histogram(_SET_UP_S) for direction in _DIRECTIONS}
        self.post_dial_delay_s = Histogram(_SET_UP_S)
        self.duration_s = {direction: Histogram(_DURATION_S) for direction in _DIRECTIONS}
        self.refused: Counter[str] = Counter(dict.fromkeys(_REFUSALS, 0))
        self.wallet_failures: Counter[str] = Counter(reserve=0, extend=0, unavailable=0)
        self.streams = StreamMetrics()

    def note_end(self, record: CallRecord) -> None:
        """Count an ended call."""
        direction, answered_at = record.direction, record.answered_at
        self.ended[direction, record.status] += 1
        self.causes[record.hangup_cause or "none", record.hangup_source or "none"] += 1
        rang_at = record.ringing_at or answered_at
        if direction == "outbound" and rang_at is not None:
            self.post_dial_delay_s.observe(_seconds(record.created_at, rang_at))
        if answered_at is None:
            return
        self.answered[direction] += 1
        self.set_up_s[direction].observe(_seconds(record.created_at, answered_at))
        if record.ended_at is not None:
            self.duration_s[direction].observe(_seconds(answered_at, record.ended_at))


def _seconds(since: datetime, until: datetime) -> float:
    return max((until - since).total_seconds(), 0.0)
