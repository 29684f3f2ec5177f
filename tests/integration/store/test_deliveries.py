"""Leasing rows of the outbox, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.models import Account, Delivery, WebhookEvent
from callcontrol.webhooks.store import deliveries

NOW = utc_now()
URL = "https://hooks.example.com/"
STEP = timedelta(seconds=1)


def event(account: Account, name: str, call_sid: str | None = "call-1", url: str = URL) -> WebhookEvent:
    return WebhookEvent(name, account.account_sid, "call.ringing", url, b"{}", NOW, call_sid)


async def publish(storage: Storage, *events: WebhookEvent) -> None:
    rows = [deliveries.row_of(some) for some in events]
    await storage.writer.commit(lambda connection: deliveries.insert(connection, rows))


async def take(storage: Storage, after_s: float = 1.0, lease_s: float = 60.0, limit: int = 10) -> list[str]:
    now = NOW + timedelta(seconds=after_s)
    found: Sequence[Delivery] = await storage.writer.commit(
        lambda connection: deliveries.take_due(
            connection, deliveries.Lease("here", now, now + timedelta(seconds=lease_s), limit)
        )
    )
    return [delivery.event.delivery_id for delivery in found]


async def settle(storage: Storage, delivery: Delivery) -> None:
    row = deliveries.outcome_row(delivery)
    await storage.writer.commit(lambda connection: deliveries.record_outcomes(connection, [row]))


async def test_the_oldest_of_each_call_and_url_is_leased_once(storage: Storage, account: Account) -> None:
    first = event(account, "a1")
    await publish(
        storage,
        first,
        event(account, "a2"),
        event(account, "b1", "call-2"),
        event(account, "a-elsewhere", url=URL + "other"),
        event(account, "n1", None),
        event(account, "n2", None),
    )
    assert await take(storage) == ["a1", "b1", "a-elsewhere", "n1", "n2"]
    assert await take(storage) == []
    await settle(storage, Delivery(first, NOW, "delivered", 1, 200, None, NOW))
    assert await take(storage) == ["a2"]


async def test_limits_take_the_oldest(storage: Storage, account: Account) -> None:
    await publish(storage, *[event(account, f"e{number}", f"call-{number}") for number in range(5)])
    assert await take(storage, limit=3) == ["e0", "e1", "e2"]
    assert await take(storage, limit=3) == ["e3", "e4"]


async def test_leases_run_out_and_are_released_by_node(storage: Storage, account: Account) -> None:
    await publish(storage, event(account, "a1"))
    assert await take(storage, after_s=1, lease_s=10) == ["a1"]
    assert await take(storage, after_s=10) == []
    assert await take(storage, after_s=12, lease_s=3600) == ["a1"]
    assert await storage.writer.commit(lambda connection: deliveries.release(connection, "elsewhere")) == 0
    assert await storage.writer.commit(lambda connection: deliveries.release(connection, "here")) == 1
    assert await take(storage, after_s=13) == ["a1"]


async def test_what_is_behind_a_retry_waits_with_it(storage: Storage, account: Account) -> None:
    first = event(account, "a1")
    await publish(storage, first, event(account, "a2"))
    assert await take(storage) == ["a1"]
    later = NOW + timedelta(seconds=100)
    await settle(storage, Delivery(first, later, "pending", 1, 500, "answered 500\0\ud800"))
    await publish(storage, event(account, "a3"))
    assert await take(storage, after_s=2) == []
    rows = await storage.database.read(lambda connection: deliveries.of_call(connection, "call-1"))
    assert [row.next_attempt_at for row in rows] == [later] * 3
    assert rows[0].last_error == "answered 500?"
    assert await take(storage, after_s=101) == ["a1"]


async def test_outcomes_do_not_reopen_what_has_ended(storage: Storage, account: Account) -> None:
    first = event(account, "a1")
    await publish(storage, first)
    done = Delivery(first, NOW, "delivered", 1, 200, None, NOW)
    await settle(storage, done)
    await settle(storage, replace(done, status="pending", delivered_at=None))
    assert await take(storage) == []
    counts = await storage.database.read(deliveries.counts)
    assert counts == {"delivered": 1}


def _take_all(lease: deliveries.Lease, connection: Connection) -> list[Delivery]:
    return deliveries.take_due(connection, lease)


async def test_a_lease_that_nobody_heard_of_is_given_up_alone(storage: Storage, account: Account) -> None:
    await publish(storage, event(account, "a1", "call-1"), event(account, "b1", "call-2"))
    leases = [
        deliveries.Lease("here", NOW + timedelta(seconds=1), NOW + timedelta(seconds=60 + number), 1)
        for number in range(2)
    ]
    taken = [await storage.writer.commit(partial(_take_all, lease)) for lease in leases]
    assert [len(rows) for rows in taken] == [1, 1]
    freed = await storage.writer.commit(lambda connection: deliveries.release(connection, "here", leases[1]))
    assert freed == 1
    assert await take(storage, after_s=2) == [taken[1][0].event.delivery_id]


async def test_the_newest_may_be_taken_first(storage: Storage, account: Account) -> None:
    for number in range(6):
        moment = replace(event(account, f"e{number}", f"call-{number}"), created_at=NOW + number * STEP)
        await publish(storage, moment)

    async def some(limit: int, *, newest_first: bool) -> list[str]:
        lease = deliveries.Lease("here", NOW + 10 * STEP, NOW + 1000 * STEP, limit)
        rows = await storage.writer.commit(
            lambda connection: deliveries.take_due(connection, lease, newest_first=newest_first)
        )
        return [row.event.delivery_id for row in rows]

    assert await some(2, newest_first=True) == ["e4", "e5"]
    assert await some(2, newest_first=False) == ["e0", "e1"]
    assert await some(9, newest_first=True) == ["e2", "e3"]
