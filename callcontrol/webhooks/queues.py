"""
Sans-I/O scheduler of webhook deliveries.

Every account's destination (scheme, host and port) has its own queue. Concurrent requests have four limits:
per destination, per host for all accounts, per account, and in total. So neither a host that hangs nor an
account with many of them takes the connections of others. Destinations with room are served round robin,
one delivery each.

A destination that has stopped answering is only probed: its waiting deliveries are returned as skipped.
Memory is shared dynamically: the fuller it is, the shorter each queue may be. A delivery without room gets a
time to return, staggered, so that a long backlog of a slow destination costs little.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from callcontrol.models import Delivery

_MAX_DESTINATIONS: Final = 20_000
_SHARE_OF_FREE: Final = 4
_LEAST_HELD: Final = 16
# Postponed deliveries return this many times sooner and faster than the destination is expected to take them:
# it may speed up, and after a standstill of this process every destination looks slow.
_SPEEDUP: Final = 8


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """
    Limits of concurrent requests and of deliveries in memory.

    Attributes:
        per_destination: Concurrent requests to one scheme, host and port for one account.
        per_host: The same for all accounts together.
        per_account: Concurrent requests for one account.
        active: Concurrent requests in total.
        held: Deliveries in memory.
        held_per_destination: The same for one destination.
        wait_s: Longest expected wait of a delivery in memory; below the lease of the outbox, so
            that it is sent before another process may lease it.
        max_delay_s: Longest delay of a delivery without room.
        unresponsive_after: Consecutive attempts without an answer after which a destination is only probed.
        probe_s: Probe interval.
    """

    per_destination: int = 8
    per_host: int = 64
    per_account: int = 256
    active: int = 1000
    held: int = 10_000
    held_per_destination: int = 1000
    wait_s: float = 60.0
    max_delay_s: float = 300.0
    unresponsive_after: int = 8
    probe_s: float = 5.0


@dataclass(slots=True, eq=False)
class Held:
    """Delivery in memory, with the end of this process's lease."""

    delivery: Delivery
    until: float


@dataclass(slots=True, eq=False)
class _ConcurrencyLimit:
    """Limit on concurrent requests, and the destinations that wait for it, in order."""

    most: int
    users: int = 0
    active: int = 0
    waiting: "dict[Destination, None]" = field(default_factory=dict)

    @property
    def full(self) -> bool:
        return self.active >= self.most


@dataclass(slots=True, eq=False)
class Destination:
    """
    Destination of one account's deliveries.

    ``unanswered`` counts consecutive attempts without an answer; ``attempt_s`` is the moving average of an
    attempt's duration; at ``readmit_at`` the next delivery without room may return.
    """

    account: str
    host: str
    bounds: tuple[_ConcurrencyLimit, _ConcurrencyLimit, _ConcurrencyLimit]
    queue: deque[Held] = field(default_factory=deque)
    active: int = 0
    unanswered: int = 0
    probe_at: float = 0.0
    attempt_s: float = 0.1
    readmit_at: float = 0.0
    ready: bool = False

    @property
    def idle(self) -> bool:
        """True if no delivery waits and no request is in progress."""
        return not self.queue and not self.active


class DeliveryQueues:
    """Delivery queues of one process; ``now`` is monotonic, in seconds."""

    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self._all = _ConcurrencyLimit(limits.active)
        self._hosts: dict[str, _ConcurrencyLimit] = {}
        self._accounts: dict[str, _ConcurrencyLimit] = {}
        self._destinations: dict[tuple[str, str], Destination] = {}
        self._ready: deque[Destination] = deque()
        self._skipped: list[Held] = []
        self._queued = 0

    @property
    def active(self) -> int:
        """Number of requests in progress."""
        return self._all.active

    @property
    def destinations(self) -> int:
        """Number of destinations in memory: busy and unresponsive ones."""
        return len(self._destinations)

    def waiting(self) -> Iterator[Held]:
        """Iterate over all waiting deliveries."""
        for destination in self._destinations.values():
            yield from destination.queue

    def put(self, host: str, held: Held, now: float) -> float | None:
        """
        Queue a delivery.

        Returns:
            None if it was queued; else the seconds until there may be room for it.
        """
        limits = self._limits
        destination = self._destination(held.delivery.event.account_sid, host)
        waiting = len(destination.queue)
        wait_s = waiting * destination.attempt_s / limits.per_destination
        free = limits.held - self._queued - self._all.active
        most = min(limits.held_per_destination, max(free // _SHARE_OF_FREE, _LEAST_HELD))
        if free <= 0 or waiting >= most or wait_s > limits.wait_s:
            return self._readmit_s(destination, now, wait_s)
        destination.queue.append(held)
        self._queued += 1
        self._make_ready(destination)
        return None

    def take(self, now: float) -> tuple[Held, Destination] | None:
        """
        Return the next delivery to send, or None.

        It counts as in progress until ``finish`` or ``release``.
        """
        while self._ready:
            destination = self._ready.popleft()
            destination.ready = False
            if not self._has_room(destination, now):
                if not destination.active:
                    self._skip(destination)
                self._wake(destination)
                continue
            full = next((bound for bound in destination.bounds if bound.full), None)
            if full is not None or not destination.queue:
                if full is not None:
                    full.waiting[destination] = None
                # Its turn at the limits that are not full goes to the next destination waiting there.
                self._wake(destination)
                continue
            destination.active += 1
            for bound in destination.bounds:
                bound.active += 1
            self._queued -= 1
            held = destination.queue.popleft()
            self._make_ready(destination)
            return held, destination
        return None

    def skipped(self) -> list[Held]:
        """
        Return the deliveries skipped since the last call, because their destinations are only probed.

        A real attempt would probably fail as well, and would occupy a connection for the whole timeout.
        """
        found, self._skipped = self._skipped, []
        return found

    def finish(self, destination: Destination, now: float, *, took_s: float, unanswered: bool) -> None:
        """Record the end of a request."""
        destination.attempt_s += (took_s - destination.attempt_s) / 8
        destination.unanswered = destination.unanswered + 1 if unanswered else 0
        if unanswered:
            destination.probe_at = now + self._limits.probe_s
        self.release(destination)

    def release(self, destination: Destination) -> None:
        """Return the slot of a delivery that was taken: sent, not sent after all, or interrupted."""
        destination.active -= 1
        for bound in destination.bounds:
            bound.active -= 1
        self._wake(destination)
        self._make_ready(destination)
        if destination.idle and not destination.unanswered:
            self._drop(destination)

    def drain(self) -> list[Held]:
        """Remove and return all waiting deliveries."""
        found = list(self.waiting())
        for destination in list(self._destinations.values()):
            destination.queue.clear()
            if destination.idle:
                self._drop(destination)
        self._queued = 0
        return found

    def _make_ready(self, destination: Destination) -> None:
        if destination.queue and not destination.ready:
            destination.ready = True
            self._ready.append(destination)

    def _wake(self, destination: Destination) -> None:
        """Pass free slots of a destination's limits to the destinations that have waited longest there."""
        for bound in destination.bounds:
            while bound.waiting and not bound.full:
                first = next(iter(bound.waiting))
                del bound.waiting[first]
                if first.queue and not first.ready:
                    self._make_ready(first)
                    break

    def _skip(self, destination: Destination) -> None:
        self._queued -= len(destination.queue)
        self._skipped.extend(destination.queue)
        destination.queue.clear()

    def _has_room(self, destination: Destination, now: float) -> bool:
        if destination.unanswered < self._limits.unresponsive_after:
            return destination.active < self._limits.per_destination
        return not destination.active and now >= destination.probe_at

    def _readmit_s(self, destination: Destination, now: float, wait_s: float) -> float:
        """Seconds until a postponed delivery returns; those postponed earlier return earlier."""
        soonest = now + min(wait_s / _SPEEDUP, self._limits.max_delay_s)
        at = max(destination.readmit_at, soonest)
        if at > now + self._limits.max_delay_s:
            # Start over within the same span, so that they do not all return at its end.
            at = soonest
        destination.readmit_at = at + destination.attempt_s / self._limits.per_destination / _SPEEDUP
        return at - now

    def _destination(self, account: str, host: str) -> Destination:
        found = self._destinations.get((account, host))
        if found is None:
            if len(self._destinations) >= _MAX_DESTINATIONS:
                # An idle destination in the table is unresponsive; dropping it costs a few real attempts.
                idle = next((some for some in self._destinations.values() if some.idle), None)
                if idle is not None:
                    self._drop(idle)
            hosts = self._hosts.setdefault(host, _ConcurrencyLimit(self._limits.per_host))
            accounts = self._accounts.setdefault(account, _ConcurrencyLimit(self._limits.per_account))
            found = Destination(account, host, (self._all, hosts, accounts))
            for bound in found.bounds:
                bound.users += 1
            self._destinations[(account, host)] = found
        return found

    def _drop(self, destination: Destination) -> None:
        del self._destinations[(destination.account, destination.host)]
        _, host, account = destination.bounds
        for bound in destination.bounds:
            bound.users -= 1
            bound.waiting.pop(destination, None)
        if not host.users:
            del self._hosts[destination.host]
        if not account.users:
            del self._accounts[destination.account]
