"""Webhook subscriptions over a real database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.subscriptions import subscriptions as table
from callcontrol.database.tables.webhooks import deliveries as outbox_rows
from callcontrol.errors import Conflict, NotFound, ValidationFailed
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.masking.calls import masked_details
from callcontrol.masking.settings import EVENTS
from callcontrol.models import Account, CallRecord, CallStatus, Delivery, SubscribedEvent
from callcontrol.webhooks.aio import subscriptions as service_module
from callcontrol.webhooks.aio.subscriptions import SubscriptionService
from callcontrol.webhooks.store import deliveries
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import LoggedDelivery, Replayed, Subscription
from tests.support.domain import new_record

# Addresses instead of names: nothing is resolved.
URL = "https://1.1.1.1/missed"
OTHER_URL = "https://1.0.0.1/missed"
VALUES: dict[str, Any] = {"url": URL, "secret": "t0p-s3cret", "event_types": ["call.missed"]}


async def subscribe(storage: Storage, account: Account, **values: Any) -> Subscription:
    return await storage.subscriptions.create(account.account_sid, VALUES | values)


async def miss(storage: Storage, account: Account, **values: Any) -> CallRecord:
    """An inbound call that rings and ends unanswered, as call control writes it."""
    now = utc_now()
    record = new_record(account.account_sid, "inbound", created_at=now, status=CallStatus.RINGING)
    record.product, record.details = values.get("product"), values.get("details")
    await storage.calls.insert(record)
    record.ringing_at, record.ended_at = now, now + timedelta(seconds=7)
    record.status, record.hangup_cause, record.hangup_source = CallStatus.NO_ANSWER, "NO_ANSWER", "system"
    for name, value in values.items():
        setattr(record, name, value)
    storage.calls.finish(record)
    await storage.calls.flush()
    return record


async def log(storage: Storage, subscription: Subscription, limit: int = 50) -> Sequence[LoggedDelivery]:
    sid = subscription.account_sid
    return await storage.subscriptions.deliveries(sid, subscription.subscription_id, limit)


async def fail(storage: Storage, created_at: Sequence[datetime], subscription: Subscription) -> list[str]:
    """Deliveries of a subscription that were given up, by when they were created."""

    def write(connection: Any) -> list[str]:
        ids = []
        for moment in created_at:
            event = SubscribedEvent(new_id(), subscription.account_sid, "calls", "call.missed", {}, moment)
            fan_out.publish(connection, [event])
            ids.append(fan_out.delivery_id_of(event.event_id, subscription.subscription_id))
        for row in connection.execute(sa.select(outbox_rows).where(outbox_rows.c.delivery_id.in_(ids))).all():
            lost = Delivery(deliveries.to_delivery(row).event, utc_now(), "failed", 8, 500, "answered 500")
            deliveries.record_outcomes(connection, [deliveries.outcome_row(lost)])
        return ids

    return await storage.writer.commit(write)


async def test_a_subscription_is_what_it_was_made_of(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    made = await subscribe(storage, account)
    assert await storage.subscriptions.get(sid, made.subscription_id) == made
    second = await subscribe(storage, account, secret=None)
    assert await storage.subscriptions.list(sid) == [second, made]
    changed = await storage.subscriptions.update(sid, made.subscription_id, {"url": OTHER_URL})
    assert changed == replace(made, url=OTHER_URL, updated_at=changed.updated_at)
    assert changed.updated_at > made.updated_at
    await storage.subscriptions.delete(sid, second.subscription_id)
    assert await storage.subscriptions.list(sid) == [changed]


async def test_the_secret_is_sealed_and_can_be_taken_away(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    stored = await storage.database.read(
        lambda connection: connection.execute(sa.select(table.c.secret)).scalar_one()
    )
    assert stored and "s3cret" not in stored
    bare = await storage.subscriptions.update(account.account_sid, made.subscription_id, {"secret": None})
    assert not bare.has_secret


async def test_what_is_anothers_is_not_there(storage: Storage, account: Account, stranger: Account) -> None:
    made = await subscribe(storage, account)
    (lost,) = await fail(storage, [utc_now()], made)
    of_masking = SubscriptionService(
        storage.database, storage.writer, storage.destinations, storage.outbox, EVENTS
    )
    for service, sid in (
        (storage.subscriptions, stranger.account_sid),
        (of_masking, account.account_sid),
    ):
        for call in (
            service.get(sid, made.subscription_id),
            service.update(sid, made.subscription_id, {"is_active": False}),
            service.delete(sid, made.subscription_id),
            service.test(sid, made.subscription_id),
            service.deliveries(sid, made.subscription_id, 50),
            service.replay(sid, made.subscription_id, lost),
            service.replay_failed(sid, made.subscription_id),
        ):
            with pytest.raises(NotFound):
                await call
        assert await service.list(sid) == []
    second = await subscribe(storage, account)
    with pytest.raises(NotFound):
        await storage.subscriptions.replay(account.account_sid, second.subscription_id, lost)
    assert [delivery.status for delivery in await log(storage, made)] == ["failed"]


async def test_an_account_has_a_hundred_at_most(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch, stranger: Account
) -> None:
    monkeypatch.setattr(service_module, "_MAX_SUBSCRIPTIONS", 2)
    await subscribe(storage, account)
    await subscribe(storage, account)
    with pytest.raises(Conflict):
        await subscribe(storage, account)
    await subscribe(storage, stranger)


@pytest.mark.parametrize(
    "inside",
    ["http://1.1.1.1/x", "https://127.0.0.1/x", "https://0x7f.1/", "https://[::1]/", "https://localhost/"],
)
async def test_a_url_that_leads_inside_is_refused_with_everything_else(
    storage: Storage, account: Account, inside: str
) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        await subscribe(storage, account, url=inside, event_types=[])
    assert [error.field for error in refusal.value.errors] == ["event_types", "url"]
    made = await subscribe(storage, account)
    with pytest.raises(ValidationFailed):
        await storage.subscriptions.update(account.account_sid, made.subscription_id, {"url": inside})
    assert await storage.subscriptions.list(account.account_sid) == [made]


async def test_a_missed_call_goes_to_all_who_want_it(
    storage: Storage, account: Account, stranger: Account
) -> None:
    first, second = await subscribe(storage, account), await subscribe(storage, account)
    paused = await subscribe(storage, account)
    await storage.subscriptions.update(account.account_sid, paused.subscription_id, {"is_active": False})
    elsewhere = await subscribe(storage, stranger)
    call = await miss(storage, account)
    ids = set()
    for subscription in (first, second):
        (delivery,) = await log(storage, subscription)
        assert (delivery.event_type, delivery.call_sid) == ("call.missed", call.call_sid)
        assert (delivery.status, delivery.attempts, delivery.max_attempts) == ("pending", 0, 8)
        assert (delivery.response_code, delivery.error, delivery.delivered_at) == (0, None, None)
        ids.add(delivery.delivery_id)
    assert len(ids) == 2
    assert not await log(storage, paused) and not await log(storage, elsewhere)


async def test_a_missed_call_to_a_masked_number_is_told_too(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    details = masked_details(
        direction="inbound",
        caller_number="+919811100000",
        target_number="+919811100001",
        masked_number="+918047491899",
    )
    call = await miss(storage, account, product=MASKING, details=details)
    (delivery,) = await log(storage, made)
    assert delivery.call_sid == call.call_sid


async def test_an_end_that_is_written_twice_is_told_once(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    call = await miss(storage, account)
    storage.calls.finish(call)
    await storage.calls.flush()
    assert len(await log(storage, made)) == 1


@pytest.mark.parametrize("values", [{"answered_at": utc_now()}, {"direction": "outbound"}])
async def test_nothing_is_told_of_calls_that_were_not_missed(
    storage: Storage, account: Account, values: dict[str, Any]
) -> None:
    made = await subscribe(storage, account)
    await miss(storage, account, **values)
    assert not await log(storage, made)


async def test_a_pause_fails_what_waits_and_queues_nothing(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    made = await subscribe(storage, account)
    await miss(storage, account)
    await storage.subscriptions.update(sid, made.subscription_id, {"is_active": False})
    await miss(storage, account)
    (delivery,) = await log(storage, made)
    assert (delivery.status, delivery.error) == ("failed", "the subscription was paused")
    for replay in (
        storage.subscriptions.replay(sid, made.subscription_id, delivery.delivery_id),
        storage.subscriptions.replay_failed(sid, made.subscription_id),
    ):
        with pytest.raises(Conflict):
            await replay
    await storage.subscriptions.update(sid, made.subscription_id, {"is_active": True})
    assert await storage.subscriptions.replay_failed(sid, made.subscription_id) == Replayed(1)
    (delivery,) = await log(storage, made)
    assert (delivery.status, delivery.error) == ("pending", None)


async def test_what_waits_follows_the_url_and_goes_with_the_subscription(
    storage: Storage, account: Account
) -> None:
    made = await subscribe(storage, account)
    call = await miss(storage, account)
    await storage.subscriptions.update(account.account_sid, made.subscription_id, {"url": OTHER_URL})
    waiting = await storage.database.read(lambda connection: deliveries.of_call(connection, call.call_sid))
    assert [delivery.event.url for delivery in waiting] == [OTHER_URL]
    await storage.subscriptions.delete(account.account_sid, made.subscription_id)
    assert not await storage.database.read(lambda connection: deliveries.of_call(connection, call.call_sid))


async def test_the_log_is_newest_first_and_cut_off(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    calls = [await miss(storage, account) for _ in range(3)]
    newest = [call.call_sid for call in reversed(calls)]
    assert [delivery.call_sid for delivery in await log(storage, made)] == newest
    assert [delivery.call_sid for delivery in await log(storage, made, 2)] == newest[:2]


async def test_a_delivery_is_made_again_under_its_own_id(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    lost, other = await fail(storage, [utc_now(), utc_now()], made)
    await storage.subscriptions.update(account.account_sid, made.subscription_id, {"url": OTHER_URL})
    replayed = await storage.subscriptions.replay(account.account_sid, made.subscription_id, lost)
    assert replayed == Replayed(1)
    found = {delivery.delivery_id: delivery for delivery in await log(storage, made)}
    again = found[lost]
    assert (again.status, again.attempts, again.response_code, again.error) == ("pending", 0, 0, None)
    assert again.next_attempt_at is not None
    assert found[other].status == "failed"
    with pytest.raises(NotFound):
        await storage.subscriptions.replay(account.account_sid, made.subscription_id, new_id())


async def test_a_delivery_that_is_being_made_is_left_alone(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    await miss(storage, account)
    now = utc_now() + timedelta(seconds=1)
    (held,) = await storage.writer.commit(
        lambda connection: deliveries.take_due(
            connection, deliveries.Lease("here", now, now + timedelta(minutes=1), 9)
        )
    )
    replayed = await storage.subscriptions.replay(
        account.account_sid, made.subscription_id, held.event.delivery_id
    )
    assert replayed == Replayed(0)


async def test_what_waits_for_its_next_attempt_is_made_at_once(storage: Storage, account: Account) -> None:
    made = await subscribe(storage, account)
    call = await miss(storage, account)
    (waiting,) = await storage.database.read(lambda connection: deliveries.of_call(connection, call.call_sid))
    later = utc_now() + timedelta(hours=6)
    row = deliveries.outcome_row(replace(waiting, attempts=6, next_attempt_at=later, response_code=503))
    await storage.writer.commit(lambda connection: deliveries.record_outcomes(connection, [row]))
    (delivery,) = await log(storage, made)
    assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("retrying", 6, later)
    await storage.subscriptions.replay(account.account_sid, made.subscription_id, delivery.delivery_id)
    (delivery,) = await log(storage, made)
    assert (delivery.status, delivery.attempts) == ("pending", 0)
    assert delivery.next_attempt_at is not None and delivery.next_attempt_at < later


async def test_a_bulk_replay_takes_the_failed_ones_of_its_window(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    made, other = await subscribe(storage, account), await subscribe(storage, account)
    noon = utc_now().replace(microsecond=0) - timedelta(days=1)
    hours = [noon + timedelta(hours=number) for number in range(5)]
    ids = await fail(storage, hours, made)
    replayed = await storage.subscriptions.replay_failed(sid, made.subscription_id, hours[1], hours[3])
    assert replayed == Replayed(2)
    status = {delivery.delivery_id: delivery.status for delivery in await log(storage, made)}
    assert [status[one] for one in ids] == ["failed", "pending", "pending", "failed", "failed"]
    assert await storage.subscriptions.replay_failed(sid, made.subscription_id, hours[4]) == Replayed(1)
    assert await storage.subscriptions.replay_failed(sid, made.subscription_id, None, noon) == Replayed(0)
    assert all(delivery.status != "delivered" for delivery in await log(storage, other))
    assert await storage.subscriptions.replay_failed(sid, made.subscription_id) == Replayed(2)


@pytest.mark.parametrize("at_once", [1, 2, 250])
async def test_more_than_one_request_replays_is_said_to_be_left(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(service_module, "MAX_REPLAYED", 2)
    monkeypatch.setattr(service_module, "_REPLAYED_AT_ONCE", at_once)
    made = await subscribe(storage, account)
    noon = utc_now() - timedelta(days=1)
    ids = await fail(storage, [noon + timedelta(hours=number) for number in (2, 0, 1)], made)
    sid, subscription_id = account.account_sid, made.subscription_id
    assert await storage.subscriptions.replay_failed(sid, subscription_id) == Replayed(2, truncated=True)
    status = {delivery.delivery_id: delivery.status for delivery in await log(storage, made)}
    assert [status[one] for one in ids] == ["failed", "pending", "pending"], "the oldest go first"
    assert await storage.subscriptions.replay_failed(sid, subscription_id) == Replayed(1)
