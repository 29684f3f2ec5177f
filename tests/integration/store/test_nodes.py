"""Two processes deliver the events of one database."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.models import Account, WebhookEvent
from callcontrol.webhooks.queues import QueueLimits
from callcontrol.webhooks.store import deliveries
from callcontrol.webhooks.store import publish as fan_out
from tests.support.secrets import SECRETS
from tests.support.waiting import until
from tests.support.webhook_stage import Received, Receiver

CALLS = 30
EVENTS = 5


async def dawdle(_: Received) -> web.StreamResponse:
    await asyncio.sleep(0.01)
    return web.Response(status=200)


@pytest.fixture
async def nodes(url: str) -> AsyncIterator[list[Storage]]:
    opened = [
        await Storage.open(url, StorageSettings(node=name, allow_private_destinations=True), secrets=SECRETS)
        for name in ("one", "two")
    ]
    yield opened
    await asyncio.gather(*(storage.close() for storage in opened))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


async def publish(storage: Storage, *events: WebhookEvent) -> None:
    await storage.writer.commit(lambda connection: fan_out.publish(connection, events))
    storage.outbox.committed(events)


def event(account: Account, url: str, call: int, number: int) -> WebhookEvent:
    name = f"call-{call}/{number}"
    return WebhookEvent(name, account.account_sid, "call.ringing", url, b"{}", utc_now(), f"call-{call}")


async def test_each_event_is_sent_by_one_of_them_in_the_order_of_its_call(
    nodes: list[Storage], receiver: Receiver
) -> None:
    account, _ = await nodes[0].accounts.create("Acme", balance_paise=0)
    await nodes[1].directory.refresh()
    for node in nodes:
        # Neither can hold all of it, so that they have to share.
        node.outbox._settings = replace(node.outbox._settings, queues=QueueLimits(held=6))
    receiver.answers["/hook"] = dawdle

    async def call(number: int) -> None:
        # Its events are published by the one and by the other process.
        for step in range(EVENTS):
            await publish(nodes[(number + step) % 2], event(account, receiver.url("/hook"), number, step))

    await asyncio.gather(*(call(number) for number in range(CALLS)))
    await until(lambda: len(set(receiver.ids())) == CALLS * EVENTS)
    await until(lambda: not any(node.outbox.held for node in nodes))
    assert len(receiver.ids()) == CALLS * EVENTS
    order: dict[str, list[str]] = defaultdict(list)
    for delivery_id in receiver.ids():
        call_sid, _, step = delivery_id.partition("/")
        order[call_sid].append(step)
    assert all(steps == sorted(steps) for steps in order.values())
    sent = [node.outbox.stats.delivered for node in nodes]
    assert sum(sent) == CALLS * EVENTS
    assert all(sent)


async def test_what_a_dead_process_held_is_sent_by_another(nodes: list[Storage], receiver: Receiver) -> None:
    account, _ = await nodes[0].accounts.create("Acme", balance_paise=0)
    await nodes[1].directory.refresh()
    found = [event(account, receiver.url("/hook"), number, 0) for number in range(5)]

    def die_holding(connection: Connection) -> int:
        fan_out.publish(connection, found)
        now = utc_now()
        lease = deliveries.Lease("dead", now, now + timedelta(seconds=0.5), 100)
        return len(deliveries.take_due(connection, lease))

    assert await nodes[0].writer.commit(die_holding) == 5
    await until(lambda: len(receiver.ids()) == 5)
    assert sorted(receiver.ids()) == sorted(some.delivery_id for some in found)
