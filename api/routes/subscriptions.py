"""Webhook subscriptions and their deliveries (masking specification, subscriptions)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.http.errors import ErrorStyle
from api.routes.webhook_log import WebhookLog, logged, replayed_all, replayed_one, tested
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import rfc3339
from api.schemas.subscriptions import (
    CreateSubscription,
    DeliveryLog,
    ReplayFailed,
    SubscriptionObject,
    SubscriptionObjects,
    UpdateSubscription,
)
from callcontrol.errors import Conflict
from callcontrol.webhooks.subscriptions import Subscription

__all__ = ["ENDPOINTS"]


async def list_subscriptions(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /webhooks/subscriptions."""
    found = await context.services.subscriptions.list(context.account_sid)
    return Reply([_json(subscription) for subscription in found])


async def create_subscription(context: Context[CreateSubscription, NoQuery]) -> Reply:
    """Answer POST /webhooks/subscriptions."""
    values = context.body.model_dump(exclude_unset=True)
    return Reply(_json(await context.services.subscriptions.create(context.account_sid, values)))


async def update_subscription(context: Context[UpdateSubscription, NoQuery]) -> Reply:
    """Answer PATCH /webhooks/subscriptions/{id}."""
    values = context.body.model_dump(exclude_unset=True)
    services, account_sid = context.services, context.account_sid
    return Reply(_json(await services.subscriptions.update(account_sid, context.path["id"], values)))


async def delete_subscription(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /webhooks/subscriptions/{id}."""
    await context.services.subscriptions.delete(context.account_sid, context.path["id"])
    return Reply(None)


async def test_subscription(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /webhooks/subscriptions/{id}/test: 200 whatever the receiver answers."""
    return await tested(context, context.services.subscriptions, context.path["id"])


async def list_deliveries(context: Context[NoBody, DeliveryLog]) -> Reply:
    """Answer GET /webhooks/subscriptions/{id}/deliveries."""
    return await logged(context, context.services.subscriptions, context.path["id"])


async def replay_delivery(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /webhooks/subscriptions/{id}/deliveries/{delivery_id}/replay."""
    return await replayed_one(context, context.services.subscriptions, context.path["id"])


async def replay_failed(context: Context[ReplayFailed, NoQuery]) -> Reply:
    """Answer POST /webhooks/subscriptions/{id}/deliveries/replay."""
    return await replayed_all(context, context.services.subscriptions, context.path["id"])


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


_ALL = "/v1/webhooks/subscriptions"
_ONE = _ALL + "/{id}"
_READ: dict[str, Any] = {
    "tag": "webhook subscriptions",
    "scope": "webhooks.read",
    "style": ErrorStyle.PLAIN,
}
_WRITE: dict[str, Any] = {**_READ, "scope": "webhooks.write"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="GET",
        path=_ALL,
        handler=list_subscriptions,
        summary="List webhook subscriptions, newest first",
        response=SubscriptionObjects,
        **_READ,
    ),
    Endpoint(
        method="POST",
        path=_ALL,
        handler=create_subscription,
        summary="Subscribe a URL to events",
        description="The URL must be https and public.",
        success=201,
        body=CreateSubscription,
        response=SubscriptionObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_subscription,
        summary="Update a webhook subscription",
        description="Fields that are left out stay as they are. What waits to be sent goes to the new URL.",
        body=UpdateSubscription,
        response=SubscriptionObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_subscription,
        summary="Delete a webhook subscription",
        description="What waits to be sent is not sent.",
        success=204,
        response=None,
        **_WRITE,
    ),
    *WebhookLog(
        path=_ONE,
        webhook="a subscription",
        events="the events of a subscription",
        read=_READ,
        write=_WRITE,
        test=test_subscription,
        log=list_deliveries,
        replay=replay_delivery,
        replay_failed=replay_failed,
    ).endpoints(),
)
