from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.errors import ValidationFailed
from callcontrol.money import MAX_PAISE, parse_rupees, pulses, rupees


@given(st.integers(min_value=-MAX_PAISE, max_value=MAX_PAISE))
def test_amounts_read_back(paise: int) -> None:
    assert parse_rupees(f"{paise // 100}.00") == paise // 100 * 100
    assert round(rupees(paise) * 100) == paise


@pytest.mark.parametrize(("text", "paise"), [("500", 50_000), ("12.5", 1250), ("0.01", 1), ("-3", -300)])
def test_rupees(text: str, paise: int) -> None:
    assert parse_rupees(text) == paise


@pytest.mark.parametrize("text", ["", "x", "1.001", "inf", "nan", "1e30", "1,000"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValidationFailed):
        parse_rupees(text)


@pytest.mark.parametrize(("seconds", "count"), [(-1, 0), (0, 0), (1, 1), (60, 1), (61, 2), (600, 10)])
def test_started_pulses(seconds: int, count: int) -> None:
    assert pulses(seconds) == count
