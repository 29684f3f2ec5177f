from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.wallet.money import MAX_PAISE, pulses, rupees


@given(st.integers(min_value=-MAX_PAISE, max_value=MAX_PAISE))
def test_amounts_read_back(paise: int) -> None:
    assert round(rupees(paise) * 100) == paise


@pytest.mark.parametrize(("seconds", "count"), [(-1, 0), (0, 0), (1, 1), (60, 1), (61, 2), (600, 10)])
def test_started_pulses(seconds: int, count: int) -> None:
    assert pulses(seconds) == count
