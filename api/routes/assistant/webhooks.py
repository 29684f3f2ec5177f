"""Webhooks of the voice assistant (telephony specification), their test and their deliveries."""

from __future__ import annotations

from operator import attrgetter

from api.http.endpoint import Routes
from api.routes.webhook_routes import WebhookModels, WebhookRoutes, path_parameter
from api.schemas.assistant.webhooks import (
    CreatedWebhook,
    CreateWebhook,
    UpdateWebhook,
    WebhookObject,
    WebhookObjects,
)

__all__ = ["routes"]

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
        created=CreatedWebhook,
    )
)
