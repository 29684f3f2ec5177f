"""The receivers of an event are chosen in the transaction that publishes it, on both databases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.assistant.calls import PRODUCT, assistant_details
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.statements import Statement
from callcontrol.database.tables import webhooks
from callcontrol.errors import InsufficientBalance
from callcontrol.models import (
    Account,
    CallRecord,
    CallStatus,
    Delivery,
    PublishedEvent,
    SubscribedEvent,
    WebhookEvent,
)
from callcontrol.webhooks.store import deliveries, subscriptions
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import SubscribedService, Subscription
from tests.support.domain import new_record

NOW = utc_now()
URL = "https://hooks.example.com/"


def missed(account: Account, name: str = "missed-1", call_sid: str | None = "call-1") -> SubscribedEvent:
    fields = {"event": "call.missed", "data": {"call_sid": call_sid, "reason": "busy"}}
    return SubscribedEvent(name, account.account_sid, "calls", "call.missed", fields, NOW, call_sid)


async def subscribe(
    storage: Storage,
    account: Account,
    name: str,
    *,
    service: SubscribedService = "calls",
    events: tuple[str, ...] = ("call.missed",),
    **values: Any,
) -> str:
    made = Subscription(
        **{
            "subscription_id": name,
            "account_sid": account.account_sid,
            "service": service,
            "url": URL + name,
            "event_types": events,
            "created_at": NOW,
            "updated_at": NOW,
            **values,
        }
    )
    await storage.writer.commit(lambda connection: subscriptions.insert(connection, made))
    return name


async def publish(storage: Storage, *events: PublishedEvent) -> int:
    return await storage.writer.commit(lambda connection: fan_out.publish(connection, events))


async def queued(storage: Storage) -> Sequence[Delivery]:
    later = NOW + timedelta(hours=1)
    return await storage.writer.commit(
        lambda connection: deliveries.take_due(connection, deliveries.Lease("here", later, later, 1000))
    )


async def every(storage: Storage) -> list[Delivery]:
    def read(connection: Connection) -> list[Delivery]:
        return [deliveries.to_delivery(row) for row in connection.execute(sa.select(webhooks.deliveries))]

    return await storage.database.read(read)


async def test_whoever_lists_an_event_gets_it_under_an_id_of_its_own(
    storage: Storage, account: Account
) -> None:
    other, _ = await storage.accounts.create("Other", balance_paise=0, kyc=True)
    await subscribe(storage, account, "one", secret="a secret")
    await subscribe(storage, account, "two")
    await subscribe(storage, account, "paused", is_active=False)
    await subscribe(storage, account, "deaf", events=("call.other",))
    await subscribe(storage, account, "masking", service="masking")
    await subscribe(storage, other, "foreign")
    assert await publish(storage, missed(account)) == 2
    found = await queued(storage)
    assert {row.event.subscription_id for row in found} == {"one", "two"}
    for row in found:
        body = json.loads(row.event.body)
        assert list(body) == ["id", "event", "data"]
        assert body["id"] == row.event.delivery_id == fan_out.delivery_id_of("missed-1", row.event.url[26:])
        assert row.event.url == URL + (row.event.subscription_id or "")
        assert (row.event.event, row.event.event_id) == ("call.missed", "missed-1")
    assert len({row.event.delivery_id for row in found}) == 2


async def test_a_transaction_that_is_repeated_makes_no_second_delivery(
    storage: Storage, account: Account
) -> None:
    await subscribe(storage, account, "one")
    await publish(storage, missed(account))
    await publish(storage, missed(account))
    assert len(await queued(storage)) == 1


async def test_the_end_of_a_call_and_its_missed_event_are_one_transaction(
    storage: Storage, account: Account
) -> None:
    await subscribe(storage, account, "one")
    record = CallRecord("call-1", account.account_sid, "inbound", "+911", "+912", NOW)
    await storage.calls.insert(record)
    record.status, record.ended_at = CallStatus.NO_ANSWER, NOW
    storage.calls.finish(record, events=[missed(account)])
    await storage.calls.flush()
    (row,) = await queued(storage)
    assert row.event.call_sid == "call-1"


async def test_a_call_that_is_taken_back_leaves_no_event_behind(storage: Storage, account: Account) -> None:
    await subscribe(storage, account, "one")
    event = WebhookEvent("e1", account.account_sid, "call.initiated", URL, b"{}", NOW, "call-1")
    undone: list[PublishedEvent] = [missed(account), event]
    assert await publish(storage, *undone, missed(account, "missed-2", "call-2")) == 3
    assert await storage.writer.commit(partial(deliveries.withdraw, call_sid="call-1"))
    (row,) = await queued(storage)
    assert row.event.event_id == "missed-2"
    # That one is leased now, and a sender may have sent it.
    assert not await storage.writer.commit(partial(deliveries.withdraw, call_sid="call-2"))
    assert await storage.database.read(deliveries.counts) == {"pending": 1}


async def test_the_start_of_a_call_and_its_record_are_one_transaction(
    storage: Storage, account: Account
) -> None:
    await subscribe(storage, account, "one", service="assistant", events=("call.started",))
    details = assistant_details("agent-1", language="en-IN")
    record = new_record(account.account_sid, product=PRODUCT, details=details)
    with pytest.raises(InsufficientBalance):
        await storage.calls.insert(record, reserve_paise=10_000_000)
    assert await queued(storage) == []
    await storage.calls.insert(record)
    (row,) = await queued(storage)
    assert (row.event.event, row.event.call_sid) == ("call.started", record.call_sid)


async def test_a_call_that_is_refused_publishes_nothing(storage: Storage, account: Account) -> None:
    record = CallRecord("call-1", account.account_sid, "outbound", "+911", "+912", NOW)
    event = WebhookEvent("e1", account.account_sid, "call.initiated", URL, b"{}", NOW, "call-1")
    try:
        await storage.calls.insert(record, reserve_paise=10_000_000, events=[event])
    except InsufficientBalance:
        assert await queued(storage) == []
    else:
        raise AssertionError("the wallet holds less")


async def test_an_event_for_one_subscription_follows_it(storage: Storage, account: Account) -> None:
    await subscribe(storage, account, "masking", service="masking")
    await subscribe(storage, account, "paused", service="masking", is_active=False)
    event = WebhookEvent("e1", account.account_sid, "masking.call.initiated", URL + "former", b"{}", NOW)
    sent = [
        replace(event, subscription_id="masking"),
        *(replace(event, delivery_id=name, subscription_id=name) for name in ("paused", "deleted")),
    ]
    assert await publish(storage, *sent) == 1
    (row,) = await queued(storage)
    assert (row.event.delivery_id, row.event.url) == ("e1", URL + "masking")


async def test_what_waits_for_a_subscription_fails_moves_or_goes(storage: Storage, account: Account) -> None:
    for name in ("one", "two", "three"):
        await subscribe(storage, account, name)
    await publish(storage, missed(account), missed(account, "missed-2", "call-2"))
    counts = [
        await storage.writer.commit(lambda connection: fan_out.pause(connection, "one", "paused")),
        await storage.writer.commit(lambda connection: fan_out.withdraw(connection, "two")),
        await storage.writer.commit(lambda connection: fan_out.redirect(connection, "three", URL + "new")),
    ]
    assert counts == [2, 2, 2]
    rows = await every(storage)
    assert sorted((row.event.subscription_id or "", row.status, row.last_error) for row in rows) == [
        ("one", "failed", "paused"),
        ("one", "failed", "paused"),
        ("three", "pending", None),
        ("three", "pending", None),
    ]
    assert {row.event.url for row in await queued(storage)} == {URL + "new"}


async def test_much_that_waits_is_taken_out_in_small_transactions(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "AT_ONCE", 2)
    for name in ("paused", "deleted", "moved", "awake"):
        await subscribe(storage, account, name)
    await publish(storage, *(missed(account, f"missed-{n}", f"call-{n}") for n in range(5)))
    service, sid = storage.subscriptions, account.account_sid
    changes: list[int] = []

    def count(name: str) -> Any:
        real = getattr(fan_out, name)

        def counted(*arguments: Any) -> Any:
            changes.append(real(*arguments))
            return changes[-1]

        return counted

    for name in ("pause", "withdraw"):
        monkeypatch.setattr(fan_out, name, count(name))
    await service.update(sid, "paused", {"is_active": False})
    assert changes == [2, 2, 1]
    changes.clear()
    await service.delete(sid, "deleted")
    assert changes == [2, 2, 1]
    await service.update(sid, "moved", {"url": "https://1.1.1.1/new"})
    assert await storage.writer.commit(lambda connection: fan_out.clear(connection, "awake", "paused")) == 0
    rows = [row for row in await every(storage) if row.event.subscription_id != "awake"]
    assert [row.last_error for row in rows if row.status == "failed"] == ["the subscription was paused"] * 5
    # Calls that are up published last; what is older is with_current_url when it is taken.
    assert [row.event.call_sid for row in rows if row.event.url.endswith("/new")] == ["call-3", "call-4"]
    assert len(rows) == 10


async def test_only_the_url_that_said_so_disables_a_subscription(storage: Storage, account: Account) -> None:
    await subscribe(storage, account, "one")
    await publish(storage, missed(account))

    async def disable(url: str) -> bool:
        return await storage.writer.commit(
            lambda connection: fan_out.disable(connection, "one", url, "it is gone", NOW)
        )

    assert not await disable(URL + "former")
    assert len(await queued(storage)) == 1
    assert await disable(URL + "one")
    assert not await disable(URL + "one")
    (row,) = await storage.database.read(lambda connection: deliveries.of_call(connection, "call-1"))
    assert (row.status, row.last_error) == ("failed", "it is gone")
    found = await storage.database.read(lambda connection: fan_out.recipients(connection, ["one", "none"]))
    assert [(name, some.is_active) for name, some in found.items()] == [("one", False)]


async def test_subscriptions_are_looked_up_once_for_all_events_of_a_transaction(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[object] = []

    class Counted(Statement):
        def first(self, connection: Connection, values: Mapping[str, Any]) -> dict[str, Any] | None:
            looked_up.append(values)
            return super().first(connection, values)

        def all(self, connection: Connection, values: Mapping[str, Any]) -> list[dict[str, Any]]:
            looked_up.append(values)
            return super().all(connection, values)

    for name in ("_ONE", "_ACTIVE"):
        monkeypatch.setattr(fan_out, name, Counted(getattr(fan_out, name)._clause))
    await subscribe(storage, account, "one")
    event = WebhookEvent("e", account.account_sid, "masking.call", URL, b"{}", NOW, subscription_id="one")
    events = [replace(event, event_id=f"e{number}", delivery_id=f"d{number}") for number in range(5)]
    assert await publish(storage, *events, *(missed(account, f"m{number}") for number in range(5))) == 10
    assert len(looked_up) == 2
