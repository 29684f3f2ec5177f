"""Order of webhook deliveries, in virtual time: slow, dead and greedy destinations cost others nothing."""

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.models import Delivery, WebhookEvent
from callcontrol.webhooks.queues import DeliveryQueues, Destination, Held, QueueLimits

NOW = datetime(2026, 1, 1, tzinfo=UTC)

# How a host takes a request: after how many seconds, and whether with any answer at all.
Host = Callable[[float], tuple[float, bool]]


def held(account: str, name: str = "e") -> Held:
    event = WebhookEvent(name, account, "call.ringing", "https://hooks.example.com/", b"{}", NOW)
    return Held(Delivery(event, NOW), until=1e9)


def fast(_: float) -> tuple[float, bool]:
    return 0.01, False


def slow(_: float) -> tuple[float, bool]:
    return 5.0, False


def dead(_: float) -> tuple[float, bool]:
    return 10.0, True


@dataclass
class World:
    """Queues with receivers behind them, and a clock that jumps to whatever happens next."""

    hosts: dict[str, Host]
    limits: QueueLimits = field(default_factory=QueueLimits)
    now: float = 0.0
    delays: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    skipped: int = 0
    refused: int = 0
    most: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.queues = DeliveryQueues(self.limits)
        self._numbers = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._active: Counter[str] = Counter()

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._numbers), what))

    def publish(self, when: float, account: str, host: str) -> None:
        def put() -> None:
            item = held(account)
            item.until = self.now  # Where this world keeps when it was published.
            if self.queues.put(host, item, self.now) is not None:
                self.refused += 1

        self.at(when, put)

    def run(self) -> None:
        while self._agenda:
            self.now, _, what = heapq.heappop(self._agenda)
            what()
            self._pump()

    def _pump(self) -> None:
        while (taken := self.queues.take(self.now)) is not None:
            self._send(*taken)
        self.skipped += len(self.queues.skipped())

    def _send(self, item: Held, destination: Destination) -> None:
        host, account = destination.host, destination.account
        took_s, unanswered = self.hosts[host](self.now)
        names = (host, account, f"{account} to {host}", "all")
        self._active.update(names)
        self.most = self.most | self._active
        self.delays[host].append(self.now - item.until)

        def end() -> None:
            self._active.subtract(names)
            self.queues.finish(destination, self.now, took_s=took_s, unanswered=unanswered)

        self.at(self.now + took_s, end)


def test_one_dead_and_one_slow_destination_among_ten() -> None:
    hosts: dict[str, Host] = {"dead": dead, "slow": slow, **{f"fast-{n}": fast for n in range(8)}}
    world = World(hosts)
    for number in range(60 * 50):
        for host in hosts:
            world.publish(number * 0.02, "acc-1", host)
    world.run()
    for number in range(8):
        delays = world.delays[f"fast-{number}"]
        # 8 at once of 0.01 s each are 800 a second: none of 50 a second waits at all.
        assert len(delays) == 3000
        assert max(delays) == 0.0
    assert len(world.delays["dead"]) < 40
    assert world.skipped > 1000
    assert world.queues.active == 0


def test_many_accounts_share_a_slow_host_without_filling_the_server() -> None:
    world = World({"slow": slow, "fast": fast})
    for account in range(200):
        for _ in range(10):
            world.publish(0.0, f"acc-{account}", "slow")
        world.publish(0.5, f"acc-{account}", "fast")
    world.run()
    assert world.most["slow"] == 64
    assert world.most["all"] <= 64 + 200
    assert len(world.delays["fast"]) == 200
    # 64 at a time, so that the last of 200 accounts that published at one moment waits for three others.
    assert max(world.delays["fast"]) <= 4 * 0.01
    assert len(world.delays["slow"]) == 2000


def test_accounts_take_turns_at_a_host() -> None:
    world = World({"slow": slow}, QueueLimits(per_host=2))
    for _ in range(50):
        world.publish(0.0, "greedy", "slow")
    world.publish(0.1, "modest", "slow")
    order: list[str] = []
    send = world._send

    def noted(item: Held, destination: Destination) -> None:
        order.append(destination.account)
        send(item, destination)

    world._send = noted  # type: ignore[method-assign]  # what is sent is noted on its way
    world.run()
    assert order.index("modest") <= 3


def test_an_account_with_many_hosts_that_hang_leaves_connections_for_others() -> None:
    hosts: dict[str, Host] = {f"hanging-{number}": slow for number in range(500)}
    world = World({**hosts, "fast": fast})
    for host in hosts:
        for _ in range(8):
            world.publish(0.0, "hostile", host)
    for number in range(100):
        world.publish(number * 0.1, "other", "fast")
    world.run()
    assert world.most["hostile"] == 256
    assert max(world.delays["fast"]) == 0.0


def test_a_silent_destination_is_probed_until_it_answers() -> None:
    readmit_at = 100.0
    world = World({"host": lambda now: dead(now) if now < readmit_at else fast(now)})
    for second in range(200):
        world.publish(float(second), "acc-1", "host")
    world.run()
    # Eight in earnest, then one every 15 s: 10 s until it is given up, and 5 s until the next.
    assert len([delay for delay in world.delays["host"] if delay == 0.0]) >= 90
    assert world.skipped > 60
    assert world.most["host"] == 8


def test_silence_of_one_account_is_not_that_of_another() -> None:
    queues = DeliveryQueues(QueueLimits(unresponsive_after=1))
    for account in ("acc-1", "acc-2"):
        queues.put("host", held(account), 0.0)
    first = queues.take(0.0)
    assert first is not None
    queues.finish(first[1], 0.0, took_s=10.0, unanswered=True)
    queues.put("host", held("acc-1"), 0.0)
    second = queues.take(0.0)
    assert second is not None
    assert second[1].account == "acc-2"
    assert queues.take(0.0) is None
    assert [item.delivery.event.account_sid for item in queues.skipped()] == ["acc-1"]
    assert queues.skipped() == []


def test_no_queue_fills_the_memory() -> None:
    queues = DeliveryQueues(QueueLimits(held=1000, held_per_destination=1000, wait_s=1e9))
    lengths = []
    for number in range(14):
        lengths.append(0)
        while queues.put(f"host-{number}", held("acc-1"), 0.0) is None:
            lengths[-1] += 1
    # A quarter of what is free, and never less than a little.
    assert lengths[:3] == [200, 160, 128]
    assert min(lengths) == 16
    assert queues.put("another", held("acc-2"), 0.0) is None
    while any([queues.put(f"{number}", held("acc-1"), 0.0) is None for number in range(100)]):
        pass
    assert sum(1 for _ in queues.waiting()) == 1000


def test_what_would_wait_too_long_is_not_kept() -> None:
    queues = DeliveryQueues(QueueLimits(per_destination=1, wait_s=10.0))
    for _ in range(5):
        assert queues.put("host", held("acc-1"), 0.0) is None
    taken = queues.take(0.0)
    assert taken is not None
    # The first one took 20 s, so one is expected to take 2.6 s, and four of them more than ten. The next one
    # returns after an eighth of that: the 20 s may have been a standstill of this process.
    queues.finish(taken[1], 20.0, took_s=20.0, unanswered=False)
    assert queues.put("host", held("acc-1"), 0.0) == pytest.approx(4 * (0.1 + 19.9 / 8) / 8)
    assert queues.put("elsewhere", held("acc-1"), 0.0) is None


def test_a_backlog_comes_back_little_by_little() -> None:
    queues = DeliveryQueues(QueueLimits(wait_s=4.0, max_delay_s=300.0))
    for _ in range(3):
        queues.put("slow", held("acc-1"), 0.0)
    for _ in range(2):
        taken = queues.take(0.0)
        assert taken is not None
        queues.finish(taken[1], 0.0, took_s=8.0, unanswered=False)
    told = [queues.put("slow", held("acc-1"), 0.0) for _ in range(60_000)]
    away = sorted(max_delay_s for max_delay_s in told if max_delay_s is not None)
    assert len(away) > 59_000
    # Soon, in case the destination speeds up, and nowhere more at once than must return in the time there is.
    assert away[0] == pytest.approx(4.0 / 8, abs=0.1)
    assert away[-1] <= 300.0
    in_each_s = Counter(int(at) for at in away)
    assert max(in_each_s.values()) < 1.2 * 60_000 / 296


def test_what_is_over_is_forgotten() -> None:
    world = World({"host": fast, "gone": dead})
    for number in range(14):
        world.publish(0.0, f"acc-{number}", "host")
    world.publish(0.0, "acc-0", "gone")
    world.run()
    # The silence of one is remembered; nothing else is.
    assert world.queues.destinations == 1
    assert list(world.queues._hosts) == ["gone"]
    assert list(world.queues._accounts) == ["acc-0"]


def test_draining_gives_everything_back_once() -> None:
    queues = DeliveryQueues(QueueLimits(per_host=1))
    items = [held("acc-1", f"e{number}") for number in range(5)]
    for item in items:
        queues.put("host", item, 0.0)
    taken = queues.take(0.0)
    assert taken is not None
    assert queues.drain() == [item for item in items if item is not taken[0]]
    assert queues.drain() == []
    assert queues.take(0.0) is None
    queues.release(taken[1])
    assert queues.take(0.0) is None
    assert (queues.active, queues.destinations) == (0, 0)


@pytest.mark.parametrize("unanswered", [True, False])
def test_a_destination_that_is_let_go_of_may_be_used_again(unanswered: bool) -> None:
    queues = DeliveryQueues(QueueLimits(unresponsive_after=2))
    for _ in range(3):
        queues.put("host", held("acc-1"), 0.0)
        taken = queues.take(0.0)
        assert taken is not None
        if unanswered:
            queues.release(taken[1])
        else:
            queues.finish(taken[1], 0.0, took_s=0.1, unanswered=False)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 3),
            st.floats(0, 30, allow_nan=False),
            st.sampled_from([0.0, 0.5, 5.0]),
            st.booleans(),
        ),
        max_size=80,
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_nothing_is_ever_stuck_and_no_bound_is_exceeded(
    sent: list[tuple[int, int, float, float, bool]], destination: int, host: int, account: int, most: int
) -> None:
    limits = QueueLimits(
        per_destination=destination,
        per_host=host,
        per_account=account,
        active=most,
        unresponsive_after=2,
        wait_s=1e9,
    )
    outcomes = iter([(took_s, unanswered) for *_, took_s, unanswered in sent])
    world = World({f"host-{number}": lambda _: next(outcomes) for number in range(4)}, limits)
    for who, where, when, *_ in sent:
        world.publish(when, f"acc-{who}", f"host-{where}")
    world.run()
    done = sum(len(delays) for delays in world.delays.values())
    assert done + world.skipped == len(sent)
    assert world.queues.active == 0
    assert not list(world.queues.waiting())
    for name, count in world.most.items():
        bound = destination if " to " in name else host if name.startswith("host") else account
        assert count <= (most if name == "all" else bound)
