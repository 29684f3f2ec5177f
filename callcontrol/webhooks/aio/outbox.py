"""
The webhook outbox: events that are durable before they are sent, and sent until somebody took them.

An event is written in the transaction of the change that it tells of. From then on it is delivered at least
once; ``delivery_id`` tells a receiver that it had it already. Events of one call to one URL keep their
order: one that waits for its next attempt holds back those behind it.

The database is the only queue. Memory holds what is about to be sent and nothing that waits for a later
attempt, so a receiver that is down for a day costs rows, not memory. In which order it is sent, and how much
of it at once, is decided in ``callcontrol.webhooks.queues``: what a destination is too slow for goes back to
the database, and one that is silent is only probed, so neither delays anybody else.

Outcomes are written in the transaction that takes what is due next, so what had to wait for them is not
waited for twice.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Operation
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError
from callcontrol.models import Delivery, PublishedEvent, Recipient, WebhookEvent
from callcontrol.webhooks.aio.client import Answer, WebhookClient
from callcontrol.webhooks.queues import DeliveryQueues, Destination, Held, QueueLimits
from callcontrol.webhooks.signing import OFFSETS_S, TIMEOUT_S, is_gone, origin, retry_delay_s
from callcontrol.webhooks.store import deliveries
from callcontrol.webhooks.store import publish as fan_out

__all__ = ["Outbox", "OutboxSettings", "OutboxStats"]

log = logging.getLogger(__name__)

_CLOSE_S: Final = 2.0
_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """
    How deliveries are paced.

    Attributes:
        node: The name under which this process leases rows; no two processes on one database share it.
        per_destination: Requests under way to one scheme, host and port for one account.
        per_host: The same for all accounts together.
        per_account: Requests under way for one account.
        max_active: Requests under way in all.
        max_held: Deliveries in memory; beyond it they wait in the database.
        max_held_per_destination: The same for one destination.
        lease_s: How long the rows of a process that died wait for another one.
        poll_s: How often the database is asked for what is due.
        gather_s: How long after it was asked the database is not asked again, so that events gather.
        timeout_s: How long a receiver has to answer.
        offsets_s: When a delivery is tried, from its first attempt on.
        silent_after: Attempts in a row without an answer after which a destination is only probed.
        probe_s: How often.
    """

    node: str = "local"
    per_destination: int = 8
    per_host: int = 64
    per_account: int = 256
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

    def limits(self) -> QueueLimits:
        """The bounds of what is under way and in memory."""
        return QueueLimits(
            per_destination=self.per_destination,
            per_host=self.per_host,
            per_account=self.per_account,
            active=self.max_active,
            held=self.max_held,
            held_per_destination=self.max_held_per_destination,
            wait_s=self.lease_s / 2,
            silent_after=self.silent_after,
            probe_s=self.probe_s,
        )


@dataclass(slots=True)
class OutboxStats:
    """What the outbox has done so far; an attempt that a silent destination was spared is ``skipped``."""

    delivered: int = 0
    failed: int = 0
    attempts: int = 0
    skipped: int = 0
    postponed: int = 0


@dataclass(frozen=True, slots=True)
class _Taken:
    """What is this process's to send now, and the subscriptions it goes to as they are."""

    deliveries: Sequence[Delivery]
    recipients: dict[str, Recipient]


class _SteadyClock:
    """
    The time of day for schedules and leases; it never goes back.

    When the system's clock is set back, what was due stays due, and what was leased stays leased.
    """

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """The later of the system's time and what has passed since this was asked for last."""
        told, ticks = utc_now(), asyncio.get_running_loop().time()
        if self._last is not None:
            told = max(told, self._last[0] + timedelta(seconds=ticks - self._last[1]))
        self._last = (told, ticks)
        return told


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
        self._queues = DeliveryQueues(self._settings.limits())
        self._clock = _SteadyClock()
        self._newest_first = False
        self._ids: set[str] = set()
        self._recipients: dict[str, Recipient] = {}
        self._looked_at: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._client: WebhookClient | None = None
        self._wake = asyncio.Event()
        self._closing = False
        self._away = False
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._writing: dict[str, dict[str, Any]] = {}
        self._noting: dict[str, dict[str, Any]] = {}
        self.stats = OutboxStats()

    @property
    def held(self) -> int:
        """Deliveries in memory: waiting for a connection, or under way."""
        return len(self._ids)

    async def start(self) -> None:
        """Take up what a former run of this node left, and deliver from now on."""
        await self._writer.commit(partial(_release, self._settings.node, None))
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
        for held in self._queues.drain():
            self._put_back(held.delivery)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
            self._client = None

    # What the stores ask (callcontrol.calls.records.aio.EventSink).

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

    # What the writer asks (callcontrol.database.aio.writer.Source).

    def take(self) -> Operation[None] | None:
        """What writes the outcomes so far."""
        if not self._outcomes:
            return None
        self._writing, self._outcomes = self._outcomes, {}
        return partial(_record, list(self._writing.values()), self._clock.now())

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
        loop = asyncio.get_running_loop()
        while not self._closing:
            asked_at = loop.time()
            room = self._settings.max_held - len(self._ids) - len(self._outcomes) - len(self._writing)
            limit = min(room, _BATCH)
            if limit > 0 and await self._take_over(limit) == limit:
                # Much is due: what was published last must not wait until all of it has been looked at.
                self._newest_first = not self._newest_first
                continue
            self._newest_first = False
            try:
                async with asyncio.timeout(self._settings.poll_s):
                    await self._wake.wait()
                await asyncio.sleep(max(asked_at + self._settings.gather_s - loop.time(), 0.0))
            except TimeoutError:
                pass
            self._wake.clear()

    async def _take_over(self, limit: int) -> int:
        """Write outcomes, lease deliveries that are due and queue them; how many."""
        settings = self._settings
        # The lease is counted from before it was asked for, so it ends here before it ends elsewhere.
        until = asyncio.get_running_loop().time() + settings.lease_s - settings.timeout_s
        now = self._clock.now()
        watched = self._watched()
        self._noting, self._outcomes = self._outcomes, {}
        lease = deliveries.Lease(settings.node, now, now + timedelta(seconds=settings.lease_s), limit)
        take = partial(
            _take_due,
            lease,
            self._newest_first,
            watched or (),
            list(self._noting.values()),
        )
        try:
            found = await self._writer.commit(take, undo=partial(_release, settings.node, lease))
        except DomainError as error:
            log.log(
                logging.DEBUG if self._away else logging.INFO,
                "the outbox could not be read: %s",
                error.message,
            )
            self._away = True
            self._looked_at = None
            self._outcomes = {**self._noting, **self._outcomes}
            if self._outcomes:
                self._writer.touch()
            return 0
        finally:
            self._noting = {}
        self._away = False
        if watched is None:
            self._recipients.update(found.recipients)
        else:
            self._recipients = found.recipients
        for delivery in found.deliveries:
            if not self._is_known(delivery.event.delivery_id):
                self._admit(Held(delivery, until))
        self._pump()
        return len(found.deliveries)

    def _watched(self) -> set[str] | None:
        """The subscriptions of what is held, when it is time to look at them again; else None."""
        now = asyncio.get_running_loop().time()
        if self._looked_at is not None and now < self._looked_at + self._settings.poll_s:
            return None
        self._looked_at = now
        return {
            held.delivery.event.subscription_id
            for held in self._queues.waiting()
            if held.delivery.event.subscription_id is not None
        }

    def _is_known(self, delivery_id: str) -> bool:
        """Whether a row came back, its lease over by a clock that jumped, that was never let go of."""
        return delivery_id in self._ids or delivery_id in self._outcomes or delivery_id in self._writing

    def _admit(self, held: Held) -> None:
        self._ids.add(held.delivery.event.delivery_id)
        now = asyncio.get_running_loop().time()
        wait_s = self._queues.put(origin(held.delivery.event.url), held, now)
        if wait_s is not None:
            self._postpone(held.delivery, wait_s)

    # Sending.

    def _pump(self) -> None:
        """Have as much sent as may be under way."""
        loop = asyncio.get_running_loop()
        while not self._closing:
            taken = self._queues.take(loop.time())
            if taken is None:
                break
            held, destination = taken
            if loop.time() > held.until:
                # Somebody else may have it by now.
                self._ids.discard(held.delivery.event.delivery_id)
                self._queues.let_go(destination)
            elif not self._may_be_sent(held.delivery):
                self._queues.let_go(destination)
            else:
                task = asyncio.create_task(self._serve(held.delivery, destination), name="webhook")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        for held in self._queues.skipped():
            self.stats.skipped += 1
            self._judge(held.delivery, Answer(problem="the destination has stopped answering"))

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

    async def _serve(self, delivery: Delivery, destination: Destination) -> None:
        """Make one attempt at a delivery."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.stats.attempts += 1
        try:
            answer = await self._send(delivery.event)
        except BaseException:
            self._queues.let_go(destination)
            self._put_back(delivery)
            raise
        ended = loop.time()
        self._queues.finish(destination, ended, took_s=ended - began, silent=answer.silent)
        self._judge(delivery, answer)
        self._pump()

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
        now = self._clock.now()
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
                    extra={"call_sid": delivery.event.call_sid},
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
        wait_s = max(wait_s, self._settings.poll_s)
        delivery.next_attempt_at = self._clock.now() + timedelta(seconds=wait_s)
        self.stats.postponed += 1
        self._put_back(delivery)

    def _put_back(self, delivery: Delivery) -> None:
        """Let go of a delivery: write its state, and end its lease."""
        self._ids.discard(delivery.event.delivery_id)
        self._outcomes[delivery.event.delivery_id] = deliveries.outcome_row(delivery)
        self._writer.touch()
        self._wake.set()


def _release(node: str, lease: deliveries.Lease | None, connection: Connection) -> None:
    deliveries.release(connection, node, lease)


def _record(rows: Sequence[dict[str, Any]], now: datetime, connection: Connection) -> None:
    deliveries.record_outcomes(connection, rows)
    for subscription_id, url in {row["_gone"] for row in rows if row["_gone"] is not None}:
        fan_out.disable(
            connection, subscription_id, url, "the subscription is paused: its URL answered 410", now
        )


def _take_due(
    lease: deliveries.Lease,
    newest_first: bool,
    watched: Iterable[str],
    outcomes: Sequence[dict[str, Any]],
    connection: Connection,
) -> _Taken:
    if outcomes:
        _record(outcomes, lease.now, connection)
    found = deliveries.take_due(connection, lease, newest_first=newest_first)
    wanted = {row.event.subscription_id for row in found if row.event.subscription_id is not None}
    recipients = fan_out.recipients(connection, wanted.union(watched)) if wanted or watched else {}
    return _Taken([fan_out.readdressed(connection, row, recipients) for row in found], recipients)
