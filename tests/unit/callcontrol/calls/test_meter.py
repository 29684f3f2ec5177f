"""Charges by started pulses, and when a reserve runs out."""

from hypothesis import given
from hypothesis import strategies as st

from callcontrol.calls.charges import Meter


def test_pulses_are_started_ones() -> None:
    meter = Meter(60.0)
    assert meter.pulses(0, 0.0) == 0
    meter.start(0, 60, 100.0)
    for elapsed_s, pulses in ((0.0, 1), (0.1, 1), (60.0, 1), (60.001, 2), (120.0, 2), (121.0, 3)):
        assert meter.pulses(0, 100.0 + elapsed_s) == pulses
    meter.stop(0, 130.0)
    meter.stop(0, 500.0)
    assert meter.pulses(0, 1000.0) == 1
    assert meter.charge_paise(1000.0) == 60


def test_several_legs_add_up() -> None:
    meter = Meter(60.0)
    meter.start(0, 40, 0.0)
    meter.start(1, 60, 30.0)
    assert (meter.charge_paise(59.0), meter.charge_paise(61.0), meter.charge_paise(91.0)) == (100, 140, 200)
    assert meter.rate_paise() == 100
    meter.stop(1, 91.0)
    assert meter.rate_paise() == 40


def test_when_a_reserve_runs_out() -> None:
    meter = Meter(60.0)
    assert meter.exhausted_at(500, 0.0) is None
    meter.start(0, 40, 0.0)
    meter.start(1, 60, 0.0)
    assert meter.exhausted_at(500, 0.0) == 300.0
    assert meter.exhausted_at(550, 0.0) == 300.0  # one leg's pulse fits, both do not
    meter.start(2, 60, 10.0)
    assert meter.exhausted_at(100, 10.0) == 10.0
    assert Meter(60.0).exhausted_at(0, 0.0) is None


def test_free_legs_cost_nothing_for_ever() -> None:
    meter = Meter(60.0)
    meter.start(0, 0, 0.0)
    assert meter.exhausted_at(0, 1e6) is None
    assert meter.charge_paise(1e6) == 0


@given(
    st.lists(st.tuples(st.integers(1, 200), st.floats(0, 300)), min_size=1, max_size=3),
    st.integers(0, 5000),
)
def test_nothing_costs_more_than_is_reserved_before_it_runs_out(
    legs: list[tuple[int, float]], reserved_paise: int
) -> None:
    meter = Meter(60.0)
    now = max(since for _, since in legs)
    for number, (rate_paise, since) in enumerate(legs):
        meter.start(number, rate_paise, since)
    at = meter.exhausted_at(reserved_paise, now)
    assert at is not None
    if at > now:
        assert meter.charge_paise(at - 1e-6) <= reserved_paise
    assert meter.charge_paise(at + 1e-3) > reserved_paise
