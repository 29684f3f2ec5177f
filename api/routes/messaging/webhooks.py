"""Webhook endpoints of messaging, their test and their deliveries."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from api.http.endpoint import Context
from api.routes.messaging.base import messaging_routes
from api.routes.webhook_routes import WebhookModels, WebhookRoutes
from api.schemas.messaging.base import Deleted
from api.schemas.messaging.webhooks import (
    CreatedWebhookEndpoint,
    CreateWebhookEndpoint,
    EndpointDeliveries,
    EndpointTestOutcome,
    UpdateWebhookEndpoint,
    WebhookEndpointObject,
    WebhookEndpointObjects,
)
from api.schemas.serializers import rfc3339
from callcontrol.webhooks.subscriptions import LoggedDelivery, Subscription, Trial

__all__ = ["routes"]


async def _find(context: Context[Any, Any]) -> str:
    """Id of the subscription whose number is in the path."""
    number = context.number()
    return (await context.storage.webhook_endpoints.numbered(context.account_sid, number)).subscription_id


def _json(webhook: Subscription) -> dict[str, Any]:
    """Public fields of an endpoint: an explicit list, so that no secret can leak."""
    return {
        "id": webhook.number,
        "url": webhook.url,
        "events": list(webhook.event_types),
        "description": webhook.description,
        "isActive": webhook.is_active,
        "createdAt": rfc3339(webhook.created_at),
        "updatedAt": rfc3339(webhook.updated_at),
    }


def _outcome_json(trial: Trial) -> dict[str, Any]:
    return {"success": trial.success, "statusCode": trial.status_code, "error": trial.error or ""}


def _delivery_json(context: Context[Any, Any], delivery: LoggedDelivery) -> dict[str, Any]:
    return {
        "id": delivery.delivery_id,
        "endpointId": context.number(),
        "event": delivery.event_type,
        # For messages, the ordering key `call_sid` holds the message id.
        "messageId": delivery.call_sid,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "maxAttempts": delivery.max_attempts,
        "responseCode": delivery.response_code,
        "error": delivery.error or "",
        "createdAt": rfc3339(delivery.created_at),
        "nextAttemptAt": rfc3339(delivery.next_attempt_at),
        "deliveredAt": rfc3339(delivery.delivered_at),
    }


routes = messaging_routes("messaging webhooks", "webhooks.read", "webhooks.write")

WebhookRoutes(
    routes,
    service=attrgetter("webhook_endpoints"),
    one="/api/webhook-endpoints/{id}",
    find=_find,
    webhook="a webhook endpoint",
    events="the events of a webhook endpoint",
    operation="webhook_endpoint",
    delivery="endpoint_",
    outcome=EndpointTestOutcome,
    outcome_json=_outcome_json,
    log=EndpointDeliveries,
    delivery_json=_delivery_json,
).add(
    WebhookModels(
        create=CreateWebhookEndpoint,
        update=UpdateWebhookEndpoint,
        one=WebhookEndpointObject,
        many=WebhookEndpointObjects,
        show=_json,
        created=CreatedWebhookEndpoint,
        deleted=Deleted,
    )
)
