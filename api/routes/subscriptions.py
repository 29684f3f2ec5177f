"""Webhook subscriptions and their deliveries (masking specification, subscriptions)."""

from __future__ import annotations

from operator import attrgetter

from api.http.endpoint import Routes
from api.http.errors import ErrorStyle
from api.routes.webhook_routes import WebhookModels, WebhookRoutes, path_parameter
from api.schemas.subscriptions import (
    CreateSubscription,
    SubscriptionObject,
    SubscriptionObjects,
    UpdateSubscription,
)

__all__ = ["routes"]

routes = Routes("webhooks.read", "webhooks.write", tag="webhook subscriptions", style=ErrorStyle.PLAIN)

WebhookRoutes(
    routes,
    service=attrgetter("subscriptions"),
    one="/v1/webhooks/subscriptions/{id}",
    find=path_parameter("id"),
    webhook="a webhook subscription",
    events="the events of a subscription",
    operation="subscription",
    delivery="",
    names={"replay_failed_deliveries": "replay_failed"},
).add(
    WebhookModels(
        create=CreateSubscription,
        update=UpdateSubscription,
        one=SubscriptionObject,
        many=SubscriptionObjects,
    ),
    get=False,
)
