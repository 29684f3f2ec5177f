"""Filters and statistics of masked calls."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from callcontrol.clock import MILLISECOND, timestamp, to_millisecond
from callcontrol.errors import ValidationFailed
from callcontrol.masking.calls import MaskedStatus
from callcontrol.masking.sessions import SessionCounts
from callcontrol.wallet.money import rupees

DEFAULT_DAYS: Final = 30
"""Default length of the period of statistics, in days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedCallFilter:
    """
    Filter of masked calls; ``start`` is inclusive, ``end`` exclusive.

    Attributes:
        status: A final status or that of an active call.
        direction: ``click_to_call`` or ``inbound``.
        party: A number in E.164 of one of the two parties.
    """

    status: MaskedStatus | None = None
    direction: str | None = None
    party: str | None = None
    session_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedCallCounts:
    """
    Counts and totals of the calls of a period.

    ``answered`` counts calls whose parties were connected, including active ones; ``failed`` and
    ``no_answer`` ended with the status of that name, and ``in_progress`` have not ended.
    """

    total: int = 0
    answered: int = 0
    failed: int = 0
    no_answer: int = 0
    in_progress: int = 0
    bill_duration_sec: int = 0
    cost_paise: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingStats:
    """
    The use of masking from ``start`` on and before ``end``.

    Sessions are those created then.
    """

    start: datetime
    end: datetime
    calls: MaskedCallCounts
    sessions: SessionCounts


def period_of(start: datetime | None, end: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    """
    The period between two times, each optional: it ends now, and begins 30 days before its end.

    ``end`` is the first moment behind the period.

    Raises:
        ValidationFailed: It would end before it begins.
    """
    if end is None and start is not None and start > now:
        raise ValidationFailed.of(
            "start_date", "must not be in the future without an end_date; a date begins at 00:00 UTC"
        )
    end = end or to_millisecond(now) + MILLISECOND
    try:
        start = start or end - MILLISECOND - timedelta(days=DEFAULT_DAYS)
    except OverflowError:
        raise ValidationFailed.of("end_date", "is too long ago") from None
    if start >= end:
        raise ValidationFailed.of("end_date", "must not be before start_date")
    return start, end


def stats_object(stats: MaskingStats, currency: str) -> dict[str, Any]:
    """The statistics as a JSON object; money is in rupees."""
    calls = stats.calls
    return {
        "period": {"start": timestamp(stats.start), "end": timestamp(stats.end - MILLISECOND)},
        "total_sessions": stats.sessions.total,
        "active_sessions": stats.sessions.active,
        "total_mappings": stats.sessions.mappings,
        "total_calls": calls.total,
        "answered_calls": calls.answered,
        "failed_calls": calls.failed,
        "no_answer_calls": calls.no_answer,
        "in_progress_calls": calls.in_progress,
        "total_minutes": round(calls.bill_duration_sec / 60, 2),
        "total_cost": rupees(calls.cost_paise),
        "currency": currency,
    }
