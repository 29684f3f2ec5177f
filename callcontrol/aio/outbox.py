"""
The webhook outbox: events that are durable before they are sent, and sent until somebody took them.

An event is written in the transaction of the change that it tells of. From then on it is delivered at least
once; ``delivery_id`` tells a receiver that it had it already. Events of one call to one URL keep their
order: one that waits for its next attempt holds back those behind it. Every destination has its own queue and
its own few connections, so a dead one delays nobody else.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from sqlalchemy.engine import Connection

from callcontrol.aio.database import Operation
from callcontrol.aio.destinations import checked_connector
from callcontrol.aio.tokens import utc_now
from callcontrol.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.interfaces import Destinations
from callcontrol.models import Delivery, WebhookEvent
from callcontrol.store.repositories import deliveries
from callcontrol.webhooks import TIMEOUT_S, is_gone, is_success, query_url, retry_delay_s, signed_headers

__all__ = ["Outbox", "OutboxSettings", "OutboxStats"]

log = logging.getLogger(__name__)

_CLOSE_S: Final = 2.0
_MAX_ANSWER_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """
    How deliveries are paced.

    Attributes:
        node: The name under which this process leases rows.
        per_destination: Requests under way to one scheme, host and port.
        max_held: Deliveries in memory; beyond it they wait in the database.
        lease_s: How long after the next attempt is due another process may take a row over.
        poll_s: How often the database is asked for what nobody holds.
    """

    node: str = "local"
    per_destination: int = 8
    max_held: int = 10_000
    lease_s: float = 120.0
    poll_s: float = 5.0
    timeout_s: float = TIMEOUT_S


@dataclass(slots=True)
class OutboxStats:
    """What the outbox has done so far."""

    delivered: int = 0
    failed: int = 0
    attempts: int = 0


@dataclass(slots=True, eq=False)
class _Chain:
    """Deliveries to one URL that must keep their order, oldest first."""

    key: tuple[str, str]
    waiting: deque[Delivery] = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True, eq=False)
class _Destination:
    """One scheme, host and port."""

    origin: str
    ready: deque[_Chain] = field(default_factory=deque)
    chains: int = 0
    active: int = 0


class Outbox:
    """
    Delivers the events of this process; an ``EventSink`` for the stores and a source for the writer.

    Args:
        writer: Writes outcomes, and leases what others left.
        destinations: Judges where requests may go.
        secrets_of: The signing secrets of an account, the newest first; called at every attempt.
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
        self._chains: dict[tuple[str, str], _Chain] = {}
        self._destinations: dict[str, _Destination] = {}
        self._held = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._writing: dict[str, dict[str, Any]] = {}
        self.stats = OutboxStats()

    @property
    def held(self) -> int:
        """Deliveries in memory that have not ended."""
        return self._held

    async def start(self) -> None:
        """Take up what a former run of this node left, and deliver from now on."""
        self._session = aiohttp.ClientSession(
            connector=checked_connector(self._checks, limit_per_host=self._settings.per_destination),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            headers={"User-Agent": "trunkline/1.0"},
            auto_decompress=False,
            trust_env=False,
        )
        self._writer.attach(self)
        await self._writer.commit(partial(_release, self._settings.node))
        self._poller = asyncio.create_task(self._poll(), name="webhook-poller")

    async def close(self) -> None:
        """Stop delivering; what is under way gets two seconds, and the rest stays in the database."""
        if self._poller is not None:
            self._poller.cancel()
        for chain in self._chains.values():
            if chain.timer is not None:
                chain.timer.cancel()
        self._chains.clear()
        self._destinations.clear()
        self._held = 0
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        tasks = [*self._tasks, *([self._poller] if self._poller is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    # What the stores ask (callcontrol.aio.call_store.EventSink).

    def rows(self, events: Sequence[WebhookEvent]) -> list[dict[str, Any]]:
        """The rows to write in the transaction that made the events."""
        if not events:
            return []
        # With no room in memory the row is leased to nobody, and comes back through the poller.
        lease_s = self._settings.lease_s if self._has_room(len(events)) else 0.0
        until = utc_now() + timedelta(seconds=lease_s)
        return [deliveries.row_of(event, self._settings.node, until) for event in events]

    def committed(self, events: Sequence[WebhookEvent]) -> None:
        """The rows are durable: deliver them."""
        if not events or self._session is None or self._session.closed or not self._has_room(len(events)):
            return
        for event in events:
            self._add(Delivery(event, next_attempt_at=event.created_at))

    # What the writer asks (callcontrol.aio.writer.Source).

    def take(self) -> Operation[None] | None:
        """What writes the outcomes so far."""
        if not self._outcomes:
            return None
        self._writing, self._outcomes = self._outcomes, {}
        return partial(_record, list(self._writing.values()))

    def written(self, result: None) -> None:
        """The outcomes are durable."""
        self._writing = {}

    def give_back(self) -> None:
        """Hold again what was taken, unless there is newer."""
        self._outcomes = {**self._writing, **self._outcomes}
        self._writing = {}

    def refused(self, error: Exception) -> None:
        """The outcomes cannot be stored; their leases run out and they are delivered again."""
        log.error("outcomes of webhooks could not be stored", exc_info=error)
        self._writing = {}

    # Queues.

    def _has_room(self, more: int) -> bool:
        return self._held + more <= self._settings.max_held

    def _add(self, delivery: Delivery) -> None:
        event = delivery.event
        key = (event.url, event.call_sid or event.delivery_id)
        self._held += 1
        chain = self._chains.get(key)
        if chain is not None:
            chain.waiting.append(delivery)
            return
        chain = self._chains[key] = _Chain(key)
        chain.waiting.append(delivery)
        destination = self._destination(event.url)
        destination.chains += 1
        self._schedule(chain, destination)

    def _destination(self, url: str) -> _Destination:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
        found = self._destinations.get(origin)
        if found is None:
            found = self._destinations[origin] = _Destination(origin)
        return found

    def _schedule(self, chain: _Chain, destination: _Destination) -> None:
        """Have a chain's first delivery sent when it is due."""
        delay_s = (chain.waiting[0].next_attempt_at - utc_now()).total_seconds()
        if delay_s > 0:
            loop = asyncio.get_running_loop()
            chain.timer = loop.call_later(delay_s, self._due, chain, destination)
        else:
            self._due(chain, destination)

    def _due(self, chain: _Chain, destination: _Destination) -> None:
        chain.timer = None
        destination.ready.append(chain)
        self._pump(destination)

    def _pump(self, destination: _Destination) -> None:
        while destination.ready and destination.active < self._settings.per_destination:
            destination.active += 1
            task = asyncio.create_task(self._serve(destination.ready.popleft(), destination))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, chain: _Chain, destination: _Destination) -> None:
        """Make one attempt at a chain's first delivery, and see how it goes on."""
        delivery = chain.waiting[0]
        try:
            status, problem, retry_after_s = await self._attempt(delivery.event)
            self._judge(delivery, status, problem, retry_after_s)
        finally:
            destination.active -= 1
        if self._chains.get(chain.key) is not chain:
            return  # Closed meanwhile.
        if delivery.status != "pending":
            chain.waiting.popleft()
            self._held -= 1
        if chain.waiting:
            self._schedule(chain, destination)
        else:
            del self._chains[chain.key]
            destination.chains -= 1
        self._pump(destination)
        if not destination.chains:
            self._destinations.pop(destination.origin, None)

    # Attempts.

    async def _attempt(self, event: WebhookEvent) -> tuple[int, str | None, float | None]:
        """Send an event once; status (0 without one), what went wrong, and when to come back if told."""
        self.stats.attempts += 1
        headers = signed_headers(event, self._secrets_of(event.account_sid), int(time.time()))
        get = event.method == "GET"
        assert self._session is not None
        try:
            self._checks.check_url(event.url, schemes=("http", "https"))
            async with self._session.request(
                event.method,
                query_url(event) if get else event.url,
                data=None if get else event.body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                await response.content.read(_MAX_ANSWER_BYTES)
                problem = None if is_success(response.status) else f"answered {response.status}"
                return response.status, problem, _retry_after_s(response.headers.get("Retry-After"))
        except DomainError as refusal:
            return 0, refusal.message, None
        except TimeoutError:
            return 0, f"no answer within {self._settings.timeout_s:g} s", None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return 0, str(error) or type(error).__name__, None

    def _judge(
        self, delivery: Delivery, status: int, problem: str | None, retry_after_s: float | None
    ) -> None:
        """Write down how an attempt went and decide on the next one."""
        now = utc_now()
        delivery.attempts += 1
        delivery.response_code = status
        delivery.last_error = problem
        delay_s = None
        if problem is None:
            delivery.status, delivery.delivered_at = "delivered", now
            self.stats.delivered += 1
        else:
            if not is_gone(status):
                delay_s = retry_delay_s(
                    delivery.attempts, jitter=random.random(), retry_after_s=retry_after_s
                )
            if delay_s is None:
                delivery.status = "failed"
                self.stats.failed += 1
                log.warning("webhook given up after %d attempts: %s", delivery.attempts, problem)
            else:
                delivery.next_attempt_at = now + timedelta(seconds=delay_s)
        lease_s = 0.0 if delay_s is None else delay_s + self._settings.lease_s
        self._outcomes[delivery.event.delivery_id] = deliveries.outcome_row(
            delivery,
            leased_until=now + timedelta(seconds=lease_s),
            last_error=problem,
            delivered_at=delivery.delivered_at,
        )
        self._writer.touch()

    # What nobody holds.

    async def _poll(self) -> None:
        """Take over deliveries that are due and that no living process holds."""
        while True:
            room = self._settings.max_held - self._held
            taken = 0
            if room > 0:
                taken = await self._take_over(min(room, 500))
            if taken < 500:
                await asyncio.sleep(self._settings.poll_s)

    async def _take_over(self, limit: int) -> int:
        now = utc_now()
        until = now + timedelta(seconds=self._settings.lease_s)
        try:
            found = await self._writer.commit(partial(_take_due, self._settings.node, now, until, limit))
        except DomainError as error:
            log.info("the outbox could not be read: %s", error.message)
            return 0
        for delivery in found:
            # The status and the counts of the row go on; the object is this process's own.
            self._add(replace(delivery))
        return len(found)


def _retry_after_s(value: str | None) -> float | None:
    """Seconds of a Retry-After; a date is not worth its clock skew and counts as none."""
    if value is None or not value.isascii() or not value.isdecimal() or len(value) > 9:
        return None
    return float(value)


def _release(node: str, connection: Connection) -> None:
    deliveries.release(connection, node)


def _record(rows: Sequence[dict[str, Any]], connection: Connection) -> None:
    deliveries.record_outcomes(connection, rows)


def _take_due(node: str, now: Any, until: Any, limit: int, connection: Connection) -> list[Delivery]:
    return deliveries.take_due(connection, node, now, until, limit)
