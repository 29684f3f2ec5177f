"""The timer queue: order, disarming, and nothing left behind; and the wake-ups of a layer."""

import gc
import weakref
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip._wire import TimerQueue
from tests.support.sip_stage import Stage


class Owner:
    def __init__(self) -> None:
        self.queue = TimerQueue()
        self.fired: list[int] = []
        self.disarms = 0

    def arm(self, now_s: float, delay_s: float, event: int) -> int:
        return self.queue.arm(now_s, delay_s, self.on_timer, event)

    def on_timer(self, event: int) -> None:
        self.fired.append(event)
        self.queue.disarm(self.disarms)

    def run(self, now_s: float) -> float:
        """Fire what is due, and return when the next one is."""
        while (due := self.queue.take_due(now_s)) is not None:
            callback, event = due
            callback(event)
        return self.queue.due_s


def test_fires_in_the_order_of_due_times() -> None:
    owner = Owner()
    for event, delay_s in enumerate((4.0, 0.5, 32.0, 0.5)):
        owner.arm(10.0, delay_s, event)
    assert owner.queue.due_s == 10.5
    assert owner.run(10.4) == 10.5
    assert owner.fired == []
    assert owner.run(14.0) == 42.0
    assert owner.fired == [1, 3, 0]
    assert len(owner.queue) == 1


def test_a_timer_disarmed_by_one_of_the_same_round_does_not_fire() -> None:
    owner = Owner()
    owner.arm(0.0, 1.0, 1)
    owner.disarms = owner.arm(0.0, 2.0, 2)
    assert owner.run(5.0) == inf
    assert owner.fired == [1]
    assert len(owner.queue) == 0


def test_disarming_twice_or_after_firing_changes_nothing() -> None:
    owner = Owner()
    timer = owner.arm(0.0, 1.0, 1)
    owner.queue.disarm(timer)
    owner.queue.disarm(timer)
    owner.queue.disarm(0)
    owner.queue.disarm(2**63)
    assert len(owner.queue) == 0
    assert owner.queue.due_s == inf
    other = owner.arm(0.0, 1.0, 2)
    owner.queue.disarm(timer)  # Its place is another's now.
    assert owner.run(1.0) == inf
    owner.queue.disarm(other)
    assert owner.fired == [2]
    assert len(owner.queue) == 0


def test_a_delay_beyond_all_calls_is_held_and_one_without_length_fires_at_once() -> None:
    owner = Owner()
    owner.arm(1.0, inf, 1)
    owner.arm(1.0, -1.0, 2)
    assert owner.run(1.0) > 1e8
    assert owner.fired == [2]
    with pytest.raises(TypeError):
        owner.arm(1.0, 1.0, 256)


def test_an_owner_that_nobody_keeps_is_collected_with_its_timers() -> None:
    owner = Owner()
    owner.arm(0.0, 1.0, 1)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


@given(st.lists(st.tuples(st.floats(0, 2), st.sampled_from([0.0, 0.2, 0.5, 5.0, 32.0]), st.booleans())))
def test_every_timer_fires_once_unless_disarmed(plan: list[tuple[float, float, bool]]) -> None:
    owner = Owner()
    now = 0.0
    expected = []
    for event, (step_s, delay_s, disarmed) in enumerate(plan):
        now += step_s
        timer = owner.arm(now, delay_s, event % 256)
        if disarmed:
            owner.queue.disarm(timer)
        else:
            expected.append(event % 256)
    while owner.queue.due_s < inf:
        owner.run(owner.queue.due_s)
    assert sorted(owner.fired) == sorted(expected)
    assert len(owner.queue) == 0


def test_a_timer_whose_callback_fails_delays_no_other_beyond_the_next_wake_up(stage: Stage) -> None:
    layer, fired = stage.alice.ua.layer, list[int]()
    layer.arm(1.0, lambda _: [][0])
    layer.arm(1.0, fired.append, 1)
    layer.arm(2.0, fired.append, 2)
    with pytest.raises(IndexError):
        stage.advance(1.5)
    stage.advance(1.0)
    assert fired == [1, 2]


def test_timers_due_close_to_each_other_share_a_wake_up_whatever_is_armed_between(stage: Stage) -> None:
    layer, fired = stage.alice.ua.layer, list[int]()
    layer.arm(1.0, fired.append, 1)
    layer.arm(1.005, fired.append, 2)
    stage.advance(1.001)
    layer.arm(32.0, fired.append, 3)
    stage.advance(0.018)
    assert fired == [1]
    stage.advance(0.002)
    assert fired == [1, 2]
