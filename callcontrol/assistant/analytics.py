"""Filters and analytics of calls with voice agents, without a database."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from callcontrol.assistant.calls import AssistantStatus
from callcontrol.clock import MILLISECOND, timestamp
from callcontrol.errors import ValidationFailed
from callcontrol.wallet.money import rupees

DEFAULT_DAYS: Final = 30
"""Default number of days of analytics."""

MAX_DAYS: Final = 366
"""Longest period of one request, in days."""

_EPOCH: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantCallFilter:
    """Filter of calls; ``start`` is inclusive, ``end`` exclusive. ``sandbox`` None means both kinds."""

    status: AssistantStatus | None = None
    direction: str | None = None
    agent_id: str | None = None
    phone_number: str | None = None
    sandbox: bool | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsQuery:
    """Filter of the counted calls: those created from ``start`` on and before ``end``."""

    start: datetime
    end: datetime
    agent_id: str | None = None
    sandbox: bool = False


@dataclass(frozen=True, slots=True)
class DayCount:
    """The calls of one day (days since the epoch, in UTC) with one outcome; None means still active."""

    day: int
    outcome: str | None
    calls: int
    duration_sec: int
    cost_paise: int


@dataclass(slots=True)
class _Sum:
    outcomes: Counter[str | None] = field(default_factory=Counter)
    duration_sec: int = 0
    cost_paise: int = 0

    def add(self, count: DayCount) -> None:
        self.outcomes[count.outcome] += count.calls
        self.duration_sec += count.duration_sec
        self.cost_paise += count.cost_paise

    def shown(self) -> dict[str, Any]:
        """
        The figures as a JSON object.

        ``success_rate`` is the share of ``completed`` among the calls that have ended, and the average is
        over the calls that were answered.
        """
        outcomes = self.outcomes
        total = outcomes.total()
        ended = total - outcomes[None]
        answered = outcomes["completed"] + outcomes["voicemail"]
        return {
            "total_calls": total,
            "completed_calls": outcomes["completed"],
            "failed_calls": outcomes["failed"],
            "no_answer_calls": outcomes["no-answer"],
            "busy_calls": outcomes["busy"],
            "voicemail_calls": outcomes["voicemail"],
            "in_progress_calls": outcomes[None],
            "avg_duration_seconds": round(self.duration_sec / answered, 2) if answered else 0.0,
            "total_minutes": round(self.duration_sec / 60, 2),
            "success_rate": round(outcomes["completed"] / ended, 4) if ended else 0.0,
            "total_cost": rupees(self.cost_paise),
        }


def query_of(
    start: datetime | None,
    end: datetime | None,
    now: datetime,
    *,
    agent_id: str | None = None,
    sandbox: bool = False,
) -> AnalyticsQuery:
    """
    The period between two times, each optional: by default 30 days, the last of them today.

    ``end`` is the first moment behind the period.

    Raises:
        ValidationFailed: It would end before it begins, or is longer than ``MAX_DAYS``.
    """
    try:
        until = end or _midnight(now) + timedelta(days=1)
        since = start or _midnight(until - MILLISECOND) - timedelta(days=DEFAULT_DAYS - 1)
    except OverflowError:
        raise ValidationFailed.of("end_date", "is too long ago") from None
    if since >= until:
        raise ValidationFailed.of(
            "end_date", "must not be before start_date; without end_date it is today in UTC"
        )
    # A period from one time to the same time of another day includes both.
    if until - MILLISECOND - since > timedelta(days=MAX_DAYS):
        raise ValidationFailed.of("start_date", f"must be at most {MAX_DAYS} days before end_date")
    return AnalyticsQuery(start=since, end=until, agent_id=agent_id, sandbox=sandbox)


def analytics_object(query: AnalyticsQuery, counts: Iterable[DayCount], currency: str) -> dict[str, Any]:
    """The figures of a period and of each of its days in UTC, even without calls, as a JSON object."""
    whole = _Sum()
    days: dict[int, _Sum] = {day: _Sum() for day in _days(query)}
    for count in counts:
        whole.add(count)
        days[count.day].add(count)
    return {
        "period": {"start": timestamp(query.start), "end": timestamp(query.end - MILLISECOND)},
        **whole.shown(),
        "currency": currency,
        "by_day": [
            {"date": date.fromordinal(_EPOCH + day).isoformat(), **found.shown()}
            for day, found in days.items()
        ],
    }


def _days(query: AnalyticsQuery) -> Sequence[int]:
    last = query.end.astimezone(UTC) - MILLISECOND
    return range(_day(query.start.astimezone(UTC)), _day(last) + 1)


def _day(moment: datetime) -> int:
    return moment.date().toordinal() - _EPOCH


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
