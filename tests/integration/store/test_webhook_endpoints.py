"""The numbers by which messaging knows its subscriptions, over a real database."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database import schema
from callcontrol.database.tables.webhook_endpoints import webhook_endpoints
from callcontrol.errors import Conflict, NotFound
from callcontrol.messaging.events import message_received, message_status_event
from callcontrol.messaging.models import ChatMessage
from callcontrol.models import Account
from callcontrol.webhooks.store import deliveries
from callcontrol.webhooks.store import publish as fan_out
from tests.support.domain import NOW

# Addresses instead of names: nothing is resolved.
VALUES: dict[str, Any] = {"url": "https://1.1.1.1/messaging", "event_types": ["message.sent"]}


def message(account: Account, **values: Any) -> ChatMessage:
    facts: dict[str, Any] = {
        "message_id": "55555555-5555-4555-8555-555555555555",
        "account_sid": account.account_sid,
        "direction": "outbound",
        "from_": "+918047000100",
        "to": "+919800100000",
        "type": "text",
        "content": {"text": "Hello"},
        "status": "sent",
        "created_at": NOW,
        "due_at": NOW,
    }
    return ChatMessage(**(facts | values))


async def test_each_is_found_by_its_number_and_by_no_other_account(
    storage: Storage, account: Account, stranger: Account
) -> None:
    endpoints, sid = storage.webhook_endpoints, account.account_sid
    made = [await endpoints.create(sid, VALUES) for _ in range(3)]
    numbers = [one.number for one in made]
    assert all(number is not None for number in numbers) and len(set(numbers)) == 3
    assert [one.number for one in await endpoints.list(sid)] == numbers[::-1]
    for one in made:
        assert one.number is not None
        assert await endpoints.numbered(sid, one.number) == one
        with pytest.raises(NotFound):
            await endpoints.numbered(stranger.account_sid, one.number)
    other = await storage.subscriptions.create(sid, VALUES | {"event_types": ["call.missed"]})
    assert other.number is None


async def test_no_number_is_used_twice(storage: Storage, account: Account) -> None:
    endpoints, sid = storage.webhook_endpoints, account.account_sid
    first = await endpoints.create(sid, VALUES)
    await endpoints.delete(sid, first.subscription_id)
    second = await endpoints.create(sid, VALUES)
    assert first.number is not None and second.number is not None
    assert second.number > first.number
    with pytest.raises(NotFound):
        await endpoints.numbered(sid, first.number)


async def test_ten_that_are_made_at_once_have_numbers_of_their_own_and_are_all(
    storage: Storage, account: Account
) -> None:
    endpoints, sid = storage.webhook_endpoints, account.account_sid
    made = await asyncio.gather(*(endpoints.create(sid, VALUES) for _ in range(10)))
    assert len({one.number for one in made}) == 10
    with pytest.raises(Conflict, match="10 webhook endpoints"):
        await endpoints.create(sid, VALUES)
    # Those of other services are counted apart.
    await storage.subscriptions.create(sid, VALUES | {"event_types": ["call.missed"]})


async def test_one_that_changes_keeps_its_number(storage: Storage, account: Account) -> None:
    endpoints, sid = storage.webhook_endpoints, account.account_sid
    made = await endpoints.create(sid, VALUES)
    changed = await endpoints.update(sid, made.subscription_id, {"is_active": False})
    assert changed.number == made.number and not changed.is_active
    assert made.secret is not None and made.secret.startswith("whsec_")


async def test_an_event_that_is_published_twice_is_delivered_once(storage: Storage, account: Account) -> None:
    """Whoever repeats a transaction, or two processes that both see a receipt, tell of it once."""
    made = await storage.webhook_endpoints.create(account.account_sid, VALUES)
    told = message(account)
    event = message_status_event(told, NOW)
    assert event is not None
    for _ in range(2):
        await storage.writer.commit(partial(fan_out.publish, events=[event]))
    received = message_received(message(account, direction="inbound"), NOW)
    await storage.writer.commit(lambda connection: fan_out.publish(connection, [received]))
    (queued,) = await storage.database.read(
        lambda connection: deliveries.of_call(connection, told.message_id)
    )
    body = json.loads(queued.event.body)
    assert list(body) == ["id", "event", "createdAt", "data"]
    assert (body["id"], body["event"]) == (queued.event.delivery_id, "message.sent")
    assert queued.event.subscription_id == made.subscription_id


async def test_those_that_are_kept_through_a_downgrade_get_numbers_again(
    storage: Storage, account: Account
) -> None:
    made = await storage.webhook_endpoints.create(account.account_sid, VALUES)

    def down_and_up(connection: sa.Connection) -> None:
        schema.downgrade(connection, "0023")
        assert not sa.inspect(connection).has_table(webhook_endpoints.name)
        schema.upgrade(connection)

    await storage.database.write(down_and_up)
    (found,) = await storage.webhook_endpoints.list(account.account_sid)
    assert found.number is not None and found.subscription_id == made.subscription_id
