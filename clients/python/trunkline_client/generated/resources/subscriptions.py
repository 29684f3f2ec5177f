# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.subscriptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import subscriptions as fields_of
from trunkline_client.generated.results import shared, subscriptions
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/v1/webhooks/subscriptions")
_LIST = Operation("GET", "/v1/webhooks/subscriptions")
_UPDATE = Operation("PATCH", "/v1/webhooks/subscriptions/{id}")
_DELETE = Operation("DELETE", "/v1/webhooks/subscriptions/{id}")
_TEST = Operation("POST", "/v1/webhooks/subscriptions/{id}/test")
_LIST_DELIVERIES = Operation(
    "GET", "/v1/webhooks/subscriptions/{id}/deliveries", queries=frozenset({"limit"})
)
_REPLAY_DELIVERY = Operation("POST", "/v1/webhooks/subscriptions/{id}/deliveries/{delivery_id}/replay")
_REPLAY_FAILED = Operation("POST", "/v1/webhooks/subscriptions/{id}/deliveries/replay")


class SubscriptionsResource(Resource):
    """Operations of `client.subscriptions`."""

    def create(self, **fields: Unpack[fields_of.CreateSubscriptionFields]) -> subscriptions.Subscription:
        """Register a webhook subscription."""
        return self._transport.item(_CREATE, (), fields, subscriptions.Subscription)

    def list(self) -> Sequence[subscriptions.Subscription]:
        """List webhook subscriptions, newest first."""
        return self._transport.items(_LIST, (), {}, subscriptions.Subscription)

    def update(
        self, identifier: str, /, **fields: Unpack[fields_of.UpdateSubscriptionFields]
    ) -> subscriptions.Subscription:
        """Update a webhook subscription."""
        return self._transport.item(_UPDATE, (identifier,), fields, subscriptions.Subscription)

    def delete(self, identifier: str, /) -> None:
        """Delete a webhook subscription."""
        return self._transport.nothing(_DELETE, (identifier,), {})

    def test(self, identifier: str, /) -> shared.TestOutcome:
        """Send a test event to a webhook subscription now."""
        return self._transport.item(_TEST, (identifier,), {}, shared.TestOutcome)

    def list_deliveries(
        self, identifier: str, /, **fields: Unpack[fields_of.ListDeliveriesFields]
    ) -> Sequence[shared.Delivery]:
        """The delivery log of a webhook subscription, newest first."""
        return self._transport.items(_LIST_DELIVERIES, (identifier,), fields, shared.Delivery)

    def replay_delivery(self, identifier: str, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of a subscription."""
        return self._transport.item(_REPLAY_DELIVERY, (identifier, delivery_id,), {}, shared.ReplayedOne)

    def replay_failed(
        self, identifier: str, /, **fields: Unpack[fields_of.ReplayFailedFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of a subscription that failed."""
        return self._transport.item(_REPLAY_FAILED, (identifier,), fields, shared.ReplayedAll)


class AsyncSubscriptionsResource(AsyncResource):
    """Operations of `client.subscriptions`."""

    async def create(
        self, **fields: Unpack[fields_of.CreateSubscriptionFields]
    ) -> subscriptions.Subscription:
        """Register a webhook subscription."""
        return await self._transport.item(_CREATE, (), fields, subscriptions.Subscription)

    async def list(self) -> Sequence[subscriptions.Subscription]:
        """List webhook subscriptions, newest first."""
        return await self._transport.items(_LIST, (), {}, subscriptions.Subscription)

    async def update(
        self, identifier: str, /, **fields: Unpack[fields_of.UpdateSubscriptionFields]
    ) -> subscriptions.Subscription:
        """Update a webhook subscription."""
        return await self._transport.item(_UPDATE, (identifier,), fields, subscriptions.Subscription)

    async def delete(self, identifier: str, /) -> None:
        """Delete a webhook subscription."""
        return await self._transport.nothing(_DELETE, (identifier,), {})

    async def test(self, identifier: str, /) -> shared.TestOutcome:
        """Send a test event to a webhook subscription now."""
        return await self._transport.item(_TEST, (identifier,), {}, shared.TestOutcome)

    async def list_deliveries(
        self, identifier: str, /, **fields: Unpack[fields_of.ListDeliveriesFields]
    ) -> Sequence[shared.Delivery]:
        """The delivery log of a webhook subscription, newest first."""
        return await self._transport.items(_LIST_DELIVERIES, (identifier,), fields, shared.Delivery)

    async def replay_delivery(self, identifier: str, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of a subscription."""
        return await self._transport.item(
            _REPLAY_DELIVERY, (identifier, delivery_id,), {}, shared.ReplayedOne
        )

    async def replay_failed(
        self, identifier: str, /, **fields: Unpack[fields_of.ReplayFailedFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of a subscription that failed."""
        return await self._transport.item(_REPLAY_FAILED, (identifier,), fields, shared.ReplayedAll)
