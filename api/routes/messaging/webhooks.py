"""Webhook endpoints of messaging, their test and their deliveries."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.messaging.base import messaging
from api.routes.webhook_log import WebhookLog, replayed_all, replayed_one, stored_values
from api.schemas.base import NoBody, NoQuery
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
from api.schemas.subscriptions import DeliveryLog, ReplayFailed
from callcontrol.errors import Conflict
from callcontrol.webhooks.subscriptions import LoggedDelivery, Subscription

__all__ = ["ENDPOINTS"]


async def create_webhook_endpoint(context: Context[CreateWebhookEndpoint, NoQuery]) -> Reply:
    """Answer POST /api/webhook-endpoints."""
    values = stored_values(context.body.model_dump(exclude_none=True))
    made = await context.services.webhook_endpoints.create(context.account_sid, values)
    return Reply({**_json(made), "secret": made.secret})


async def list_webhook_endpoints(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /api/webhook-endpoints."""
    return Reply(
        [_json(found) for found in await context.services.webhook_endpoints.list(context.account_sid)]
    )


async def get_webhook_endpoint(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /api/webhook-endpoints/{id}."""
    return Reply(_json(await _found(context)))


async def update_webhook_endpoint(context: Context[UpdateWebhookEndpoint, NoQuery]) -> Reply:
    """Answer PATCH /api/webhook-endpoints/{id}."""
    found = await _found(context)
    values = stored_values(context.body.model_dump(exclude_unset=True))
    webhooks = context.services.webhook_endpoints
    return Reply(_json(await webhooks.update(context.account_sid, found.subscription_id, values)))


async def delete_webhook_endpoint(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /api/webhook-endpoints/{id}."""
    found = await _found(context)
    await context.services.webhook_endpoints.delete(context.account_sid, found.subscription_id)
    return Reply({"id": found.number, "deleted": True})


async def test_webhook_endpoint(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /api/webhook-endpoints/{id}/test: 200 whatever the receiver answers."""
    found = await _found(context)
    trial = await context.services.webhook_endpoints.test(context.account_sid, found.subscription_id)
    return Reply({"success": trial.success, "statusCode": trial.status_code, "error": trial.error or ""})


async def list_endpoint_deliveries(context: Context[NoBody, DeliveryLog]) -> Reply:
    """Answer GET /api/webhook-endpoints/{id}/deliveries."""
    found = await _found(context)
    log = await context.services.webhook_endpoints.deliveries(
        context.account_sid, found.subscription_id, context.query.limit
    )
    return Reply([_delivery_json(found, delivery) for delivery in log])


async def replay_endpoint_delivery(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /api/webhook-endpoints/{id}/deliveries/{delivery_id}/replay."""
    found = await _found(context)
    return await replayed_one(context, context.services.webhook_endpoints, found.subscription_id)


async def replay_failed_endpoint_deliveries(context: Context[ReplayFailed, NoQuery]) -> Reply:
    """Answer POST /api/webhook-endpoints/{id}/deliveries/replay."""
    found = await _found(context)
    return await replayed_all(context, context.services.webhook_endpoints, found.subscription_id)


async def _found(context: Context[Any, Any]) -> Subscription:
    """Look up the subscription whose number is in the path."""
    return await context.services.webhook_endpoints.numbered(context.account_sid, int(context.path["id"]))


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


def _delivery_json(webhook: Subscription, delivery: LoggedDelivery) -> dict[str, Any]:
    return {
        "id": delivery.delivery_id,
        "endpointId": webhook.number,
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


_ALL = "/api/webhook-endpoints"
_ONE = _ALL + "/{id}"
_READ = messaging("messaging webhooks", "webhooks.read")
_WRITE = messaging("messaging webhooks", "webhooks.write")

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_ALL,
        handler=create_webhook_endpoint,
        summary="Register a webhook endpoint",
        description="The URL must be https and public. The secret that signs events is shown this once.",
        success=201,
        body=CreateWebhookEndpoint,
        response=CreatedWebhookEndpoint,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_ALL,
        handler=list_webhook_endpoints,
        summary="List webhook endpoints, newest first",
        response=WebhookEndpointObjects,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_webhook_endpoint,
        summary="Get a webhook endpoint",
        response=WebhookEndpointObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_webhook_endpoint,
        summary="Update a webhook endpoint",
        description="Fields that are left out stay as they are. What waits to be sent goes to the new URL.",
        body=UpdateWebhookEndpoint,
        response=WebhookEndpointObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_webhook_endpoint,
        summary="Delete a webhook endpoint",
        description="What waits to be sent is not sent.",
        response=Deleted,
        **_WRITE,
    ),
    *WebhookLog(
        path=_ONE,
        webhook="a webhook endpoint",
        events="the events of a webhook endpoint",
        read=_READ,
        write=_WRITE,
        test=test_webhook_endpoint,
        log=list_endpoint_deliveries,
        replay=replay_endpoint_delivery,
        replay_failed=replay_failed_endpoint_deliveries,
        outcome=EndpointTestOutcome,
        listed=EndpointDeliveries,
    ).endpoints(),
)
