# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.webhook_endpoints`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import webhook_endpoints as fields_of
from trunkline_client.generated.results import shared, webhook_endpoints
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/webhook-endpoints")
_LIST = Operation("GET", "/api/webhook-endpoints")
_GET = Operation("GET", "/api/webhook-endpoints/{id}")
_UPDATE = Operation("PATCH", "/api/webhook-endpoints/{id}")
_DELETE = Operation("DELETE", "/api/webhook-endpoints/{id}")
_TEST = Operation("POST", "/api/webhook-endpoints/{id}/test")
_LIST_DELIVERIES = Operation("GET", "/api/webhook-endpoints/{id}/deliveries", queries=frozenset({"limit"}))
_REPLAY_DELIVERY = Operation("POST", "/api/webhook-endpoints/{id}/deliveries/{delivery_id}/replay")
_REPLAY_FAILED_DELIVERIES = Operation("POST", "/api/webhook-endpoints/{id}/deliveries/replay")


class WebhookEndpointsResource(Resource):
    """Operations of `client.webhook_endpoints`."""

    def create(
        self, **fields: Unpack[fields_of.CreateWebhookEndpointFields]
    ) -> webhook_endpoints.CreatedWebhookEndpoint:
        """Register a webhook endpoint."""
        return self._transport.item(_CREATE, (), fields, webhook_endpoints.CreatedWebhookEndpoint)

    def list(self) -> Sequence[webhook_endpoints.WebhookEndpoint]:
        """List webhook endpoints, newest first."""
        return self._transport.items(_LIST, (), {}, webhook_endpoints.WebhookEndpoint)

    def get(self, identifier: int, /) -> webhook_endpoints.WebhookEndpoint:
        """Get a webhook endpoint."""
        return self._transport.item(_GET, (identifier,), {}, webhook_endpoints.WebhookEndpoint)

    def update(
        self, identifier: int, /, **fields: Unpack[fields_of.UpdateWebhookEndpointFields]
    ) -> webhook_endpoints.WebhookEndpoint:
        """Update a webhook endpoint."""
        return self._transport.item(_UPDATE, (identifier,), fields, webhook_endpoints.WebhookEndpoint)

    def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a webhook endpoint."""
        return self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)

    def test(self, identifier: int, /) -> webhook_endpoints.EndpointTestOutcome:
        """Send a test event to a webhook endpoint now."""
        return self._transport.item(_TEST, (identifier,), {}, webhook_endpoints.EndpointTestOutcome)

    def list_deliveries(
        self, identifier: int, /, **fields: Unpack[fields_of.ListEndpointDeliveriesFields]
    ) -> Sequence[webhook_endpoints.EndpointDelivery]:
        """The delivery log of a webhook endpoint, newest first."""
        return self._transport.items(
            _LIST_DELIVERIES, (identifier,), fields, webhook_endpoints.EndpointDelivery
        )

    def replay_delivery(self, identifier: int, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of a webhook endpoint."""
        return self._transport.item(_REPLAY_DELIVERY, (identifier, delivery_id,), {}, shared.ReplayedOne)

    def replay_failed_deliveries(
        self, identifier: int, /, **fields: Unpack[fields_of.ReplayFailedEndpointDeliveriesFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of a webhook endpoint that failed."""
        return self._transport.item(_REPLAY_FAILED_DELIVERIES, (identifier,), fields, shared.ReplayedAll)


class AsyncWebhookEndpointsResource(AsyncResource):
    """Operations of `client.webhook_endpoints`."""

    async def create(
        self, **fields: Unpack[fields_of.CreateWebhookEndpointFields]
    ) -> webhook_endpoints.CreatedWebhookEndpoint:
        """Register a webhook endpoint."""
        return await self._transport.item(_CREATE, (), fields, webhook_endpoints.CreatedWebhookEndpoint)

    async def list(self) -> Sequence[webhook_endpoints.WebhookEndpoint]:
        """List webhook endpoints, newest first."""
        return await self._transport.items(_LIST, (), {}, webhook_endpoints.WebhookEndpoint)

    async def get(self, identifier: int, /) -> webhook_endpoints.WebhookEndpoint:
        """Get a webhook endpoint."""
        return await self._transport.item(_GET, (identifier,), {}, webhook_endpoints.WebhookEndpoint)

    async def update(
        self, identifier: int, /, **fields: Unpack[fields_of.UpdateWebhookEndpointFields]
    ) -> webhook_endpoints.WebhookEndpoint:
        """Update a webhook endpoint."""
        return await self._transport.item(_UPDATE, (identifier,), fields, webhook_endpoints.WebhookEndpoint)

    async def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a webhook endpoint."""
        return await self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)

    async def test(self, identifier: int, /) -> webhook_endpoints.EndpointTestOutcome:
        """Send a test event to a webhook endpoint now."""
        return await self._transport.item(_TEST, (identifier,), {}, webhook_endpoints.EndpointTestOutcome)

    async def list_deliveries(
        self, identifier: int, /, **fields: Unpack[fields_of.ListEndpointDeliveriesFields]
    ) -> Sequence[webhook_endpoints.EndpointDelivery]:
        """The delivery log of a webhook endpoint, newest first."""
        return await self._transport.items(
            _LIST_DELIVERIES, (identifier,), fields, webhook_endpoints.EndpointDelivery
        )

    async def replay_delivery(self, identifier: int, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of a webhook endpoint."""
        return await self._transport.item(
            _REPLAY_DELIVERY, (identifier, delivery_id,), {}, shared.ReplayedOne
        )

    async def replay_failed_deliveries(
        self, identifier: int, /, **fields: Unpack[fields_of.ReplayFailedEndpointDeliveriesFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of a webhook endpoint that failed."""
        return await self._transport.item(
            _REPLAY_FAILED_DELIVERIES, (identifier,), fields, shared.ReplayedAll
        )
