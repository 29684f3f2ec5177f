"""Webhook subscriptions, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from callcontrol.errors import NotFound
from callcontrol.webhooks.subscriptions import (
    LoggedDelivery,
    Replayed,
    SubscribedService,
    Subscription,
    Trial,
    changed_subscription,
    new_subscription,
)
from tests.support.api_facts import ACCOUNT, CALL_SID, MOMENT
from tests.support.subscribed import SERVICE_EVENTS

SUBSCRIPTION_ID = "eeeeeeee-9999-4999-8999-999999999999"
DELIVERY_ID = "ffffffff-9999-4999-8999-999999999999"
SECRET = "a secret of the customer"


class FakeSubscriptions:
    """One subscription, with one delivery that has failed and one that is of no call."""

    def __init__(self, service: SubscribedService = "calls") -> None:
        self.events = SERVICE_EVENTS[service]
        values = {
            "url": "https://app.example.com/missed",
            "secret": SECRET,
            "event_types": [self.events.names[0]],
        }
        self.held = self._numbered(new_subscription(SUBSCRIPTION_ID, ACCOUNT, self.events, values, MOMENT))
        self.trial = Trial(204)
        self.asked: list[Any] = []

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Subscription:
        self.asked.append(values)
        if self.events.numbered:
            values = {"secret": SECRET, **values}
        return self._numbered(new_subscription(SUBSCRIPTION_ID, account_sid, self.events, values, MOMENT))

    async def get(self, account_sid: str, subscription_id: str) -> Subscription:
        self._find(subscription_id)
        return self.held

    async def numbered(self, account_sid: str, number: int) -> Subscription:
        if number != self.held.number:
            raise NotFound("There is no such webhook endpoint.")
        return self.held

    async def list(self, account_sid: str) -> list[Subscription]:
        return [self.held]

    async def update(self, account_sid: str, subscription_id: str, values: Mapping[str, Any]) -> Subscription:
        self._find(subscription_id)
        self.asked.append(values)
        return changed_subscription(self.held, self.events, values, MOMENT)

    async def delete(self, account_sid: str, subscription_id: str) -> None:
        self._find(subscription_id)
        self.asked.append(subscription_id)

    async def test(self, account_sid: str, subscription_id: str) -> Trial:
        self._find(subscription_id)
        return self.trial

    async def deliveries(
        self, account_sid: str, subscription_id: str, limit: int
    ) -> Sequence[LoggedDelivery]:
        self._find(subscription_id)
        self.asked.append(limit)
        return [
            LoggedDelivery(
                delivery_id=DELIVERY_ID,
                subscription_id=SUBSCRIPTION_ID,
                event_type=self.events.names[0],
                call_sid=CALL_SID,
                status="failed",
                attempts=8,
                max_attempts=8,
                response_code=500,
                error="answered 500",
                created_at=MOMENT,
                next_attempt_at=None,
                delivered_at=None,
            ),
            LoggedDelivery(
                delivery_id=SUBSCRIPTION_ID,
                subscription_id=SUBSCRIPTION_ID,
                event_type=self.events.names[0],
                call_sid=None,
                status="pending",
                attempts=0,
                max_attempts=8,
                response_code=0,
                error=None,
                created_at=MOMENT,
                next_attempt_at=MOMENT,
                delivered_at=None,
            ),
        ]

    async def replay(self, account_sid: str, subscription_id: str, delivery_id: str) -> Replayed:
        self._find(subscription_id)
        if delivery_id != DELIVERY_ID:
            raise NotFound("There is no such delivery.")
        return Replayed(1)

    async def replay_failed(
        self, account_sid: str, subscription_id: str, since: datetime | None, until: datetime | None
    ) -> Replayed:
        self._find(subscription_id)
        self.asked.append((since, until))
        return Replayed(10_000, truncated=True)

    def _numbered(self, made: Subscription) -> Subscription:
        return replace(made, number=1) if self.events.numbered else made

    def _find(self, subscription_id: str) -> None:
        if subscription_id != SUBSCRIPTION_ID:
            raise NotFound("There is no such subscription.")
