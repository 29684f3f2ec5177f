"""Subscriptions of the account of the API tests, with deliveries in their log."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from callcontrol.models import WebhookEvent
from callcontrol.webhooks.aio.client import Answer
from callcontrol.webhooks.store import deliveries, subscriptions
from callcontrol.webhooks.subscriptions import ServiceEvents, Subscription, new_subscription
from tests.support.api_facts import ACCOUNT, CALL_SID, MOMENT
from tests.support.api_stage import ApiStage

SUBSCRIPTION_ID = "eeeeeeee-9999-4999-8999-999999999999"
DELIVERY_ID = "ffffffff-9999-4999-8999-999999999999"
PENDING_ID = "ffffffff-8888-4888-8888-888888888888"
SECRET = "a secret of the customer"


async def add_subscription(stage: ApiStage, events: ServiceEvents, url: str) -> Subscription:
    """Subscribe a URL to the first event of a service."""
    values = {"url": url, "secret": SECRET, "event_types": [events.names[0]]}
    made = new_subscription(SUBSCRIPTION_ID, ACCOUNT, events, values, MOMENT)
    return await stage.write(partial(subscriptions.insert, subscription=made, numbered=events.numbered))


async def add_deliveries(
    stage: ApiStage, subscription_id: str, event: str, *, failed_at: datetime = MOMENT, failed: int = 1
) -> None:
    """Add a pending delivery that belongs to no call, and then some that failed, `DELIVERY_ID` the last."""
    rows = [_row(subscription_id, event, PENDING_ID, MOMENT, None)]
    for number in range(failed, 0, -1):
        delivery_id = DELIVERY_ID if number == 1 else f"{PENDING_ID[:-2]}{number:02}"
        row = _row(subscription_id, event, delivery_id, failed_at, CALL_SID)
        failure = {"status": "failed", "attempts": 8, "response_code": 500, "last_error": "answered 500"}
        rows.append({**row, **failure})
    await stage.write(partial(deliveries.insert, rows=rows))


def answer_webhooks(stage: ApiStage, answer: Answer) -> None:
    """Make every receiver of webhooks answer the same."""

    async def attempt(*_: object) -> Answer:
        return answer

    setattr(stage.storage.outbox, "attempt", attempt)  # noqa: B010 - mypy allows no assignment to a method.


def _row(
    subscription_id: str, event: str, delivery_id: str, at: datetime, call_sid: str | None
) -> dict[str, Any]:
    return deliveries.row_of(
        WebhookEvent(
            event_id=delivery_id,
            account_sid=ACCOUNT,
            event=event,
            url="https://app.example.com/",
            body=b"{}",
            created_at=at,
            call_sid=call_sid,
            delivery_id=delivery_id,
            subscription_id=subscription_id,
        )
    )
