"""The timer queue: order, disarming, and nothing left behind."""

from hypothesis import given
from hypothesis import strategies as st

from sip.timers import Timer, TimerQueue


class Owner:
    def __init__(self, queue: TimerQueue) -> None:
        self.queue = queue
        self.fired: list[int] = []
        self.disarms: Timer | None = None

    def on_timer(self, event: int) -> None:
        self.fired.append(event)
        if self.disarms is not None:
            self.queue.disarm(self.disarms)


def test_fires_in_the_order_of_due_times() -> None:
    queue = TimerQueue()
    owner = Owner(queue)
    for event, delay_s in enumerate((4.0, 0.5, 32.0, 0.5)):
        queue.arm(10.0, delay_s, owner.on_timer, event)
    assert queue.next_due_s() == 10.5
    assert queue.run(10.4) == 10.5
    assert owner.fired == []
    assert queue.run(14.0) == 42.0
    assert owner.fired == [1, 3, 0]
    assert len(queue) == 1


def test_a_timer_disarmed_by_one_of_the_same_round_does_not_fire() -> None:
    queue = TimerQueue()
    owner = Owner(queue)
    queue.arm(0.0, 1.0, owner.on_timer, 1)
    owner.disarms = queue.arm(0.0, 2.0, owner.on_timer, 2)
    assert queue.run(5.0) is None
    assert owner.fired == [1]
    assert len(queue) == 0


def test_disarming_twice_or_after_firing_changes_nothing() -> None:
    queue = TimerQueue()
    owner = Owner(queue)
    timer = queue.arm(0.0, 1.0, owner.on_timer, 1)
    queue.disarm(timer)
    queue.disarm(timer)
    assert len(queue) == 0
    assert queue.next_due_s() is None
    other = queue.arm(0.0, 1.0, owner.on_timer, 2)
    queue.run(1.0)
    queue.disarm(other)
    assert len(queue) == 0


@given(st.lists(st.tuples(st.floats(0, 2), st.sampled_from([0.0, 0.2, 0.5, 5.0, 32.0]), st.booleans())))
def test_every_timer_fires_once_unless_disarmed(plan: list[tuple[float, float, bool]]) -> None:
    queue = TimerQueue()
    owner = Owner(queue)
    now = 0.0
    expected = []
    for event, (step_s, delay_s, disarmed) in enumerate(plan):
        now += step_s
        timer = queue.arm(now, delay_s, owner.on_timer, event)
        if disarmed:
            queue.disarm(timer)
        else:
            expected.append((now + delay_s, event))
    while (due_s := queue.next_due_s()) is not None:
        queue.run(due_s)
    assert sorted(owner.fired) == sorted(event for _, event in expected)
    assert len(queue) == 0
