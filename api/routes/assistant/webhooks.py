"""Webhooks of the voice assistant (telephony specification), their test and their deliveries."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from api.http.endpoint import Routes
from api.routes.webhook_routes import WebhookModels, WebhookRoutes, path_parameter
from api.schemas.assistant.webhooks import (
    CreatedWebhook,
    CreateWebhook,
    UpdateWebhook,
    WebhookObject,
    WebhookObjects,
)
from api.schemas.serializers import rfc3339
from callcontrol.webhooks.subscriptions import Subscription

__all__ = ["routes"]


def _json(webhook: Subscription) -> dict[str, Any]:
    """Public fields of a webhook: an explicit list, so that no secret can leak."""
    return {
        "id": webhook.subscription_id,
        "url": webhook.url,
        "events": list(webhook.event_types),
        "description": webhook.description,
        "is_active": webhook.is_active,
        "created_at": rfc3339(webhook.created_at),
        "updated_at": rfc3339(webhook.updated_at),
    }


routes = Routes("assistant", tag="voice assistant webhooks", service="assistant")

WebhookRoutes(
    routes,
    service=attrgetter("assistant_webhooks"),
    one="/api/v1/webhooks/{webhook_id}",
    find=path_parameter("webhook_id"),
    webhook="a webhook",
    events="the events of the assistant",
    operation="assistant_webhook",
    delivery="assistant_",
).add(
    WebhookModels(
        create=CreateWebhook,
        update=UpdateWebhook,
        one=WebhookObject,
        many=WebhookObjects,
        show=_json,
        created=CreatedWebhook,
    )
)
