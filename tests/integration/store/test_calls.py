from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.errors import Forbidden, InsufficientBalance, NotFound
from callcontrol.models import (
    Account,
    CallFilter,
    CallRecord,
    CallStatus,
    Quality,
    StreamInfo,
    WebhookEvent,
)
from callcontrol.webhooks.store import deliveries
from tests.support.domain import new_record
from tests.support.secrets import SECRETS


def make_event(call: CallRecord, name: str) -> WebhookEvent:
    return WebhookEvent(
        event_id=new_id(),
        account_sid=call.account_sid,
        event=name,
        url="https://example.com/hook",
        body=b"{}",
        created_at=utc_now(),
        call_sid=call.call_sid,
    )


async def test_every_field_of_a_record_comes_back(storage: Storage, account: Account) -> None:
    moment = datetime(2026, 8, 1, 12, 30, 15, 123456, tzinfo=UTC)
    call = new_record(
        account.account_sid,
        parent_call_sid=new_id(),
        answered_by="human",
        carrier_sid=new_id(),
        gateway_sid=new_id(),
        phone_number_id=new_id(),
        app_sid=new_id(),
        stream=StreamInfo("s", "wss://example.com/x?y=1", "exotel", "l16", 16000, "connected"),
        tag="ärger",
        status_webhook_url="https://example.com/hook",
        status_webhook_events=("initiated", "completed"),
    )
    await storage.calls.insert(call)
    call.status = CallStatus.COMPLETED
    call.ringing_at = moment
    call.answered_at = moment + timedelta(seconds=2)
    call.ended_at = moment + timedelta(seconds=63)
    call.duration_sec, call.bill_duration_sec = 61, 120
    call.hangup_cause, call.hangup_cause_code, call.hangup_source = "NORMAL_CLEARING", 16, "callee"
    call.sip_status, call.sip_reason, call.sip_call_id = 200, "OK", "x@127.0.0.1"
    call.recording_url, call.recording_path = "/recordings/x.wav", "/data/x.wav"
    call.quality = Quality(4.3, 1.5, 0.1, "PCMU")
    call.sequence = 4
    storage.calls.finish(call, charge_paise=0)
    await storage.calls.flush()
    found = (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items
    assert found == [call]
    assert found[0] is not call


def make_active(call: CallRecord) -> None:
    """A state of an active call in which every field has a value that such a call can have."""
    call.status, call.answered_by, call.app_sid = CallStatus.IN_PROGRESS, "human", new_id()
    call.carrier_sid, call.gateway_sid, call.phone_number_id = new_id(), new_id(), new_id()
    call.stream = StreamInfo("s", "wss://example.com/x", "exotel", "l16", 16000, "connected")
    call.ringing_at, call.answered_at = call.created_at, call.created_at + timedelta(seconds=2)
    call.sip_status, call.sip_reason, call.sip_call_id = 200, "OK", "x@127.0.0.1"
    call.details, call.sequence = {"a": [1]}, 3
    call.dialogs = {"0": {"call_id": "x"}, "1": {"call_id": "\udfff"}}


@pytest.mark.parametrize("beside", ["nothing", "an ended call", "a recorded call"])
async def test_every_field_of_an_active_call_comes_back(
    storage: Storage, account: Account, beside: str
) -> None:
    """Whatever else is written in the same transaction."""
    call, other = new_record(account.account_sid), new_record(account.account_sid)
    await asyncio.gather(storage.calls.insert(call), storage.calls.insert(other, reserve_paise=300))
    make_active(call)
    storage.calls.update(call)
    if beside == "an ended call":
        other.status, other.ended_at = CallStatus.COMPLETED, utc_now()
        storage.calls.finish(other, charge_paise=60)
    elif beside == "a recorded call":
        make_active(other)
        other.recording_status = "in-progress"
        storage.calls.update(other)
    await storage.calls.flush()
    assert (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items == [other, call]
    call.answered_by, call.stream, call.details, call.dialogs = None, None, None, {}
    storage.calls.update(call)
    await storage.calls.flush()
    assert (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items == [other, call]


async def test_hostile_text_does_not_keep_a_record_from_being_written(
    storage: Storage, account: Account
) -> None:
    call = new_record(account.account_sid, sip_call_id="a\0b", tag="\ud800x")
    await storage.calls.insert(call)
    call.sip_reason = "Not\0 Found \udfff"
    storage.calls.update(call)
    await storage.calls.flush()
    (found,) = (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items
    assert (found.sip_call_id, found.tag, found.sip_reason) == ("ab", "?x", "Not Found ?")


async def test_the_insert_is_durable_with_its_reserve(storage: Storage, url: str, account: Account) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call, reserve_paise=300)
    other = await Storage.open(url, deliver=False, secrets=SECRETS)
    assert [item.call_sid for item in await other.calls.unfinished()] == [call.call_sid]
    assert [item.amount_paise for item in await other.wallet.open_reserves()] == [300]
    await other.close()


async def test_an_empty_wallet_leaves_no_record(storage: Storage, account: Account) -> None:
    call = new_record(account.account_sid)
    with pytest.raises(InsufficientBalance):
        await storage.calls.insert(call, reserve_paise=100_001)
    with pytest.raises(NotFound):
        await storage.calls.get(account.account_sid, call.call_sid)
    assert await storage.calls.unfinished() == []
    assert await storage.wallet.open_reserves() == []


async def test_the_end_settles_and_is_charged_once(storage: Storage, account: Account) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call, reserve_paise=300)
    for charge in (60, 120):
        call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
        storage.calls.finish(call, charge_paise=charge)
        await storage.calls.flush()
    assert await storage.wallet.balance(account.account_sid) == 99_940
    assert call.price_paise == 60
    assert await storage.calls.unfinished() == []
    (found,) = (await storage.calls.list(account.account_sid, CallFilter(), 1, 20)).items
    assert found.price_paise == 60


async def test_what_is_read_of_the_wallet_includes_calls_that_have_ended(
    storage: Storage, account: Account
) -> None:
    for charge in (60, 120):
        call = new_record(account.account_sid)
        await storage.calls.insert(call, reserve_paise=300)
        call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
        storage.calls.finish(call, charge_paise=charge)
        assert await storage.wallet.open_reserves() == []
    assert await storage.wallet.balance(account.account_sid) == 99_820
    assert (await storage.wallet.ledger(account.account_sid)).total == 3


async def test_a_call_without_a_reserve_is_charged_too(storage: Storage, account: Account) -> None:
    call = new_record(account.account_sid, direction="inbound")
    await storage.calls.insert(call)
    call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
    storage.calls.finish(call, charge_paise=40)
    storage.calls.finish(call, charge_paise=40)
    await storage.calls.flush()
    assert await storage.wallet.balance(account.account_sid) == 99_960


async def test_the_price_is_what_the_wallet_could_give(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Poor", balance_paise=100)
    call = new_record(account.account_sid)
    await storage.calls.insert(call, reserve_paise=60)
    call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
    storage.calls.finish(call, charge_paise=600)
    await storage.calls.flush()
    assert call.price_paise == 100
    assert await storage.wallet.balance(account.account_sid) == 0


async def test_updates_are_seen_before_they_are_written(storage: Storage, account: Account) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call)
    call.status = CallStatus.RINGING
    storage.calls.update(call)
    assert (await storage.calls.get(account.account_sid, call.call_sid)).status is CallStatus.RINGING
    page = await storage.calls.list(account.account_sid, CallFilter(status=CallStatus.RINGING), 1, 20)
    assert page.total == 1


async def test_a_record_is_never_written_older_than_it_was_handed_over(
    storage: Storage, url: str, account: Account
) -> None:
    """Updates, ends and flushes of many calls, all at once; the last word counts for each."""
    calls = [new_record(account.account_sid) for _ in range(40)]

    async def live(call: CallRecord) -> None:
        await storage.calls.insert(call, reserve_paise=100)
        for status in (CallStatus.INITIATED, CallStatus.RINGING, CallStatus.IN_PROGRESS):
            call.status = status
            storage.calls.update(call)
            await asyncio.sleep(0)
            if status is CallStatus.RINGING:
                await storage.calls.flush()
        call.status, call.ended_at, call.duration_sec = CallStatus.COMPLETED, utc_now(), 7
        storage.calls.finish(call, charge_paise=60)

    await asyncio.gather(*map(live, calls))
    await storage.calls.flush()
    other = await Storage.open(url, deliver=False, secrets=SECRETS)
    page = await other.calls.list(account.account_sid, CallFilter(), 1, 100)
    assert page.total == 40
    assert {(item.status, item.duration_sec, item.price_paise) for item in page.items} == {
        (CallStatus.COMPLETED, 7, 60)
    }
    assert await other.calls.unfinished() == []
    assert await other.wallet.balance(account.account_sid) == 100_000 - 40 * 60
    await other.close()


async def test_one_record_that_cannot_be_stored_spoils_no_other(
    storage: Storage, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    calls = [new_record(account.account_sid) for _ in range(4)]
    for call in calls:
        await storage.calls.insert(call, reserve_paise=300)
        call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
    calls[1].hangup_cause_code = 2**70  # No database takes it.
    calls[2].answered_at = datetime(2026, 8, 1)  # Not aware.
    for call in calls:
        storage.calls.finish(call, charge_paise=60, events=[make_event(call, "call.completed")])
    for _ in range(3):
        await storage.calls.flush()
    assert await storage.wallet.balance(account.account_sid) == 100_000 - 4 * 60
    assert await storage.wallet.open_reserves() == []
    page = await storage.calls.list(account.account_sid, CallFilter(status=CallStatus.COMPLETED), 1, 20)
    assert {item.call_sid for item in page.items} == {calls[0].call_sid, calls[3].call_sid}
    assert {item.price_paise for item in page.items} == {60}
    stored = [
        await storage.database.read(partial(deliveries.of_call, call_sid=call.call_sid)) for call in calls
    ]
    assert [len(item) for item in stored] == [1, 1, 1, 1]
    assert "a row cannot be written and is lost" in caplog.text


async def test_another_accounts_call_is_forbidden(
    storage: Storage, account: Account, stranger: Account
) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call)
    with pytest.raises(Forbidden):
        await storage.calls.get(stranger.account_sid, call.call_sid)
    with pytest.raises(NotFound):
        await storage.calls.get(account.account_sid, new_id())
    assert (await storage.calls.list(stranger.account_sid, CallFilter(), 1, 20)).items == []


async def test_lists_are_filtered_and_paged_newest_first(storage: Storage, account: Account) -> None:
    start = datetime(2026, 8, 1, tzinfo=UTC)
    calls = [
        new_record(
            account.account_sid,
            created_at=start + timedelta(hours=hour),
            direction="inbound" if hour % 2 else "outbound",
            to=f"+9198000000{hour:02d}",
            status=CallStatus.BUSY if hour < 3 else CallStatus.COMPLETED,
        )
        for hour in range(10)
    ]
    for call in calls:
        await storage.calls.insert(call)

    async def found(page: int = 1, per_page: int = 20, **filters: object) -> list[int]:
        query = CallFilter(**filters)  # type: ignore[arg-type]
        result = await storage.calls.list(account.account_sid, query, page, per_page)
        return [item.created_at.hour for item in result.items]

    assert await found() == list(range(9, -1, -1))
    assert await found(page=2, per_page=4) == [5, 4, 3, 2]
    assert await found(page=4, per_page=4) == []
    assert await found(direction="inbound") == [9, 7, 5, 3, 1]
    assert await found(status=CallStatus.BUSY) == [2, 1, 0]
    assert await found(to="+919800000007") == [7]
    assert await found(from_="+910000000000") == []
    assert await found(start=start + timedelta(hours=2), end=start + timedelta(hours=4)) == [3, 2]
    page = await storage.calls.list(account.account_sid, CallFilter(), 1, 4)
    assert (page.total, page.total_pages) == (10, 3)


async def test_only_what_this_node_left_is_unfinished(storage: Storage, url: str, account: Account) -> None:
    mine, theirs = new_record(account.account_sid), new_record(account.account_sid)
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    await storage.calls.insert(mine)
    await other.calls.insert(theirs)
    assert [item.call_sid for item in await storage.calls.unfinished()] == [mine.call_sid]
    assert [item.call_sid for item in await other.calls.unfinished()] == [theirs.call_sid]
    await other.close()


async def test_events_are_in_the_transaction_of_their_change(storage: Storage, account: Account) -> None:
    call = new_record(account.account_sid)
    events = [make_event(call, name) for name in ("call.initiated", "call.ringing", "call.completed")]
    await storage.calls.insert(call, events=events[:1])
    storage.calls.update(call, events=events[1:2])
    call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
    storage.calls.finish(call, events=events[2:])
    await storage.calls.flush()
    stored = await storage.database.read(lambda connection: deliveries.of_call(connection, call.call_sid))
    assert [item.event for item in stored] == events
    assert {item.status for item in stored} == {"pending"}


async def test_a_cancelled_insert_leaves_nothing(storage: Storage, account: Account) -> None:
    """Each insert is cancelled at another moment: before, while and after it is written."""
    calls = [new_record(account.account_sid) for _ in range(30)]
    for number, call in enumerate(calls):
        event = make_event(call, "call.initiated")
        task = asyncio.create_task(storage.calls.insert(call, reserve_paise=100, events=[event]))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            storage.calls.finish(call)
    for _ in range(2):
        await storage.calls.flush()
    assert await storage.wallet.open_reserves() == []
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 0
    listed = (await storage.calls.list(account.account_sid, CallFilter(), 1, 100)).items
    assert all(item.price_paise == 0 for item in listed)
