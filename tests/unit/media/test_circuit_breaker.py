"""The circuit breaker: opening, trials, and how long it stays open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from media.audio.circuit_breaker import BreakerState, CircuitBreaker

CLOSED, OPEN, HALF_OPEN = BreakerState


def opened(now: float = 100.0) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=3, first_cooldown_s=5.0, max_cooldown_s=12.0)
    for _ in range(3):
        assert breaker.allows(now)
        breaker.failed(now)
    assert breaker.state is OPEN
    return breaker


def test_failures_in_a_row_open_it_and_an_answer_between_them_does_not() -> None:
    breaker = CircuitBreaker(failures=3)
    for result in (False, False, True, False, False):
        if result:
            breaker.answered()
        else:
            breaker.failed(0.0)
        assert breaker.allows(0.0)
    breaker.failed(0.0)
    assert not breaker.allows(0.0)


def test_one_request_tries_the_server_after_the_cooldown() -> None:
    breaker = opened()
    assert not breaker.allows(104.9)
    assert [breaker.allows(105.0) for _ in range(3)] == [True, False, False]
    breaker.answered()
    assert breaker.state is CLOSED and breaker.allows(105.0)
    # It takes three again.
    breaker.failed(105.0)
    assert breaker.allows(105.0)


def test_each_failed_trial_doubles_the_cooldown_up_to_its_limit() -> None:
    breaker, now, cooldowns = opened(), 100.0, []
    for _ in range(4):
        cooldowns.append(breaker.cooldown_s)
        now += breaker.cooldown_s
        assert breaker.allows(now)
        breaker.failed(now)
    assert cooldowns == [5.0, 10.0, 12.0, 12.0]
    assert breaker.allows(now + 12.0)
    breaker.answered()
    for _ in range(3):
        breaker.failed(now)
    assert breaker.cooldown_s == 5.0


def test_what_fails_together_with_the_others_does_not_lengthen_the_cooldown() -> None:
    breaker = opened()
    breaker.failed(104.0)
    assert breaker.cooldown_s == 5.0 and breaker.allows(105.0)


def test_an_abandoned_trial_leaves_the_trial_to_the_next() -> None:
    breaker = opened()
    assert breaker.allows(105.0)
    breaker.abandoned()
    assert breaker.state is OPEN and breaker.allows(105.0)


def test_an_answer_to_an_earlier_request_closes_it() -> None:
    breaker = opened()
    breaker.answered()
    assert breaker.state is CLOSED and breaker.allows(100.0)


@given(st.lists(st.tuples(st.sampled_from(["allows", "answered", "failed", "abandoned"]), st.floats(0, 30))))
def test_whatever_happens_it_asks_again_and_its_cooldown_is_bounded(steps: list[tuple[str, float]]) -> None:
    breaker, now = CircuitBreaker(), 0.0
    for name, passed in steps:
        now += passed
        if name == "allows":
            breaker.allows(now)
        elif name == "failed":
            breaker.failed(now)
        else:
            getattr(breaker, name)()
        assert breaker.cooldown_s in (0.0, 5.0, 10.0, 20.0, 40.0, 60.0)
    breaker.abandoned()
    assert breaker.allows(now + 60.0)
