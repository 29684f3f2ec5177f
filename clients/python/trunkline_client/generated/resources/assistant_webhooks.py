# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.assistant_webhooks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import assistant_webhooks as fields_of
from trunkline_client.generated.results import assistant_webhooks, shared
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/v1/webhooks")
_LIST = Operation("GET", "/api/v1/webhooks")
_GET = Operation("GET", "/api/v1/webhooks/{webhook_id}")
_UPDATE = Operation("PATCH", "/api/v1/webhooks/{webhook_id}")
_DELETE = Operation("DELETE", "/api/v1/webhooks/{webhook_id}")
_TEST = Operation("POST", "/api/v1/webhooks/{webhook_id}/test")
_LIST_DELIVERIES = Operation("GET", "/api/v1/webhooks/{webhook_id}/deliveries", queries=frozenset({"limit"}))
_REPLAY_DELIVERY = Operation("POST", "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay")
_REPLAY_FAILED_DELIVERIES = Operation("POST", "/api/v1/webhooks/{webhook_id}/deliveries/replay")


class AssistantWebhooksResource(Resource):
    """Operations of `client.assistant_webhooks`."""

    def create(
        self, **fields: Unpack[fields_of.CreateAssistantWebhookFields]
    ) -> assistant_webhooks.CreatedWebhook:
        """Register a webhook."""
        return self._transport.item(_CREATE, (), fields, assistant_webhooks.CreatedWebhook)

    def list(self) -> Sequence[assistant_webhooks.Webhook]:
        """List webhooks, newest first."""
        return self._transport.items(_LIST, (), {}, assistant_webhooks.Webhook)

    def get(self, webhook_id: str, /) -> assistant_webhooks.Webhook:
        """Get a webhook."""
        return self._transport.item(_GET, (webhook_id,), {}, assistant_webhooks.Webhook)

    def update(
        self, webhook_id: str, /, **fields: Unpack[fields_of.UpdateAssistantWebhookFields]
    ) -> assistant_webhooks.Webhook:
        """Update a webhook."""
        return self._transport.item(_UPDATE, (webhook_id,), fields, assistant_webhooks.Webhook)

    def delete(self, webhook_id: str, /) -> None:
        """Delete a webhook."""
        return self._transport.nothing(_DELETE, (webhook_id,), {})

    def test(self, webhook_id: str, /) -> shared.TestOutcome:
        """Send a test event to a webhook now."""
        return self._transport.item(_TEST, (webhook_id,), {}, shared.TestOutcome)

    def list_deliveries(
        self, webhook_id: str, /, **fields: Unpack[fields_of.ListAssistantDeliveriesFields]
    ) -> Sequence[shared.Delivery]:
        """The delivery log of a webhook, newest first."""
        return self._transport.items(_LIST_DELIVERIES, (webhook_id,), fields, shared.Delivery)

    def replay_delivery(self, webhook_id: str, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of the assistant."""
        return self._transport.item(_REPLAY_DELIVERY, (webhook_id, delivery_id,), {}, shared.ReplayedOne)

    def replay_failed_deliveries(
        self, webhook_id: str, /, **fields: Unpack[fields_of.ReplayFailedAssistantDeliveriesFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of the assistant that failed."""
        return self._transport.item(_REPLAY_FAILED_DELIVERIES, (webhook_id,), fields, shared.ReplayedAll)


class AsyncAssistantWebhooksResource(AsyncResource):
    """Operations of `client.assistant_webhooks`."""

    async def create(
        self, **fields: Unpack[fields_of.CreateAssistantWebhookFields]
    ) -> assistant_webhooks.CreatedWebhook:
        """Register a webhook."""
        return await self._transport.item(_CREATE, (), fields, assistant_webhooks.CreatedWebhook)

    async def list(self) -> Sequence[assistant_webhooks.Webhook]:
        """List webhooks, newest first."""
        return await self._transport.items(_LIST, (), {}, assistant_webhooks.Webhook)

    async def get(self, webhook_id: str, /) -> assistant_webhooks.Webhook:
        """Get a webhook."""
        return await self._transport.item(_GET, (webhook_id,), {}, assistant_webhooks.Webhook)

    async def update(
        self, webhook_id: str, /, **fields: Unpack[fields_of.UpdateAssistantWebhookFields]
    ) -> assistant_webhooks.Webhook:
        """Update a webhook."""
        return await self._transport.item(_UPDATE, (webhook_id,), fields, assistant_webhooks.Webhook)

    async def delete(self, webhook_id: str, /) -> None:
        """Delete a webhook."""
        return await self._transport.nothing(_DELETE, (webhook_id,), {})

    async def test(self, webhook_id: str, /) -> shared.TestOutcome:
        """Send a test event to a webhook now."""
        return await self._transport.item(_TEST, (webhook_id,), {}, shared.TestOutcome)

    async def list_deliveries(
        self, webhook_id: str, /, **fields: Unpack[fields_of.ListAssistantDeliveriesFields]
    ) -> Sequence[shared.Delivery]:
        """The delivery log of a webhook, newest first."""
        return await self._transport.items(_LIST_DELIVERIES, (webhook_id,), fields, shared.Delivery)

    async def replay_delivery(self, webhook_id: str, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of the assistant."""
        return await self._transport.item(
            _REPLAY_DELIVERY, (webhook_id, delivery_id,), {}, shared.ReplayedOne
        )

    async def replay_failed_deliveries(
        self, webhook_id: str, /, **fields: Unpack[fields_of.ReplayFailedAssistantDeliveriesFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of the assistant that failed."""
        return await self._transport.item(
            _REPLAY_FAILED_DELIVERIES, (webhook_id,), fields, shared.ReplayedAll
        )
