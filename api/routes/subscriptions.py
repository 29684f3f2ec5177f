"""Webhook subscriptions and their deliveries (masking specification, subscriptions)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from api.http.endpoint import Routes
from api.http.errors import ErrorStyle
from api.routes.webhook_routes import WebhookModels, WebhookRoutes, path_parameter
from api.schemas.serializers import rfc3339
from api.schemas.subscriptions import (
    CreateSubscription,
    SubscriptionObject,
    SubscriptionObjects,
    UpdateSubscription,
)
from callcontrol.webhooks.subscriptions import Subscription

__all__ = ["routes"]


def _json(subscription: Subscription) -> dict[str, Any]:
    """Public fields of a subscription: an explicit list, so that no secret can leak."""
    return {
        "id": subscription.subscription_id,
        "url": subscription.url,
        "event_types": list(subscription.event_types),
        "has_secret": subscription.has_secret,
        "is_active": subscription.is_active,
        "created_at": rfc3339(subscription.created_at),
        "updated_at": rfc3339(subscription.updated_at),
    }


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
        show=_json,
    ),
    get=False,
)
