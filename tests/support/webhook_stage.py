"""Receivers of webhooks on loopback, and an outbox over a database of its own."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from aiohttp import web
from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer, WriterSettings
from callcontrol.database.tables import webhooks
from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.egress.url_policy import Destinations
from callcontrol.models import Account, Delivery, PublishedEvent, SubscribedEvent, WebhookEvent
from callcontrol.webhooks.aio.outbox import Outbox, OutboxSettings
from callcontrol.webhooks.queues import QueueLimits
from callcontrol.webhooks.store import deliveries, subscriptions
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import Subscription
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url
from tests.support.waiting import PATIENCE_S

ACCOUNT_SID = "acc-1"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

FAST = OutboxSettings(
    poll_s=0.02,
    gather_s=0.0,
    timeout_s=PATIENCE_S,
    lease_s=3 * PATIENCE_S,  # Deliveries are sent only while longer than the timeout is left of it.
    offsets_s=(0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07),
    queues=QueueLimits(probe_s=0.02),
)

SLOW = replace(FAST, offsets_s=(0.0, 3600.0, 7200.0))
"""Attempts far apart, so that what failed once does not come back during a test."""

Answer = Callable[["Received"], Awaitable[web.StreamResponse] | web.StreamResponse]


@dataclass(slots=True)
class Received:
    """A request as the receiver saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    request: web.Request

    @property
    def delivery_id(self) -> str:
        return self.headers["X-Service-Delivery"]


@dataclass
class Receiver:
    """An HTTP server whose answers are scripted by path; it answers 204 where nothing is."""

    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        assert self._runner.server is not None
        serve = self._runner.server

        def accept() -> asyncio.BaseProtocol:
            self.connections += 1
            return serve()

        self._server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._runner is not None:
            self._server.close()
            await self._runner.cleanup()
            self._runner = None

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def ids(self, path: str | None = None) -> list[str]:
        return [got.delivery_id for got in self.requests if path is None or got.path == path]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        got = Received(
            request.method,
            request.path,
            dict(request.query),
            dict(request.headers),
            await request.read(),
            request,
        )
        self.requests.append(got)
        answer = self.answers.get(got.path)
        if answer is None:
            return web.Response(status=204)
        found = answer(got)
        return found if isinstance(found, web.StreamResponse) else await found


def statuses(*codes: int, headers: dict[str, str] | None = None) -> Answer:
    """Answer with one status after the other, the last one for ever."""
    left = itertools.chain(codes[:-1], itertools.repeat(codes[-1]))
    return lambda _: web.Response(status=next(left), headers=headers)


class Gate:
    """Answers nobody until it is opened; counts who waits."""

    def __init__(self) -> None:
        self.waiting = 0
        self.status = 200
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, _: Received) -> web.StreamResponse:
        self.waiting += 1
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1
        return web.Response(status=self.status)


@dataclass
class Stage:
    """A database, a writer and an outbox that can be restarted."""

    folder: Path
    secrets: list[str] = field(default_factory=lambda: [SECRET])
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    database: Database = field(init=False)
    writer: Writer = field(init=False)
    outbox: Outbox = field(init=False)

    async def start(
        self,
        settings: OutboxSettings = FAST,
        *,
        destinations: Destinations | None = None,
        deliver: bool = True,
    ) -> Outbox:
        self.database = await Database.open(await sqlite_url(self.folder / "outbox.db"), secrets=SECRETS)
        self.writer = Writer(self.database, WriterSettings(flush_interval_s=0.005))
        await self.writer.start()
        await self.writer.commit(_ensure_account)
        self.outbox = Outbox(
            self.writer, destinations or DestinationGuard(True), lambda _: self.secrets, settings
        )
        if deliver:
            await self.outbox.start()
        return self.outbox

    async def close(self) -> None:
        await self.outbox.close()
        await self.writer.close()
        await self.database.close()

    def event(
        self,
        url: str,
        call_sid: str | None = "call-1",
        *,
        body: bytes = b'{"event":"call.ringing"}',
        method: Literal["POST", "GET"] = "POST",
        subscription_id: str | None = None,
    ) -> WebhookEvent:
        return WebhookEvent(
            event_id=f"event-{next(self._numbers)}",
            account_sid=ACCOUNT_SID,
            event="call.ringing",
            url=url,
            body=body,
            created_at=utc_now(),
            call_sid=call_sid,
            method=method,
            subscription_id=subscription_id,
        )

    async def publish(self, *events: WebhookEvent) -> list[str]:
        """Make events durable as the stores do; their ids."""
        await self.publish_all(*events)
        return [event.delivery_id for event in events]

    async def publish_all(self, *events: PublishedEvent) -> int:
        """Make events durable as the stores do; how many deliveries they became."""
        count = await self.writer.commit(lambda connection: fan_out.publish(connection, events))
        self.outbox.committed(events)
        return count

    async def subscribe(self, url: str, *, name: str = "sub-1", **values: Any) -> Subscription:
        """Subscribe an account to events of its calls."""
        made = Subscription(
            **{
                "subscription_id": name,
                "account_sid": ACCOUNT_SID,
                "service": "calls",
                "url": url,
                "event_types": ("call.missed",),
                "created_at": utc_now(),
                "updated_at": utc_now(),
                **values,
            }
        )
        await self.writer.commit(lambda connection: subscriptions.insert(connection, made))
        return made

    async def change(self, subscription: Subscription, **values: Any) -> None:
        """Change a subscription as another process would, without a word to this one."""
        changed = replace(subscription, **values)
        await self.writer.commit(lambda connection: subscriptions.update(connection, changed))

    async def broadcast(self, call_sid: str = "call-1", *, name: str = "sub-1") -> str:
        """Publish an event to whoever has subscribed; the id of its delivery to one of them."""
        event_id = f"event-{next(self._numbers)}"
        fields = {"event": "call.missed", "data": {"call_sid": call_sid}}
        await self.publish_all(
            SubscribedEvent(event_id, ACCOUNT_SID, "calls", "call.missed", fields, utc_now(), call_sid)
        )
        return fan_out.delivery_id_of(event_id, name)

    async def post(self, url: str, call_sid: str | None = "call-1") -> str:
        """Publish one event."""
        return (await self.publish(self.event(url, call_sid)))[0]

    async def rows(self) -> dict[str, Delivery]:
        """The deliveries in the database, by id, with all that was noted so far."""
        await self.writer.flush()
        return {row.event.delivery_id: row for row in await self.database.read(_every)}

    async def row(self, delivery_id: str) -> Delivery:
        return (await self.rows())[delivery_id]

    async def attempted(self, delivery_id: str) -> Delivery:
        """A delivery once its first attempt is noted."""
        found: list[Delivery] = []
        async with asyncio.timeout(PATIENCE_S):
            while not found or not found[0].attempts:
                found = [await self.row(delivery_id)]
        return found[0]

    async def ended(self, *delivery_ids: str) -> list[Delivery]:
        """The deliveries, once none of them is pending."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.writer.flush()
                # Reading whole deliveries each time would hold up the loop that sends them.
                while not (await self.database.read(_pending)).isdisjoint(delivery_ids):
                    await asyncio.sleep(0.01)
                    await self.writer.flush()
        except TimeoutError:
            late = [row for row in (await self.rows()).values() if row.status == "pending"]
            state = f"held {self.outbox.held}, {self.outbox.stats}, at {utc_now()}"
            raise AssertionError(f"{len(late)} deliveries are pending ({state}): {late[:3]}") from None
        found = await self.rows()
        return [found[delivery_id] for delivery_id in delivery_ids]

    async def lease(self, node: str, lease_s: float) -> Sequence[Delivery]:
        """Lease due deliveries as another process would, and never complete them."""
        now = utc_now()
        until_then = now.fromtimestamp(now.timestamp() + lease_s, tz=now.tzinfo)
        return await self.writer.commit(
            lambda connection: deliveries.take_due(connection, deliveries.Lease(node, now, until_then, 1000))
        )


def fast(**changes: Any) -> OutboxSettings:
    """The settings of these tests, but for some."""
    limits = {name: changes.pop(name) for name in list(changes) if name in QueueLimits.__slots__}
    return replace(FAST, queues=replace(FAST.queues, **limits), **changes)


def _ensure_account(connection: Any) -> None:
    if accounts.get(connection, ACCOUNT_SID) is None:
        accounts.insert(connection, Account(ACCOUNT_SID, "Acme", utc_now(), utc_now()), 1)


def _every(connection: Any) -> list[Delivery]:
    return [deliveries.to_delivery(row) for row in connection.execute(sa.select(webhooks.deliveries))]


def _pending(connection: Connection) -> set[str]:
    table = webhooks.deliveries
    return set(connection.scalars(sa.select(table.c.delivery_id).where(table.c.status == "pending")))
