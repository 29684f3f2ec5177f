"""
Webhook outbox: events are durable before they are sent, and retried until accepted or the schedule ends.

An event is written in the transaction of the change that it reports. Delivery is at least once; receivers
detect duplicates by ``delivery_id``. Events of one call to one URL keep their order: an event that waits for
its next attempt holds back those behind it.

The database is the only queue. Memory holds only deliveries that are due, none that wait for a later
attempt, so a receiver that is down for a day costs rows, not memory. ``callcontrol.webhooks.queues`` decides
the order and the concurrency: deliveries that a slow destination has no room for go back to the database,
and an unresponsive destination is only probed, so neither delays others.

Outcomes are written in the transaction that leases the next due deliveries, so deliveries that wait for an
outcome do not wait for a second transaction.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.pending import Pending
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError
from callcontrol.models import Attempt, Delivery, PublishedEvent, Recipient, WebhookEvent
from callcontrol.webhooks.aio.client import Answer, WebhookClient
from callcontrol.webhooks.attempts import added
from callcontrol.webhooks.queues import DeliveryQueues, Destination, Held, QueueLimits
from callcontrol.webhooks.retries import OFFSETS_S, TIMEOUT_S, is_gone, origin, retry_delay_s
from callcontrol.webhooks.store import deliveries
from callcontrol.webhooks.store import publish as fan_out

log = logging.getLogger(__name__)

_CLOSE_S: Final = 2.0
_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """
    Pacing of deliveries.

    Attributes:
        node: Name under which this process leases rows; unique among the processes of one database.
        queues: Limits of concurrent requests and of deliveries in memory; further ones wait in the database.
        lease_s: Lease time; rows of a crashed process wait this long for another process.
        poll_s: Interval between queries for due deliveries.
        gather_s: Minimum time between two queries, so that events are batched.
        timeout_s: Response time limit of a receiver.
        offsets_s: Attempt times, counted from the first attempt.
    """

    node: str = "local"
    queues: QueueLimits = QueueLimits()
    lease_s: float = 120.0
    poll_s: float = 1.0
    gather_s: float = 0.02
    timeout_s: float = TIMEOUT_S
    offsets_s: Sequence[float] = OFFSETS_S


@dataclass(slots=True)
class OutboxStats:
    """Counters of the outbox; ``skipped`` counts attempts not made at unresponsive destinations."""

    delivered: int = 0
    failed: int = 0
    attempts: int = 0
    skipped: int = 0
    postponed: int = 0


class _SteadyClock:
    """
    Wall clock for schedules and leases that never goes back.

    When the system clock is set back, due deliveries stay due, and leased ones stay leased.
    """

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Later of the system time and the last result advanced by the elapsed monotonic time."""
        wall_time, ticks = utc_now(), asyncio.get_running_loop().time()
        if self._last is not None:
            wall_time = max(wall_time, self._last[0] + timedelta(seconds=ticks - self._last[1]))
        self._last = (wall_time, ticks)
        return wall_time


class Outbox:
    """
    Delivers webhook events; called by the stores after each commit.

    Args:
        writer: Writes outcomes and leases due deliveries. Close it after the outbox.
        destinations: Decides which destinations are permitted.
        secrets_of: Returns the signing secrets of an account, newest first; called at every attempt. An
            event of an account without secrets is not sent, and tried again later. A delivery to a
            subscription is signed with the subscription's secret, as last read from the database.
        settings: Pacing.
        form_secret_of: Returns the secret that signs forms to an account's servers as Twilio does.
    """

    def __init__(
        self,
        writer: Writer,
        destinations: Destinations,
        secrets_of: Callable[[str], Sequence[str]],
        settings: OutboxSettings | None = None,
        form_secret_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._writer = writer
        self._checks = destinations
        self._secrets_of = secrets_of
        self._form_secret_of = form_secret_of
        self._settings = settings or OutboxSettings()
        self._queues = DeliveryQueues(self._settings.queues)
        self._clock = _SteadyClock()
        self._newest_first = False
        self._ids: set[str] = set()
        self._recipients: dict[str, Recipient] = {}
        self._checked_at: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._client: WebhookClient | None = None
        self._wake = asyncio.Event()
        self._closing = False
        self._database_down = False
        # When outcomes are written, the deliveries behind them are due.
        self._outcomes = Pending[dict[str, Any]](
            lambda rows: partial(_record, rows, self._clock.now()), _log_lost, lambda _: self._wake.set()
        )
        # Subscriptions (id, URL) that answered 410 since the last query for due deliveries began.
        self._gone: set[tuple[str | None, str]] = set()
        self.stats = OutboxStats()

    @property
    def held(self) -> int:
        """Number of deliveries in memory: waiting for a connection, or in progress."""
        return len(self._ids)

    async def start(self) -> None:
        """Release the leases of an earlier run of this node, and start to deliver."""
        await self._writer.commit(partial(deliveries.release, node=self._settings.node))
        self._writer.attach(self._outcomes)
        self._client = WebhookClient(self._checks, self._settings.timeout_s)
        self._poller = asyncio.create_task(self._poll(), name="webhook-poller")

    async def close(self) -> None:
        """Stop delivering; requests in progress get two seconds, all others stay in the database."""
        self._closing = True
        self._wake.set()
        if self._poller is not None:
            # A lease in progress must be released again, so the task is cancelled only if it does not end.
            await asyncio.wait([self._poller], timeout=_CLOSE_S)
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
            self._poller = None
        for held in self._queues.drain():
            self._release(held.delivery)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
            self._client = None

    # Called by the stores.

    def publish(self, connection: Connection, events: Sequence[PublishedEvent]) -> int:
        """Write the deliveries of events, which queues them for sending; returns their number."""
        return fan_out.publish(connection, events)

    def take_back(self, connection: Connection, call_sid: str) -> bool:
        """Delete the deliveries of a call; False, and none is, if one may have been sent."""
        return deliveries.withdraw(connection, call_sid)

    def committed(self, events: Sequence[PublishedEvent]) -> None:
        """Deliver the events, which are durable now."""
        self._wake.set()

    # For the subscription services.

    def changed(self) -> None:
        """Query the database at once: a subscription or one of its deliveries has changed."""
        self._checked_at = None
        self._wake.set()

    async def attempt(
        self, event: WebhookEvent, secrets: Sequence[str], form_secret: str | None = None
    ) -> Answer:
        """Send an event once, without storing it; never raises."""
        if self._client is None:
            return Answer(problem="this process delivers no webhooks")
        return await self._client.send(event, secrets, form_secret)

    # Due deliveries.

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing:
            asked_at = loop.time()
            room = self._settings.queues.held - len(self._ids) - len(self._outcomes)
            limit = min(room, _BATCH)
            if limit > 0 and await self._lease_due(limit) == limit:
                # Backlog: alternate the order, so that recent events do not wait for all of it.
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

    async def _lease_due(self, limit: int) -> int:
        """Write outcomes, lease due deliveries and queue them; returns their number."""
        settings = self._settings
        # The lease is counted from before the query, so it ends here before it ends elsewhere.
        until = asyncio.get_running_loop().time() + settings.lease_s - settings.timeout_s
        now = self._clock.now()
        watched = self._watched()
        outcomes = self._outcomes.take()
        self._gone.clear()
        lease = deliveries.Lease(settings.node, now, now + timedelta(seconds=settings.lease_s), limit)
        take = partial(_lease_rows, lease, self._newest_first, watched or (), list(outcomes.values()))
        undo = partial(deliveries.release, node=settings.node, lease=lease)
        try:
            found, recipients = await self._writer.commit(take, undo=undo)
        except DomainError as error:
            log.log(
                logging.DEBUG if self._database_down else logging.INFO,
                "due webhooks could not be leased: %s",
                error.message,
            )
            self._database_down = True
            self._checked_at = None
            self._outcomes.put_back(outcomes)
            if self._outcomes:
                self._writer.schedule_flush(self._outcomes)
            return 0
        self._database_down = False
        if watched is None:
            self._recipients.update(recipients)
        else:
            self._recipients = recipients
        # The query may have read these before they were paused.
        for subscription_id, url in self._gone:
            self._stop(subscription_id, url)
        for delivery in found:
            if not self._is_known(delivery.event.delivery_id):
                self._admit(Held(delivery, until))
        self._dispatch()
        return len(found)

    def _watched(self) -> set[str] | None:
        """Subscriptions of the waiting deliveries if they are due for a check; else None."""
        now = asyncio.get_running_loop().time()
        if self._checked_at is not None and now < self._checked_at + self._settings.poll_s:
            return None
        self._checked_at = now
        return {
            held.delivery.event.subscription_id
            for held in self._queues.waiting()
            if held.delivery.event.subscription_id is not None
        }

    def _is_known(self, delivery_id: str) -> bool:
        """Return True for a row still held here, whose lease ended because the clock jumped."""
        return delivery_id in self._ids or self._outcomes.get(delivery_id) is not None

    def _admit(self, held: Held) -> None:
        self._ids.add(held.delivery.event.delivery_id)
        now = asyncio.get_running_loop().time()
        wait_s = self._queues.put(origin(held.delivery.event.url), held, now)
        if wait_s is not None:
            self._postpone(held.delivery, wait_s)

    # Sending.

    def _dispatch(self) -> None:
        """Start sending as many deliveries as the limits allow."""
        loop = asyncio.get_running_loop()
        while not self._closing:
            taken = self._queues.take(loop.time())
            if taken is None:
                break
            held, destination = taken
            if loop.time() > held.until:
                # Another process may have leased it by now.
                self._ids.discard(held.delivery.event.delivery_id)
                self._queues.release(destination)
            elif not self._is_current(held.delivery):
                self._queues.release(destination)
            else:
                task = asyncio.create_task(self._deliver(held.delivery, destination), name="webhook")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        for held in self._queues.skipped():
            self.stats.skipped += 1
            self._record_result(held.delivery, Answer(problem="the destination has stopped answering"))

    def _is_current(self, delivery: Delivery) -> bool:
        """Return True if the subscription is active and has the same URL; release the delivery if not."""
        event = delivery.event
        if event.subscription_id is None:
            return True
        recipient = self._recipients.get(event.subscription_id)
        if recipient is None or not recipient.is_active:
            delivery.status = "failed"
            delivery.last_error = "the webhook is " + ("deleted" if recipient is None else "paused")
        elif recipient.url == event.url:
            return True
        # A delivery with a new URL is sent when it is leased again.
        self._release(delivery)
        return False

    async def _deliver(self, delivery: Delivery, destination: Destination) -> None:
        """Make one attempt at a delivery."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.stats.attempts += 1
        try:
            answer = await self._send(delivery.event)
        except BaseException:
            self._queues.release(destination)
            self._release(delivery)
            raise
        ended = loop.time()
        self._queues.finish(destination, ended, took_s=ended - began, unanswered=answer.unanswered)
        self._record_result(delivery, answer)
        self._dispatch()

    async def _send(self, event: WebhookEvent) -> Answer:
        if event.subscription_id is None:
            account_sid = event.account_sid
            secrets = self._secrets_of(account_sid)
            return await self.attempt(event, secrets, self._form_secret_of(account_sid))
        recipient = self._recipients.get(event.subscription_id)
        if recipient is None or recipient.problem is not None:
            return Answer(problem="the webhook is deleted" if recipient is None else recipient.problem)
        if recipient.secret is not None:
            return await self.attempt(event, (recipient.secret,))
        # The events of masked calls are signed in any case.
        secrets = self._secrets_of(event.account_sid) if recipient.service == "masking" else ()
        return await self.attempt(event, secrets)

    # Outcomes.

    def _record_result(self, delivery: Delivery, answer: Answer) -> None:
        """Record the outcome of an attempt and schedule the next one."""
        now = self._clock.now()
        delivery.attempts += 1
        delivery.attempt_log = added(delivery.attempt_log, _attempt(answer, delivery.attempts, now))
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
        self._release(delivery)

    def _delay_s(self, delivery: Delivery, answer: Answer) -> float | None:
        if is_gone(answer.status):
            self._gone.add((delivery.event.subscription_id, delivery.event.url))
            self._stop(delivery.event.subscription_id, delivery.event.url)
            return None
        return retry_delay_s(
            delivery.attempts,
            jitter=random.random(),
            retry_after_s=answer.retry_after_s,
            offsets_s=self._settings.offsets_s,
        )

    def _stop(self, subscription_id: str | None, url: str) -> None:
        """Stop sending to a subscription that answered 410; the outcome's transaction pauses it."""
        recipient = self._recipients.get(subscription_id or "")
        if recipient is not None and recipient.url == url:
            self._recipients[recipient.subscription_id] = replace(recipient, is_active=False)

    def _postpone(self, delivery: Delivery, wait_s: float) -> None:
        """Reschedule a delivery for when its destination may have room for it."""
        wait_s = max(wait_s, self._settings.poll_s)
        delivery.next_attempt_at = self._clock.now() + timedelta(seconds=wait_s)
        self.stats.postponed += 1
        self._release(delivery)

    def _release(self, delivery: Delivery) -> None:
        """Release a delivery: write its state and end its lease."""
        self._ids.discard(delivery.event.delivery_id)
        self._outcomes.put(delivery.event.delivery_id, deliveries.outcome_row(delivery))
        self._writer.schedule_flush(self._outcomes)
        self._wake.set()


def _attempt(answer: Answer, number: int, now: datetime) -> Attempt:
    """Entry of the log for an attempt that has ended."""
    took_s, body = answer.took_s, answer.body
    return Attempt(
        now - timedelta(seconds=took_s or 0.0),
        number,
        None if took_s is None else round(took_s * 1000),
        answer.status,
        answer.problem,
        body.text,
        body.length_bytes,
        body.is_whole,
    )


def _log_lost(lost: Mapping[str, dict[str, Any]], error: Exception) -> None:
    # Their leases expire, and they are delivered again.
    log.error("results of webhook deliveries could not be stored", exc_info=error)


def _record(rows: Sequence[dict[str, Any]], now: datetime, connection: Connection) -> None:
    deliveries.record_outcomes(connection, rows)
    for subscription_id, url in {row["_gone"] for row in rows if row["_gone"] is not None}:
        fan_out.disable(connection, subscription_id, url, "the webhook is paused: its URL answered 410", now)


def _lease_rows(
    lease: deliveries.Lease,
    newest_first: bool,
    watched: Iterable[str],
    outcomes: Sequence[dict[str, Any]],
    connection: Connection,
) -> tuple[Sequence[Delivery], dict[str, Recipient]]:
    """Write outcomes and lease due deliveries, with the current state of their subscriptions."""
    if outcomes:
        _record(outcomes, lease.now, connection)
    found = deliveries.take_due(connection, lease, newest_first=newest_first)
    wanted = {row.event.subscription_id for row in found if row.event.subscription_id is not None}
    recipients = fan_out.recipients(connection, wanted.union(watched)) if wanted or watched else {}
    return [fan_out.with_current_url(connection, row, recipients) for row in found], recipients
