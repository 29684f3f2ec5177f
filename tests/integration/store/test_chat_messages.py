"""Messages as they are kept: written at once, moved on by receipts, counted and cancelled."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.network import Receipt, ReceiptStatus
from callcontrol.messaging.store import campaigns
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store import queue as chat_queue
from callcontrol.messaging.store.messages import LISTING, MessageFilter
from callcontrol.models import Account
from tests.support.query_plans import plans

NOW = utc_now()
SECOND = timedelta(seconds=1)


def message(account: Account, *, campaign_id: int | None = None) -> ChatMessage:
    return ChatMessage(
        message_id=new_id(),
        account_sid=account.account_sid,
        direction="outbound",
        from_="+919800100000",
        to="+919800100001",
        type="text",
        content={"text": "நமஸ்காரம் \U0001f64f"},
        status="queued",
        created_at=NOW,
        due_at=NOW,
        campaign_id=campaign_id,
    )


def receipt(of: ChatMessage, status: ReceiptStatus, after_s: int = 0) -> Receipt:
    error = ("UNDELIVERABLE", "nobody there") if status == "failed" else (None, None)
    return Receipt(of.message_id, status, NOW + after_s * SECOND, f"net-{of.message_id}", *error)


async def keep(storage: Storage, *messages: ChatMessage) -> None:
    await storage.writer.commit(partial(chat_messages.insert_many, messages=messages))


async def found(storage: Storage, message_id: str) -> ChatMessage | None:
    return await storage.database.read(partial(chat_messages.get, message_id=message_id))


async def test_a_message_is_found_as_it_was_written(storage: Storage, account: Account) -> None:
    one = message(account)
    await keep(storage, one)
    await keep(storage, replace(one, to="+919800100009"))
    assert await found(storage, one.message_id) == one
    assert await found(storage, new_id()) is None


async def test_receipts_move_messages_and_tell_what_they_passed(storage: Storage, account: Account) -> None:
    one, other = message(account), message(account)
    await keep(storage, one, other)
    receipts = [
        receipt(one, "read", 3),
        receipt(other, "sent", 1),
        receipt(one, "delivered", 2),
        receipt(other, "failed", 4),
        Receipt(new_id(), "sent", NOW),
    ]
    moved = await storage.writer.commit(partial(chat_messages.apply, receipts=receipts))
    assert {each.row["message_id"]: each.passed for each in moved} == {
        one.message_id: ("sent", "delivered", "read"),
        other.message_id: ("sent", "failed"),
    }
    again = await storage.writer.commit(partial(chat_messages.apply, receipts=receipts))
    assert again == []
    read = await found(storage, one.message_id)
    assert read is not None
    assert (read.status, read.read_at, read.network_ref) == (
        "read",
        NOW + 3 * SECOND,
        f"net-{one.message_id}",
    )
    failed = await found(storage, other.message_id)
    assert failed is not None
    assert (failed.status, failed.error_code, failed.error_message) == (
        "failed",
        "UNDELIVERABLE",
        "nobody there",
    )
    assert (failed.sent_at, failed.failed_at) == (NOW + SECOND, NOW + 4 * SECOND)


async def states(storage: Storage, campaign_id: int) -> Counter[str]:
    """The number of messages of a campaign in each state; failed ones by the error, if there is one."""
    table = LISTING.identifier.table

    def read(connection: Connection) -> Counter[str]:
        rows = connection.execute(sa.select(table).where(table.c.campaign_id == campaign_id))
        return Counter(row.error_code or row.status for row in rows)

    return await storage.database.read(read)


async def test_the_states_of_a_campaign_add_up(storage: Storage, account: Account) -> None:
    messages = [message(account, campaign_id=7) for _ in range(10)]
    await keep(storage, *messages, message(account, campaign_id=8), message(account))
    receipts = [receipt(messages[0], "sent"), receipt(messages[1], "failed"), receipt(messages[2], "read")]
    await storage.writer.commit(partial(chat_messages.apply, receipts=receipts))
    assert await states(storage, 7) == {"queued": 7, "sent": 1, "read": 1, "UNDELIVERABLE": 1}
    cancel = partial(chat_messages.cancel, campaign_id=7, now=NOW, reason="The campaign was cancelled.")
    assert await storage.writer.commit(cancel) == 7
    assert await storage.writer.commit(cancel) == 0
    afterwards = {"sent": 1, "read": 1, "UNDELIVERABLE": 1, chat_messages.CANCELLED: 7}
    assert await states(storage, 7) == afterwards


async def test_what_is_being_handed_over_is_not_cancelled(storage: Storage, account: Account) -> None:
    one = message(account, campaign_id=7)
    lease = int((NOW + SECOND).timestamp() * 1_000_000)
    await storage.writer.commit(
        partial(chat_messages.insert_many, messages=[one], node="local", leased_until=lease)
    )
    cancel = partial(chat_messages.cancel, campaign_id=7, reason="The campaign was cancelled.")
    assert await storage.writer.commit(partial(cancel, now=NOW)) == 0
    assert await storage.writer.commit(partial(cancel, now=NOW + 2 * SECOND)) == 1


async def test_what_is_under_way_is_found_in_stretches(storage: Storage, account: Account) -> None:
    messages = [message(account) for _ in range(5)]
    await keep(storage, *messages)
    states: list[ReceiptStatus] = ["sent", "delivered", "read", "failed", "sent"]
    receipts = [receipt(each, status, 1) for each, status in zip(messages, states, strict=True)]
    await storage.writer.commit(partial(chat_messages.apply, receipts=receipts))
    wanted = sorted(messages[place].message_id for place in (0, 1, 4))
    first = await storage.database.read(partial(chat_messages.under_way, since=NOW, after=None, limit=2))
    rest = await storage.database.read(partial(chat_messages.under_way, since=NOW, after=first[-1], limit=2))
    assert [each.message_id for each in [*first, *rest]] == wanted
    late = partial(chat_messages.under_way, since=NOW + 2 * SECOND, after=None, limit=2)
    assert await storage.database.read(late) == []


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (MessageFilter(), "list"),
        (MessageFilter(status="read"), "list"),
        (MessageFilter(to="+919800100001", status="read"), "to"),
        (MessageFilter(campaign_id=7), "campaign"),
        (MessageFilter(campaign_id=7, status="failed", to="+919800100001"), "campaign"),
    ],
    ids=["all", "status", "to", "campaign", "everything"],
)
async def test_each_filter_is_answered_from_its_index(
    tmp_path: Path, query: MessageFilter, index: str
) -> None:
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)
    conditions = [*chat_messages.conditions("a", query), *LISTING.between(0, 1)]

    def ask(connection: Connection) -> None:
        LISTING.count(connection, conditions)
        LISTING.page(connection, conditions, offset=0, limit=20, total=100)

    said = await storage.database.read(plans(ask))
    searches = [step for step in said if "chat_messages" in step]
    assert len(searches) == 2
    assert all(
        f"SEARCH chat_messages USING INDEX ix_chat_messages_{index} " in _plain(step) for step in searches
    ), said
    await storage.close()


def _plain(step: str) -> str:
    return step.replace("USING COVERING INDEX", "USING INDEX")


async def test_single_messages_are_found_however_many_of_campaigns_wait(tmp_path: Path) -> None:
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)
    values = {"account_sid": "a", "micros": 1, "limit": 10}

    def ask(connection: Connection) -> None:
        for due in (chat_queue.SINGLES_DUE, chat_queue.OF_CAMPAIGNS_DUE):
            connection.execute(due._clause, values)

    said = [_plain(step) for step in await storage.database.read(plans(ask))]
    # Neither is sorted: the index has the order.
    assert said == [
        f"SEARCH chat_messages USING INDEX ix_chat_messages_{index} (account_sid=? AND due_at<?)"
        for index in ("single", "queued")
    ]
    await storage.close()


async def test_the_queue_and_the_counts_are_read_from_their_indexes(tmp_path: Path) -> None:
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)

    def ask(connection: Connection) -> None:
        chat_queue.release(connection, "local")
        chat_queue.depth(connection, 100)
        campaigns.with_counts(connection, "a", 7)
        chat_messages.cancel(connection, 7, NOW, "cancelled")
        chat_messages.under_way(connection, since=NOW, after=None, limit=10)

    said = await storage.database.write(plans(ask))
    used = [
        _plain(step).split(" INDEX ix_chat_messages_")[1].split(" ")[0]
        for step in said
        if "chat_messages" in step
    ]
    assert used == ["queued", "queued", "campaign", "campaign", "under_way"], said
    await storage.close()
