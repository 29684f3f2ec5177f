"""The pace of a channel, by a clock of the test's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from callcontrol.messaging.pace import CAMPAIGN_LEEWAY_MICROS, SINGLE_LEEWAY_MICROS, admit

SECOND = 1_000_000


def test_a_channel_at_rest_lets_its_leeway_through_at_once() -> None:
    assert admit(0, SECOND, 80, 1000, CAMPAIGN_LEEWAY_MICROS).count == 33
    assert admit(0, SECOND, 80, 3, CAMPAIGN_LEEWAY_MICROS).count == 3
    assert admit(0, SECOND, 1, 1000, CAMPAIGN_LEEWAY_MICROS).count == 1


def test_what_is_sent_by_itself_goes_before_what_waits() -> None:
    queue = admit(0, SECOND, 80, 1000, CAMPAIGN_LEEWAY_MICROS)
    assert admit(queue.reached_at, SECOND, 80, 1, CAMPAIGN_LEEWAY_MICROS).count == 0
    assert admit(queue.reached_at, SECOND, 80, 1, SINGLE_LEEWAY_MICROS).count == 1


def test_it_says_when_more_may_leave() -> None:
    first = admit(0, SECOND, 80, 1000, CAMPAIGN_LEEWAY_MICROS)
    assert admit(first.reached_at, first.more_at - 1, 80, 1000, CAMPAIGN_LEEWAY_MICROS).count == 0
    assert admit(first.reached_at, first.more_at, 80, 1000, CAMPAIGN_LEEWAY_MICROS).count == 1


STEPS = st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 200)), min_size=1, max_size=40)


@given(STEPS, st.integers(1, 1000), st.sampled_from([CAMPAIGN_LEEWAY_MICROS, SINGLE_LEEWAY_MICROS]))
def test_no_more_leaves_in_any_time_than_the_pace_and_the_leeway_allow(
    steps: list[tuple[int, int]], rate: int, leeway: int
) -> None:
    now, reached, sent = SECOND, 0, 0
    began = now
    for wait, wanted in steps:
        now += wait
        admission = admit(reached, now, rate, wanted, leeway)
        assert 0 <= admission.count <= wanted
        reached, sent = admission.reached_at, sent + admission.count
        interval = SECOND // rate
        assert sent <= (now - began + leeway) // interval + 1
        assert admission.count > 0 or reached > now


@given(st.integers(1, 1000), st.integers(1, 50), st.integers(0, 250_000))
def test_who_always_has_something_to_send_gets_the_whole_pace(rate: int, turns: int, pause: int) -> None:
    now, reached, sent = SECOND, 0, 0
    for _ in range(turns):
        admission = admit(reached, now, rate, 10_000, CAMPAIGN_LEEWAY_MICROS)
        reached, sent = admission.reached_at, sent + admission.count
        now = max(admission.more_at, now + pause)
    assert reached == SECOND + sent * (SECOND // rate) >= now
