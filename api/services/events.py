"""Webhook subscriptions, as the routes use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from callcontrol.webhooks.subscriptions import LoggedDelivery, Replayed, Subscription, Trial

__all__ = ["Subscriptions"]


class Subscriptions(Protocol):
    """Webhook subscriptions; see ``callcontrol.webhooks.aio.subscriptions.SubscriptionService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Subscription:
        """Subscribe a URL to events; `values` are attributes of `Subscription`."""

    async def get(self, account_sid: str, subscription_id: str) -> Subscription:
        """One subscription of the account."""

    async def numbered(self, account_sid: str, number: int) -> Subscription:
        """One subscription of the account by its number."""

    async def list(self, account_sid: str) -> Sequence[Subscription]:
        """Subscriptions of the account, newest first."""

    async def update(self, account_sid: str, subscription_id: str, values: Mapping[str, Any]) -> Subscription:
        """Change a subscription; `values` are the changed attributes."""

    async def delete(self, account_sid: str, subscription_id: str) -> None:
        """Remove a subscription."""

    async def test(self, account_sid: str, subscription_id: str) -> Trial:
        """Send a test event now, and return the receiver's result."""

    async def deliveries(
        self, account_sid: str, subscription_id: str, limit: int
    ) -> Sequence[LoggedDelivery]:
        """The newest deliveries of a subscription, newest first."""

    async def replay(self, account_sid: str, subscription_id: str, delivery_id: str) -> Replayed:
        """Resend a delivery."""

    async def replay_failed(
        self, account_sid: str, subscription_id: str, since: datetime | None, until: datetime | None
    ) -> Replayed:
        """Resend the failed deliveries of a window."""
