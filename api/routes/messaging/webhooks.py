"""Webhook endpoints of messaging, their test and their deliveries."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from api.http.endpoint import Context
from api.http.session import API_PATH
from api.routes.messaging.base import messaging_routes
from api.routes.webhook_routes import WebhookModels, WebhookRoutes
from api.schemas.messaging.base import Deleted
from api.schemas.messaging.webhooks import (
    CreatedWebhookEndpoint,
    CreateWebhookEndpoint,
    EndpointDeliveries,
    EndpointDelivery,
    EndpointTestOutcome,
    UpdateWebhookEndpoint,
    WebhookEndpointObject,
    WebhookEndpointObjects,
)
from api.schemas.serializers import shown
from callcontrol.webhooks.subscriptions import LoggedDelivery

__all__ = ["routes"]


async def _find(context: Context[Any, Any]) -> str:
    """Id of the subscription whose number is in the path."""
    number = context.number()
    return (await context.storage.webhook_endpoints.numbered(context.account_sid, number)).subscription_id


def _delivery_json(context: Context[Any, Any], delivery: LoggedDelivery) -> dict[str, Any]:
    return shown(
        EndpointDelivery,
        delivery,
        id=delivery.delivery_id,
        endpoint_id=context.number(),
        event=delivery.event_type,
        # For messages, the ordering key `call_sid` holds the message id.
        message_id=delivery.call_sid,
        error=delivery.error or "",
    )


routes = messaging_routes("messaging webhooks", "webhooks.read", "webhooks.write", sessions=True)

WebhookRoutes(
    routes,
    service=attrgetter("webhook_endpoints"),
    one=f"{API_PATH}/{{id}}",
    find=_find,
    webhook="a webhook endpoint",
    events="the events of a webhook endpoint",
    operation="webhook_endpoint",
    delivery="endpoint_",
    outcome=EndpointTestOutcome,
    log=EndpointDeliveries,
    delivery_json=_delivery_json,
).add(
    WebhookModels(
        create=CreateWebhookEndpoint,
        update=UpdateWebhookEndpoint,
        one=WebhookEndpointObject,
        many=WebhookEndpointObjects,
        created=CreatedWebhookEndpoint,
        deleted=Deleted,
    )
)
