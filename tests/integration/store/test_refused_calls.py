"""
A call that is refused although its insert is committed: the answer to the commit comes too late.

It leaves nothing, or, once one of its webhooks may have been sent, a record with its end; on both databases.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.aio.crash_recovery import CrashRecovery
from callcontrol.calls.charges import Rates
from callcontrol.calls.product import NO_PRODUCT
from callcontrol.database import idempotency as rows
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.tables.masking import masked_calls
from callcontrol.errors import IdempotencyConflict
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.masking.calls import masked_details
from callcontrol.models import Account, CallFilter, CallRecord, CallStatus, Delivery, WebhookEvent
from callcontrol.webhooks.store import deliveries
from tests.support.domain import new_record
from tests.support.late_answers import LateAnswer
from tests.support.secrets import SECRETS
from tests.support.waiting import until

URL = "https://hooks.example.com/calls"


class LateInsert(LateAnswer):
    """Refuses calls whose inserts are durable."""

    async def refuses(self, record: CallRecord, *events: WebhookEvent) -> None:
        """Insert a call, and have it refused once it is committed."""
        await self.refuse(self.storage.calls.insert(record, reserve_paise=300, events=events))


@pytest.fixture
async def late(storage: Storage, account: Account) -> AsyncIterator[LateInsert]:
    await storage.calls.flush()
    made = LateInsert(storage)
    yield made
    made.release()


def inbound(account: Account, **changes: Any) -> tuple[CallRecord, WebhookEvent]:
    """A call of a caller, and its first event."""
    record = new_record(account.account_sid, "inbound", status_webhook_url=URL, **changes)
    record.status_webhook_events = ("initiated", "completed")
    record.status = CallStatus.INITIATED
    event = NO_PRODUCT.webhook_event(record, "call.initiated", {}, event_id="first", at=utc_now())
    assert event is not None
    return record, event


def take(storage: Storage) -> asyncio.Task[list[Delivery]]:
    """Lease what is due, as a sender does; what was asked for before is committed before."""
    now = utc_now() + timedelta(seconds=1)
    lease = deliveries.Lease("sender", now, now + timedelta(minutes=2), 100)
    return asyncio.create_task(storage.writer.commit(partial(deliveries.take_due, lease=lease)))


async def of_call(storage: Storage, record: CallRecord) -> Sequence[Delivery]:
    return await storage.database.read(partial(deliveries.of_call, call_sid=record.call_sid))


async def has_no_reserve(storage: Storage, account: Account) -> bool:
    wallet = await storage.wallet.wallet(account.account_sid)
    assert wallet.balance_paise == 100_000
    return not wallet.reserved_paise and not await storage.wallet.open_reserves()


async def test_a_refused_call_of_which_nothing_was_sent_leaves_nothing(
    storage: Storage, account: Account, late: LateInsert
) -> None:
    record, event = inbound(account)
    await late.refuses(record, event)
    late.release()
    await storage.calls.flush()
    assert (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items == []
    assert await of_call(storage, record) == []
    assert await has_no_reserve(storage, account)


async def test_a_refused_call_of_which_something_was_sent_has_its_end(
    storage: Storage, account: Account, late: LateInsert
) -> None:
    """A sender leases its first webhook before the call can be undone."""
    record, event = inbound(account)
    await late.refuses(record, event)
    # What is stored counts; its owner may have gone on with it.
    record.sequence = 7
    taken = take(storage)
    late.release()
    assert [delivery.event.event for delivery in await taken] == ["call.initiated"]
    await storage.calls.flush()
    await assert_failed(storage, account, record, "NORMAL_TEMPORARY_FAILURE")


async def assert_failed(storage: Storage, account: Account, record: CallRecord, cause: str) -> None:
    """The record has its end, costs nothing, and its webhooks say so in their order."""
    (found,) = (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items
    assert (found.call_sid, found.status, found.price_paise) == (record.call_sid, CallStatus.FAILED, 0)
    assert (found.hangup_cause, found.hangup_source) == (cause, "system")
    assert found.ended_at is not None
    assert await has_no_reserve(storage, account)
    bodies = [json.loads(delivery.event.body) for delivery in await of_call(storage, record)]
    assert [(body["event"], body["sequence"]) for body in bodies] == [
        ("call.initiated", 1),
        ("call.completed", 2),
    ]
    assert (bodies[1]["data"]["status"], bodies[1]["data"]["price"]) == ("failed", 0)
    assert found.sequence == 2


async def test_the_end_of_a_refused_call_is_written_once(
    storage: Storage, account: Account, late: LateInsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction that undoes the insert is rolled back once, and repeated."""
    record, event = inbound(account)
    await late.refuses(record, event)
    taken = take(storage)
    settle_all: Any = storage.calls._transactions.write_all
    broken: list[bool] = []

    def break_once(*values: object) -> object:
        result: object = settle_all(*values)
        if not broken:
            broken.append(True)
            raise OSError("the connection is lost")
        return result

    monkeypatch.setattr(storage.calls._transactions, "write_all", break_once)
    late.release()
    await taken
    await until(lambda: bool(broken))
    await storage.calls.flush()
    await assert_failed(storage, account, record, "NORMAL_TEMPORARY_FAILURE")


async def test_a_refused_call_whose_process_dies_is_ended_by_the_next(
    storage: Storage, url: str, account: Account, late: LateInsert
) -> None:
    """Killed between the commit and the undo, with the webhook sent by another process."""
    record, event = inbound(account)
    await late.refuses(record, event)
    writer = storage.writer._task
    assert writer is not None
    writer.cancel()
    await asyncio.wait([writer])
    storage.writer._task = None
    await storage.close()
    other = await Storage.open(url, deliver=False, secrets=SECRETS)
    try:
        await take(other)
        (unfinished,) = await other.calls.unfinished()
        assert (unfinished.call_sid, unfinished.sequence) == (record.call_sid, 1)
        await settle_former(other)
        await assert_failed(other, account, record, "CRASH")
    finally:
        await other.close()


async def settle_former(storage: Storage) -> None:
    """End the calls of the process that was killed, as a start does."""
    no_user_agent: Any = None  # No leg had begun, so nobody is to be told by SIP.
    recovery = CrashRecovery(
        no_user_agent,
        storage.calls,
        storage.directory,
        PRODUCTS,
        Path("nowhere"),
        None,
    )
    await recovery.settle(await storage.calls.unfinished(), Rates())


@pytest.mark.parametrize("sent", [False, True])
async def test_the_row_of_a_masked_call_follows_its_refused_call(
    storage: Storage, account: Account, late: LateInsert, sent: bool
) -> None:
    """It is deleted with the record, or gets the same end."""
    details = masked_details(
        direction="inbound", caller_number="+911", target_number=None, masked_number="+912"
    )
    record, event = inbound(account, product=MASKING, details=details)
    await late.refuses(record, event)
    if sent:
        taken = take(storage)
        late.release()
        await taken
    late.release()
    await storage.calls.flush()
    columns = masked_calls.c.call_sid, masked_calls.c.outcome, masked_calls.c.price_paise
    found = await storage.database.read(
        lambda connection: [tuple(row) for row in connection.execute(sa.select(*columns))]
    )
    assert found == ([(record.call_sid, "failed", 0)] if sent else [])
    assert await has_no_reserve(storage, account)


async def test_the_key_of_a_refused_request_is_free(storage: Storage, account: Account) -> None:
    """Its release by the request may be refused as the call was; repetitions would conflict for a day."""
    keys = storage.idempotency
    assert await keys.begin(account.account_sid, "key", "POST /v1/calls", "hash") is None
    record = new_record(account.account_sid)
    late = LateInsert(storage)
    await late.refuses(record)
    CLAIM.set(None)
    keys._running.clear()
    late.release()
    await storage.calls.flush()
    assert await keys.begin(account.account_sid, "key", "POST /v1/calls", "hash") is None
    # The undo of an earlier call has no effect on a key that is claimed anew.
    effect = f"call:{record.call_sid}"
    await storage.writer.commit(
        lambda connection: rows.release_effect(connection, (account.account_sid, "key"), effect)
    )
    with pytest.raises(IdempotencyConflict):
        keys._running.clear()
        await keys.begin(account.account_sid, "key", "POST /v1/calls", "hash")
