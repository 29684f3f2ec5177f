"""Deliveries to subscriptions: with the secret, the URL and the state that each has at the time."""

import asyncio
import hashlib
import hmac
import json
from typing import Any

import pytest
import sqlalchemy as sa
from standardwebhooks import Webhook, WebhookVerificationError

from callcontrol.aio.tokens import utc_now
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.models import SubscribedEvent
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import SubscribedService, Subscription
from tests.support.subscribed import SERVICE_EVENTS
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import (
    ACCOUNT_SID,
    SECRET,
    SLOW,
    Gate,
    Received,
    Receiver,
    Stage,
    fast,
    statuses,
)


def signed_with(secret: str, got: Received) -> bool:
    expected = hmac.new(secret.encode(), got.body, hashlib.sha256).hexdigest()
    return got.headers["X-Service-Signature"] == f"sha256={expected}"


async def is_active(stage: Stage, subscription: Subscription) -> bool:
    def read(connection: Any) -> Any:
        wanted = subscriptions.c.subscription_id == subscription.subscription_id
        return connection.execute(sa.select(subscriptions.c.is_active).where(wanted)).scalar_one()

    return bool(await stage.database.read(read))


async def test_a_subscription_signs_with_its_own_secret(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    await stage.subscribe(receiver.url("/hook"), secret="whsec_c2VjcmV0IG9mIGl0cyBvd24=")
    delivery_id = await stage.broadcast()
    await stage.ended(delivery_id)
    (got,) = receiver.requests
    assert signed_with("whsec_c2VjcmV0IG9mIGl0cyBvd24=", got)
    verified = Webhook("whsec_c2VjcmV0IG9mIGl0cyBvd24=").verify(got.body, got.headers)
    assert verified == {"id": delivery_id, "event": "call.missed", "data": {"call_sid": "call-1"}}
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(got.body, got.headers)


async def test_without_a_secret_there_are_ids_and_no_signature(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    await stage.subscribe(receiver.url("/hook"))
    delivery_id = await stage.broadcast()
    await stage.ended(delivery_id)
    headers = receiver.requests[0].headers
    assert headers["webhook-id"] == headers["X-Service-Delivery"] == delivery_id
    assert headers["X-Service-Timestamp"] == headers["webhook-timestamp"]
    assert "X-Service-Signature" not in headers
    assert "webhook-signature" not in headers


async def test_masked_calls_are_signed_in_any_case(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    await stage.subscribe(receiver.url("/hook"), service="masking")
    event = stage.event(receiver.url("/hook"), subscription_id="sub-1")
    await stage.publish(event)
    await stage.ended(event.delivery_id)
    assert signed_with(SECRET, receiver.requests[0])


@pytest.mark.parametrize(
    ("service", "event", "fields"),
    [
        ("assistant", "call.completed", {"data": {"call_id": "call-1", "status": "completed"}}),
        ("messaging", "message.delivered", {"data": {"messageId": 7}}),
    ],
)
async def test_events_of_every_service_go_to_its_own_subscriptions(
    stage: Stage, receiver: Receiver, service: SubscribedService, event: str, fields: dict[str, Any]
) -> None:
    assert event in SERVICE_EVENTS[service].names
    await stage.start()
    wanted = {"service": service, "event_types": (event,)}
    await stage.subscribe(receiver.url("/own"), name="own", secret="0wn-s3cret", **wanted)
    await stage.subscribe(receiver.url("/paused"), name="paused", is_active=False, **wanted)
    await stage.subscribe(receiver.url("/calls"), name="calls")
    # Events that are of no call are ordered among nothing, and delivered all the same.
    published = SubscribedEvent("event-1", ACCOUNT_SID, service, event, {"event": event, **fields}, utc_now())
    assert await stage.publish_all(published) == 1
    delivery_id = fan_out.delivery_id_of("event-1", "own")
    (row,) = await stage.ended(delivery_id)
    (got,) = receiver.requests
    assert (row.status, got.path, got.headers["X-Service-Event"]) == ("delivered", "/own", event)
    assert json.loads(got.body) == {"id": delivery_id, "event": event, **fields}
    assert signed_with("0wn-s3cret", got)


async def test_a_new_secret_signs_the_next_attempt(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500, 200)
    await stage.start(fast(offsets_s=(0.0, 0.3, 0.6)))
    made = await stage.subscribe(receiver.url("/hook"), secret="the first secret")
    delivery_id = await stage.broadcast()
    await until(lambda: bool(receiver.requests))
    await stage.change(made, secret="the second secret")
    await stage.ended(delivery_id)
    first, second = receiver.requests
    assert signed_with("the first secret", first)
    assert signed_with("the second secret", second)
    assert first.delivery_id == second.delivery_id == delivery_id


async def test_what_is_gone_is_disabled(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    await stage.start(fast(per_destination=1))
    made = await stage.subscribe(receiver.url("/hook"))
    ids = [await stage.broadcast(f"call-{number}") for number in range(4)]
    await until(lambda: gate.waiting == 1)
    receiver.answers["/hook"] = statuses(410)
    gate.status = 410
    gate.open()
    rows = await stage.ended(*ids)
    assert {row.status for row in rows} == {"failed"}
    assert sorted(row.response_code for row in rows) == [0, 0, 0, 410]
    told = sorted(row.last_error or "" for row in rows)
    assert told[0] == "answered 410"
    assert set(told[1:]) <= {"the webhook is paused", "the webhook is paused: its URL answered 410"}
    assert len(receiver.requests) == 1
    assert not await is_active(stage, made)
    # It is not listed any more: nothing is queued for it.
    late = await stage.broadcast("call-9")
    assert late not in await stage.rows()


async def test_a_query_from_before_the_410_does_not_revive_it(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    await stage.start(fast(per_destination=1))
    await stage.subscribe(receiver.url("/hook"))
    ids = [await stage.broadcast("call-1")]
    await until(lambda: gate.waiting == 1)

    commit: Any = stage.writer.commit
    judged = asyncio.Event()
    late: list[Any] = []

    async def commit_late(operation: Any, **options: Any) -> Any:
        result = await commit(operation, **options)
        if "undo" in options and result[0]:
            late.append(result)
            await judged.wait()
        return result

    monkeypatch.setattr(stage.writer, "commit", commit_late)
    ids += [await stage.broadcast(f"call-{number}") for number in (2, 3)]
    await until(lambda: len(late) > 0)
    gate.status = 410
    gate.open()
    await until(lambda: stage.outbox.stats.failed == 1)
    judged.set()
    assert {row.status for row in await stage.ended(*ids)} == {"failed"}
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_nothing_else_disables_a_subscription(stage: Stage, receiver: Receiver, status: int) -> None:
    receiver.answers["/hook"] = statuses(status)
    await stage.start()
    made = await stage.subscribe(receiver.url("/hook"))
    (row,) = await stage.ended(await stage.broadcast())
    assert (row.status, row.attempts, row.response_code) == ("failed", 8, status)
    assert await is_active(stage, made)


async def test_what_is_held_in_memory_is_not_sent_to_a_paused_one(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    outbox = await stage.start(fast(per_destination=1))
    made = await stage.subscribe(receiver.url("/hook"))
    ids = [await stage.broadcast(f"call-{number}") for number in range(4)]
    await until(lambda: gate.waiting == 1 and outbox.held == 4)
    # Another process pauses it, and its transaction misses what had not been committed by then.
    await stage.change(made, is_active=False)
    outbox.changed()
    await until(lambda: outbox._checked_at is not None)
    gate.open()
    rows = await stage.ended(*ids)
    assert sorted(row.status for row in rows) == ["delivered", "failed", "failed", "failed"]
    assert {row.last_error for row in rows if row.status == "failed"} == {"the webhook is paused"}
    assert len(receiver.requests) == 1


async def test_what_is_held_in_memory_goes_to_the_new_url(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    receiver.answers["/old"] = gate
    outbox = await stage.start(fast(per_destination=1))
    made = await stage.subscribe(receiver.url("/old"))
    ids = [await stage.broadcast(f"call-{number}") for number in range(4)]
    await until(lambda: gate.waiting == 1 and outbox.held == 4)
    await stage.change(made, url=receiver.url("/new"))
    outbox.changed()
    await until(lambda: outbox._checked_at is not None)
    gate.open()
    rows = await stage.ended(*ids)
    assert {row.status for row in rows} == {"delivered"}
    assert {row.attempts for row in rows} == {1}
    assert len(receiver.ids("/old")) == 1
    assert len(receiver.ids("/new")) == 3


async def test_what_arrived_while_its_subscription_was_paused_is_told(
    stage: Stage, receiver: Receiver
) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    await stage.start()
    await stage.subscribe(receiver.url("/hook"))
    delivery_id = await stage.broadcast()
    await until(lambda: gate.waiting == 1)
    await stage.writer.commit(lambda connection: fan_out.pause(connection, "sub-1", "paused"))
    gate.open()
    async with asyncio.timeout(PATIENCE_S):
        row = await stage.row(delivery_id)
        while row.status != "delivered":
            row = await stage.row(delivery_id)
    assert row.attempts == 1


async def test_a_trial_is_sent_once_and_kept_nowhere(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500)
    outbox = await stage.start(SLOW)
    event = stage.event(receiver.url("/hook"), body=json.dumps({"event": "webhook.test"}).encode())
    answer = await outbox.attempt(event, ["a secret"])
    assert (answer.status, answer.problem) == (500, "answered 500")
    assert signed_with("a secret", receiver.requests[0])
    assert await stage.rows() == {}
