"""Ranges of dates and times: both ends are included, at the millisecond that is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.time_ranges import time_span
from callcontrol.clock import timestamp
from callcontrol.errors import ValidationFailed

DAY = datetime(2026, 1, 31, tzinfo=UTC)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ONE = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("start_date", "end_date", "start", "end"),
    [
        (None, None, None, None),
        ("2026-01-31", None, DAY, None),
        (None, "2026-01-31", None, DAY + timedelta(days=1)),
        ("2026-01-31", "2026-01-31", DAY, DAY + timedelta(days=1)),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", NOON, NOON + ONE),
        ("2026-01-31T12:00:00.000Z", "2026-01-31T12:00:00.083Z", NOON, NOON + 84 * ONE),
        ("2026-01-31T12:00:00.000999Z", "2026-01-31T12:00:00.083999Z", NOON, NOON + 84 * ONE),
        ("2026-01-31T17:30:00+05:30", "2026-01-31T17:30:00 05:30", NOON, NOON + ONE),
        ("2026-01-31T12:00:00Z", "2026-01-31", NOON, DAY + timedelta(days=1)),
        ("2026-01-31t12:00:00z", "2026-01-31t17:30:00.000+05:30", NOON, NOON + ONE),
        ("0001-01-01", "9999-12-30", datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)),
        (
            None,
            "9999-12-31T23:59:59.998Z",
            None,
            datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        ),
    ],
)
def test_both_ends_are_included(
    start_date: str | None, end_date: str | None, start: datetime | None, end: datetime | None
) -> None:
    assert time_span(start_date, end_date) == (start, end)


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_what_is_shown_of_a_moment_finds_the_moment(moment: datetime) -> None:
    shown = timestamp(moment)
    start, end = time_span(shown, shown)
    assert start is not None and end is not None
    assert start <= moment < end == start + ONE


@pytest.mark.parametrize(
    ("start_date", "end_date", "fields"),
    [
        ("2026-02-01", "2026-01-31", ["end_date"]),
        ("2026-01-31T12:00:00.001Z", "2026-01-31T12:00:00Z", ["end_date"]),
        ("2026-02-01T00:00:00Z", "2026-01-31", ["end_date"]),
        ("yesterday", "2026-13-01", ["start_date", "end_date"]),
        ("2026-01-31T12:00:00", "", ["start_date", "end_date"]),
        (None, "9999-12-31", ["end_date"]),
        (None, "9999-12-31T23:59:59.999Z", ["end_date"]),
        (None, "9999-12-31T23:59:59-05:30", ["end_date"]),
        ("0001-01-01T00:00:00+05:30", None, ["start_date"]),
    ],
)
def test_what_is_no_range_names_its_fields(
    start_date: str | None, end_date: str | None, fields: list[str]
) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        time_span(start_date, end_date)
    assert [error.field for error in refusal.value.errors] == fields


@pytest.mark.parametrize(
    "written",
    [
        *("2026-W05-6", "2026W056", "20260131", "2026-031", "２０２６-01-31", "2026-1-31"),
        *("2026-01-31T12:00:00+0530", "2026-01-31T12:00:00,5Z", "2026-01-31T12:00Z", "2026-01-31T12Z"),
        *("20260131T120000Z", "2026-01-31T12:00:00", "2026-01-31_12:00:00Z", "2026-01-31T12:00:00+05:30:15"),
    ],
)
def test_other_forms_of_iso_8601_are_refused(written: str) -> None:
    with pytest.raises(ValidationFailed, match="YYYY-MM-DD or RFC 3339"):
        time_span(written, None)


def test_a_space_may_stand_for_the_t() -> None:
    assert time_span("2026-01-31 12:00:00Z", None) == (NOON, None)


def test_fields_have_the_names_of_their_request() -> None:
    with pytest.raises(ValidationFailed) as refusal:
        time_span("2026-02-01", "2026-01-01", ("since", "until"))
    assert [(error.field, error.message) for error in refusal.value.errors] == [
        ("until", "must not be before since")
    ]
