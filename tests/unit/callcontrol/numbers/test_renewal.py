"""Months and renewals: pure rules, on any clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.models import PhoneNumber
from callcontrol.numbers.renewal import (
    RenewalTerms,
    Standing,
    add_months,
    after_attempt,
    is_due,
    opened,
    standing,
)

BOUGHT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
TERMS = RenewalTerms(grace=timedelta(days=7), kept=timedelta(days=23))
DAY = timedelta(days=1)


def bought(months: int = 1) -> PhoneNumber:
    return PhoneNumber(
        "id", "account", "+911110000100", BOUGHT, BOUGHT, billing=opened(BOUGHT, months), order_id="order"
    )


def attempt(number: PhoneNumber, now: datetime, *, charged: bool) -> PhoneNumber:
    return after_attempt(number, charged=charged, now=now, terms=TERMS)


@pytest.mark.parametrize(
    ("months", "date"),
    [
        (0, (2026, 1, 31)),
        (1, (2026, 2, 28)),
        (2, (2026, 3, 31)),
        (3, (2026, 4, 30)),
        (11, (2026, 12, 31)),
        (12, (2027, 1, 31)),
        (25, (2028, 2, 29)),
    ],
)
def test_the_end_of_a_month_is_that_of_the_next(months: int, date: tuple[int, int, int]) -> None:
    assert add_months(BOUGHT, months) == datetime(*date, 12, 30, tzinfo=UTC)


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1)).map(lambda when: when.replace(tzinfo=UTC)),
    st.integers(0, 200),
)
def test_months_follow_each_other_without_gap_or_overlap(anchor: datetime, months: int) -> None:
    begin, end = add_months(anchor, months), add_months(anchor, months + 1)
    assert timedelta(days=28) <= end - begin <= timedelta(days=31)
    assert (end.year * 12 + end.month) - (begin.year * 12 + begin.month) == 1
    assert end.day == anchor.day or (end + DAY).day == 1
    assert end.time() == anchor.time()


def test_a_paid_month_moves_the_next_one() -> None:
    number = bought()
    due = datetime(2026, 2, 28, 12, 30, tzinfo=UTC)
    assert not is_due(number, due - timedelta(microseconds=1))
    assert is_due(number, due)
    number = attempt(number, due, charged=True)
    assert number.billing == opened(BOUGHT, 2)
    assert not is_due(number, due)


def test_an_unpaid_number_goes_on_is_suspended_and_is_released() -> None:
    due = add_months(BOUGHT, 1)
    number = attempt(bought(), due, charged=False)
    assert (standing(number), number.status) == (Standing.OVERDUE, "active")
    assert number.billing is not None and number.billing.deadline_at == due + 7 * DAY
    assert attempt(number, due + 6 * DAY, charged=False) is number
    number = attempt(number, due + 7 * DAY, charged=False)
    assert number.status == "suspended"
    assert number.billing is not None and number.billing.deadline_at == due + 30 * DAY
    assert attempt(number, due + 29 * DAY, charged=False) is number
    number = attempt(number, due + 30 * DAY, charged=False)
    assert (number.status, standing(number)) == ("released", Standing.RELEASED)
    assert attempt(number, due + 31 * DAY, charged=True) is number


@pytest.mark.parametrize("days", [[0], [0, 7]])
def test_paying_brings_a_number_back_where_it_would_have_been(days: list[int]) -> None:
    due = add_months(BOUGHT, 1)
    number = bought()
    for day in days:
        number = attempt(number, due + day * DAY, charged=False)
    number = attempt(number, due + 10 * DAY, charged=True)
    assert (number.status, standing(number)) == ("active", Standing.PAID)
    assert number.billing == opened(BOUGHT, 2)


def test_a_process_that_was_away_suspends_and_releases_nothing_at_once() -> None:
    late = add_months(BOUGHT, 1) + 90 * DAY
    number = attempt(bought(), late, charged=False)
    assert (number.status, standing(number)) == ("active", Standing.OVERDUE)
    number = attempt(number, late + 60 * DAY, charged=False)
    assert number.status == "suspended"
    assert attempt(number, late + 60 * DAY, charged=False) is number


def test_what_was_not_bought_is_never_due() -> None:
    number = PhoneNumber("id", "account", "+911110000100", BOUGHT, BOUGHT)
    assert not is_due(number, datetime(2099, 1, 1, tzinfo=UTC))
