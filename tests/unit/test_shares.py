"""The shares of the runners of tests."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.support.shares import shares


class _Item:
    def __init__(self, path: str, number: int) -> None:
        self.path, self.number = Path(path), number

    def __repr__(self) -> str:
        return f"{self.path}::{self.number}"


_SHORT = [_Item("unit.py", number) for number in range(600)]
_LONG = [_Item(f"sipp{file}.py", number) for file in range(12) for number in range(5)]


def _duration_s(item: pytest.Item) -> float:
    return 0.0 if item.path.name == "unit.py" else 2.0


@pytest.mark.parametrize("runners", [2, 3, 6, 10])
def test_shares_have_equal_numbers_and_take_about_the_same_time(runners: int) -> None:
    items = cast("list[pytest.Item]", _LONG + _SHORT)
    ordered = shares(items, runners, duration_s=_duration_s)
    assert sorted(map(repr, ordered)) == sorted(map(repr, items))
    assert ordered == shares(items, runners, duration_s=_duration_s)
    size = len(items) // runners
    times_s = [
        sum(map(_duration_s, ordered[number * size : (number + 1) * size])) for number in range(runners)
    ]
    assert max(times_s) - min(times_s) <= 10.0, times_s
    for number in range(runners):
        share = [_duration_s(item) > 0 for item in ordered[number * size : (number + 1) * size]]
        assert share == sorted(share, reverse=True), "what is short is at the end"


def test_tests_of_a_file_stay_together() -> None:
    ordered = shares(cast("list[pytest.Item]", _LONG + _SHORT), 6, duration_s=_duration_s)
    numbers = [cast(_Item, item).number for item in ordered if _duration_s(item) > 0]
    assert numbers == [number % 5 for number in range(len(numbers))]


def test_without_short_tests_nothing_is_lost() -> None:
    items = cast("list[pytest.Item]", _LONG)
    assert sorted(map(repr, shares(items, 7, duration_s=_duration_s))) == sorted(map(repr, items))
