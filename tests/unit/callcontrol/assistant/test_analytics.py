"""Figures of calls with agents, against a count that is as plain as can be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.assistant.analytics import MAX_DAYS, DayCount, analytics_object, query_of
from callcontrol.clock import MILLISECOND, timestamp
from callcontrol.errors import ValidationFailed

NOW = datetime(2026, 3, 10, 15, 30, tzinfo=UTC)
OUTCOMES = ("completed", "failed", "no-answer", "busy", "voicemail", None)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)


@st.composite
def calls(draw: st.DrawFn) -> list[tuple[datetime, str | None, int, int]]:
    """Calls of nine days: when, how they ended, how long they were and what they cost."""
    one = st.tuples(
        st.datetimes(datetime(2026, 3, 1), datetime(2026, 3, 9, 23, 59, 59)).map(
            lambda moment: moment.replace(tzinfo=UTC)
        ),
        st.sampled_from(OUTCOMES),
        st.integers(0, 4000),
        st.integers(0, 500),
    )
    return draw(st.lists(one, max_size=40))


def counted(made: list[tuple[datetime, str | None, int, int]]) -> list[DayCount]:
    """One count for each call: what the database adds up before, in the finest parts that it may be in."""
    answered = ("completed", "voicemail")
    return [
        DayCount(
            at.date().toordinal() - 719163,
            outcome,
            1,
            duration if outcome in answered else 0,
            cost if outcome else 0,
        )
        for at, outcome, duration, cost in made
    ]


@given(calls())
def test_the_figures_are_those_of_a_plain_count(made: list[tuple[datetime, str | None, int, int]]) -> None:
    query = query_of(FIRST, FIRST + timedelta(days=9), NOW)
    shown = analytics_object(query, counted(made), "INR")
    _agrees(shown, made)
    assert len(shown["by_day"]) == 9
    for day in shown["by_day"]:
        _agrees(day, [item for item in made if item[0].date().isoformat() == day["date"]])


def _agrees(shown: dict[str, Any], made: list[tuple[datetime, str | None, int, int]]) -> None:
    def of(*outcomes: str | None) -> list[tuple[datetime, str | None, int, int]]:
        return [item for item in made if item[1] in outcomes]

    talked = of("completed", "voicemail")
    seconds = sum(item[2] for item in talked)
    ended = [item for item in made if item[1] is not None]
    assert shown["total_calls"] == len(made)
    assert shown["completed_calls"] == len(of("completed"))
    assert shown["failed_calls"] == len(of("failed"))
    assert shown["no_answer_calls"] == len(of("no-answer"))
    assert shown["busy_calls"] == len(of("busy"))
    assert shown["voicemail_calls"] == len(of("voicemail"))
    assert shown["in_progress_calls"] == len(of(None))
    assert shown["total_minutes"] == round(seconds / 60, 2)
    assert shown["avg_duration_seconds"] == (round(seconds / len(talked), 2) if talked else 0.0)
    assert shown["success_rate"] == (round(len(of("completed")) / len(ended), 4) if ended else 0.0)
    assert shown["total_cost"] == pytest.approx(sum(item[3] for item in ended) / 100)


def test_without_dates_the_last_thirty_days_are_meant_today_included() -> None:
    query = query_of(None, None, NOW)
    assert (query.start, query.end) == (
        datetime(2026, 2, 9, tzinfo=UTC),
        datetime(2026, 3, 11, tzinfo=UTC),
    )
    days = analytics_object(query, (), "INR")["by_day"]
    assert (len(days), days[0]["date"], days[-1]["date"]) == (30, "2026-02-09", "2026-03-10")


def test_a_time_within_a_day_is_that_day() -> None:
    query = query_of(NOW - timedelta(hours=1), NOW, NOW)
    assert [day["date"] for day in analytics_object(query, (), "INR")["by_day"]] == ["2026-03-10"]


def test_a_period_is_shown_with_its_last_millisecond() -> None:
    query = query_of(FIRST, FIRST + timedelta(days=1), NOW)
    period = analytics_object(query, (), "INR")["period"]
    assert period == {"start": timestamp(FIRST), "end": timestamp(FIRST + timedelta(days=1) - MILLISECOND)}


def test_the_longest_period_includes_both_its_ends() -> None:
    end = NOW + MILLISECOND
    assert query_of(NOW - timedelta(days=MAX_DAYS), end, NOW).end == end
    with pytest.raises(ValidationFailed):
        query_of(NOW - timedelta(days=MAX_DAYS) - MILLISECOND, end, NOW)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (NOW + timedelta(days=2), None),
        (NOW, NOW),
        (NOW - timedelta(days=MAX_DAYS + 1), NOW),
        (None, datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_times_that_make_no_sense(start: datetime | None, end: datetime | None) -> None:
    with pytest.raises(ValidationFailed):
        query_of(start, end, NOW)
