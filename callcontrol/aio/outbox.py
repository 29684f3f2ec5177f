"""
The webhook outbox: events that are durable before they are sent, and sent until somebody took them.

An event is written in the transaction of the change that it tells of. From then on it is delivered at least
once; ``delivery_id`` tells a receiver that it had it already. Events of one call to one URL keep their
order: one that waits for its next attempt holds back those behind it.

The database is the only queue. Memory holds what is about to be sent and nothing that waits for a later
attempt, so a receiver that is down for a day costs rows, not memory. Every account's destination has a queue
and a few connections of its own; one that is too slow for what it is sent hands the surplus back to the
database, and one that is silent is only probed, so neither delays anybody else.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.database import Operation
from callcontrol.aio.tokens import utc_now
from callcontrol.aio.webhook_client import Answer, WebhookClient
from callcontrol.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.interfaces import Destinations
from callcontrol.models import Delivery, PublishedEvent, Recipient, WebhookEvent
from callcontrol.store.repositories import deliveries, fan_out
from callcontrol.webhooks import OFFSETS_S, TIMEOUT_S, is_gone, origin, retry_delay_s

__all__ = ["Outbox", "OutboxSettings", "OutboxStats"]

log = logging.getLogger(__name__)

_CLOSE_S: Final = 2.0
_BATCH: Final = 500
_MAX_POSTPONED_S: Final = 60.0
_MAX_DESTINATIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """
    How deliveries are paced.

    Attributes:
        node: The name under which this process leases rows; no two processes on one database share it.
        per_destination: Requests under way to one scheme, host and port for one account.
        max_active: Requests under way in all.
        max_held: Deliveries in memory; beyond it they wait in the database.
        max_held_per_destination: The same for one destination.
        lease_s: How long the rows of a process that died wait for another one.
        poll_s: How often the database is asked for what is due.
        gather_s: How long new events wait for company before they are taken.
        timeout_s: How long a receiver has to answer.
        offsets_s: When a delivery is tried, from its first attempt on.
        silent_after: Attempts in a row without an answer after which a destination is only probed.
        probe_s: How often.
    """

    node: str = "local"
    per_destination: int = 8
    max_active: int = 1000
    max_held: int = 10_000
    max_held_per_destination: int = 1000
    lease_s: float = 120.0
    poll_s: float = 1.0
    gather_s: float = 0.02
    timeout_s: float = TIMEOUT_S
    offsets_s: Sequence[float] = OFFSETS_S
    silent_after: int = 8
    probe_s: float = 5.0


@dataclass(slots=True)
class OutboxStats:
    """What the outbox has done so far; an attempt that a silent destination was spared is ``skipped``."""

    delivered: int = 0
    failed: int = 0
    attempts: int = 0
    skipped: int = 0
    postponed: int = 0


@dataclass(slots=True, eq=False)
class _Held:
    """A delivery in memory, and until when (on the loop's clock) it is this process's to send."""

    delivery: Delivery
    until: float


@dataclass(frozen=True, slots=True)
class _Taken:
    """What is this process's to send now, and the subscriptions it goes to as they are."""

    deliveries: Sequence[Delivery]
    recipients: dict[str, Recipient]


@dataclass(slots=True, eq=False)
class _Destination:
    """
    Where one account sends: scheme, host and port.

    ``silent`` counts attempts without an answer since the last one that had one; ``attempt_s`` follows how
    long an attempt takes.
    """

    key: tuple[str, str]
    queue: deque[_Held] = field(default_factory=deque)
    active: int = 0
    silent: int = 0
    probe_at: float = 0.0
    attempt_s: float = 0.1

    @property
    def idle(self) -> bool:
        return not self.queue and not self.active


class Outbox:
    """
    Delivers the events of this process; an ``EventSink`` for the stores and a source for the writer.

    Args:
        writer: Writes outcomes, and leases what is due. It is closed after the outbox.
        destinations: Judges where requests may go.
        secrets_of: The signing secrets of an account, the newest first; called at every attempt. An event
            of an account without any is not sent, and tried again later. What goes to a subscription is
            signed with the secret of that, as it is when the event is taken from the database.
        settings: The pace.
    """

    def __init__(
        self,
        writer: Writer,
        destinations: Destinations,
        secrets_of: Callable[[str], Sequence[str]],
        settings: OutboxSettings | None = None,
    ) -> None:
        self._writer = writer
        self._checks = destinations
        self._secrets_of = secrets_of
        self._settings = settings or OutboxSettings()
        self._destinations: dict[tuple[str, str], _Destination] = {}
        self._stalled: dict[_Destination, None] = {}
        self._ids: set[str] = set()
        self._recipients: dict[str, Recipient] = {}
        self._looked_at: float | None = None
        self._active = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._client: WebhookClient | None = None
        self._wake = asyncio.Event()
        self._closing = False
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._writing: dict[str, dict[str, Any]] = {}
        self.stats = OutboxStats()

    @property
    def held(self) -> int:
        """Deliveries in memory: waiting for a connection, or under way."""
        return len(self._ids)

    async def start(self) -> None:
        """Take up what a former run of this node left, and deliver from now on."""
        await self._writer.commit(partial(_release, self._settings.node))
        self._writer.attach(self)
        self._client = WebhookClient(self._checks, self._settings.timeout_s)
        self._poller = asyncio.create_task(self._poll(), name="webhook-poller")

    async def close(self) -> None:
        """Stop delivering; what is under way gets two seconds, and the rest stays in the database."""
        self._closing = True
        self._wake.set()
        if self._poller is not None:
            # What it is leasing has to be let go of again, so it is stopped only if it does not stop.
            await asyncio.wait([self._poller], timeout=_CLOSE_S)
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
            self._poller = None
        for destination in self._destinations.values():
            while destination.queue:
                self._put_back(destination.queue.popleft().delivery)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
            self._client = None

    # What the stores ask (callcontrol.aio.call_store.EventSink).

    def committed(self, events: Sequence[PublishedEvent]) -> None:
        """The events are durable: deliver them."""
        if events:
            self._wake.set()

    # What the services that keep subscriptions ask.

    def changed(self) -> None:
        """A subscription or a delivery to one has been changed: look at once."""
        self._looked_at = None
        self._wake.set()

    async def attempt(self, event: WebhookEvent, secrets: Sequence[str]) -> Answer:
        """Send an event that is kept nowhere, at once and once; never fails."""
        if self._client is None:
            return Answer(problem="this process delivers no webhooks")
        return await self._client.send(event, secrets)

    # What the writer asks (callcontrol.aio.writer.Source).

    def take(self) -> Operation[None] | None:
        """What writes the outcomes so far."""
        if not self._outcomes:
            return None
        self._writing, self._outcomes = self._outcomes, {}
        return partial(_record, list(self._writing.values()), utc_now())

    def written(self, result: None) -> None:
        """The outcomes are durable, and what waited behind them may follow."""
        self._writing = {}
        self._wake.set()

    def give_back(self) -> None:
        """Hold again what was taken, unless there is newer."""
        self._outcomes = {**self._writing, **self._outcomes}
        self._writing = {}

    def refused(self, error: Exception) -> None:
        """The outcomes cannot be stored; their leases run out and they are delivered again."""
        log.error("outcomes of webhooks could not be stored", exc_info=error)
        self._writing = {}

    # What is due.

    async def _poll(self) -> None:
        while not self._closing:
            room = self._settings.max_held - len(self._ids) - len(self._outcomes) - len(self._writing)
            limit = min(room, _BATCH)
            if limit > 0 and await self._take_over(limit) == limit:
                continue
            try:
                async with asyncio.timeout(self._settings.poll_s):
                    await self._wake.wait()
                await asyncio.sleep(self._settings.gather_s)
            except TimeoutError:
                pass
            self._wake.clear()

    async def _take_over(self, limit: int) -> int:
        """Lease deliveries that are due and queue them; how many."""
        settings = self._settings
        # The lease is counted from before it was asked for, so it ends here before it ends elsewhere.
        until = asyncio.get_running_loop().time() + settings.lease_s - settings.timeout_s
        now = utc_now()
        watched = self._watched()
        take = partial(
            _take_due, settings.node, now, now + timedelta(seconds=settings.lease_s), limit, watched or ()
        )
        try:
            found = await self._writer.commit(take)
        except DomainError as error:
            log.info("the outbox could not be read: %s", error.message)
            self._looked_at = None
            return 0
        if watched is None:
            self._recipients.update(found.recipients)
        else:
            self._recipients = found.recipients
        for delivery in found.deliveries:
            if not self._is_known(delivery.event.delivery_id):
                self._admit(_Held(delivery, until))
        return len(found.deliveries)

    def _watched(self) -> set[str] | None:
        """The subscriptions of what is held, when it is time to look at them again; else None."""
        now = asyncio.get_running_loop().time()
        if self._looked_at is not None and now < self._looked_at + self._settings.poll_s:
            return None
        self._looked_at = now
        return {
            held.delivery.event.subscription_id
            for destination in self._destinations.values()
            for held in destination.queue
            if held.delivery.event.subscription_id is not None
        }

    def _is_known(self, delivery_id: str) -> bool:
        """Whether a row came back, its lease over by a clock that jumped, that was never let go of."""
        return delivery_id in self._ids or delivery_id in self._outcomes or delivery_id in self._writing

    def _admit(self, held: _Held) -> None:
        self._ids.add(held.delivery.event.delivery_id)
        destination = self._destination(held.delivery.event)
        wait_s = len(destination.queue) * destination.attempt_s / self._settings.per_destination
        full = len(destination.queue) >= self._settings.max_held_per_destination
        if full or wait_s > self._settings.lease_s / 2:
            self._postpone(held.delivery, wait_s)
            return
        destination.queue.append(held)
        self._pump(destination)
        self._forget(destination)

    def _destination(self, event: WebhookEvent) -> _Destination:
        key = (event.account_sid, origin(event.url))
        found = self._destinations.get(key)
        if found is None:
            if len(self._destinations) >= _MAX_DESTINATIONS:
                # What is idle and still here is silent; forgetting it costs a few attempts in earnest.
                idle = next((some for some in self._destinations.values() if some.idle), None)
                if idle is not None:
                    del self._destinations[idle.key]
            found = self._destinations[key] = _Destination(key)
        return found

    def _forget(self, destination: _Destination) -> None:
        """Forget a destination that has nothing to do, unless it is known to be silent."""
        if destination.idle and not destination.silent:
            self._destinations.pop(destination.key, None)

    # Queues.

    def _pump(self, destination: _Destination) -> None:
        """Have as many of a destination's deliveries sent as may be under way."""
        loop = asyncio.get_running_loop()
        while destination.queue and not self._closing:
            room = self._room(destination, loop.time())
            if room == 0:
                if destination.silent >= self._settings.silent_after and not destination.active:
                    self._skip(destination)
                return
            if self._active >= self._settings.max_active:
                self._stalled[destination] = None
                return
            held = destination.queue.popleft()
            if loop.time() > held.until:
                # Somebody else may have it by now.
                self._ids.discard(held.delivery.event.delivery_id)
                continue
            if not self._may_be_sent(held.delivery):
                continue
            destination.active += 1
            self._active += 1
            task = asyncio.create_task(self._serve(held.delivery, destination), name="webhook")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _may_be_sent(self, delivery: Delivery) -> bool:
        """Whether a delivery's subscription still wants it, and where it goes; if not, it is let go of."""
        event = delivery.event
        if event.subscription_id is None:
            return True
        recipient = self._recipients.get(event.subscription_id)
        if recipient is None or not recipient.is_active:
            delivery.status = "failed"
            delivery.last_error = "the subscription is " + ("deleted" if recipient is None else "paused")
        elif recipient.url == event.url:
            return True
        # To a new URL it goes when it is taken anew.
        self._put_back(delivery)
        return False

    def _room(self, destination: _Destination, now: float) -> int:
        """How many more requests may be under way to a destination."""
        if destination.silent < self._settings.silent_after:
            return self._settings.per_destination - destination.active
        return 1 if not destination.active and now >= destination.probe_at else 0

    def _skip(self, destination: _Destination) -> None:
        """
        Count an attempt for all that waits for a silent destination.

        It would fail as those before it did; made in earnest it would keep connections busy for the whole
        timeout, and with many such destinations everybody else waiting.
        """
        while destination.queue:
            delivery = destination.queue.popleft().delivery
            self.stats.skipped += 1
            self._judge(delivery, Answer(problem="the destination has stopped answering"))

    async def _serve(self, delivery: Delivery, destination: _Destination) -> None:
        """Make one attempt at a delivery."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer: Answer | None = None
        self.stats.attempts += 1
        try:
            answer = await self._send(delivery.event)
        finally:
            destination.active -= 1
            self._active -= 1
            if answer is None:
                self._put_back(delivery)
        destination.attempt_s += (loop.time() - began - destination.attempt_s) / 8
        destination.silent = destination.silent + 1 if answer.silent else 0
        if answer.silent:
            destination.probe_at = loop.time() + self._settings.probe_s
        self._judge(delivery, answer)
        self._pump(destination)
        self._forget(destination)
        while self._stalled and self._active < self._settings.max_active:
            stalled = next(iter(self._stalled))
            del self._stalled[stalled]
            self._pump(stalled)

    async def _send(self, event: WebhookEvent) -> Answer:
        if event.subscription_id is None:
            return await self.attempt(event, self._secrets_of(event.account_sid))
        recipient = self._recipients.get(event.subscription_id)
        if recipient is None or recipient.problem is not None:
            return Answer(problem="the subscription is deleted" if recipient is None else recipient.problem)
        if recipient.secret is not None:
            return await self.attempt(event, (recipient.secret,))
        # The events of masked calls are signed in any case.
        secrets = self._secrets_of(event.account_sid) if recipient.service == "masking" else ()
        return await self.attempt(event, secrets)

    # Outcomes.

    def _judge(self, delivery: Delivery, answer: Answer) -> None:
        """Note how an attempt went and decide on the next one."""
        now = utc_now()
        delivery.attempts += 1
        delivery.response_code = answer.status
        delivery.last_error = answer.problem
        if answer.problem is None:
            delivery.status, delivery.delivered_at = "delivered", now
            self.stats.delivered += 1
        else:
            delay_s = self._delay_s(delivery, answer)
            if delay_s is None:
                delivery.status = "failed"
                self.stats.failed += 1
                log.warning(
                    "webhook %s given up after %d attempts: %s",
                    delivery.event.delivery_id,
                    delivery.attempts,
                    answer.problem,
                )
            else:
                delivery.next_attempt_at = now + timedelta(seconds=delay_s)
        self._put_back(delivery)

    def _delay_s(self, delivery: Delivery, answer: Answer) -> float | None:
        if is_gone(answer.status):
            self._stop(delivery.event)
            return None
        return retry_delay_s(
            delivery.attempts,
            jitter=random.random(),
            retry_after_s=answer.retry_after_s,
            offsets_s=self._settings.offsets_s,
        )

    def _stop(self, event: WebhookEvent) -> None:
        """Send nothing more to a subscription whose receiver said so; the outcome's transaction pauses it."""
        recipient = self._recipients.get(event.subscription_id or "")
        if recipient is not None and recipient.url == event.url:
            self._recipients[recipient.subscription_id] = replace(recipient, is_active=False)

    def _postpone(self, delivery: Delivery, wait_s: float) -> None:
        """Have a delivery come back when its destination may have worked off what is held for it."""
        wait_s = min(max(wait_s, self._settings.poll_s), _MAX_POSTPONED_S)
        delivery.next_attempt_at = utc_now() + timedelta(seconds=wait_s)
        self.stats.postponed += 1
        self._put_back(delivery)

    def _put_back(self, delivery: Delivery) -> None:
        """Let go of a delivery: write its state, and end its lease."""
        self._ids.discard(delivery.event.delivery_id)
        self._outcomes[delivery.event.delivery_id] = deliveries.outcome_row(delivery)
        self._writer.touch()


def _release(node: str, connection: Connection) -> None:
    deliveries.release(connection, node)


def _record(rows: Sequence[dict[str, Any]], now: datetime, connection: Connection) -> None:
    deliveries.record_outcomes(connection, rows)
    for subscription_id, url in {row["_gone"] for row in rows if row["_gone"] is not None}:
        fan_out.disable(
            connection, subscription_id, url, "the subscription is paused: its URL answered 410", now
        )


def _take_due(
    node: str, now: datetime, until: datetime, limit: int, watched: Iterable[str], connection: Connection
) -> _Taken:
    found = deliveries.take_due(connection, node, now, until, limit)
    wanted = {row.event.subscription_id for row in found if row.event.subscription_id is not None}
    recipients = fan_out.recipients(connection, wanted.union(watched)) if wanted or watched else {}
    return _Taken([fan_out.readdressed(connection, row, recipients) for row in found], recipients)
