"""Webhooks of the voice assistant (telephony specification), their test and their deliveries."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.assistant.calls import ASSISTANT
from api.routes.webhook_log import WebhookLog, logged, replayed_all, replayed_one, stored_values, tested
from api.schemas.assistant.webhooks import (
    CreatedWebhook,
    CreateWebhook,
    UpdateWebhook,
    WebhookObject,
    WebhookObjects,
)
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import rfc3339
from api.schemas.subscriptions import DeliveryLog, ReplayFailed
from callcontrol.errors import Conflict
from callcontrol.webhooks.subscriptions import Subscription

__all__ = ["ENDPOINTS"]


async def create_assistant_webhook(context: Context[CreateWebhook, NoQuery]) -> Reply:
    """Answer POST /v1/webhooks of the voice assistant."""
    webhooks = context.services.assistant_webhooks
    made = await webhooks.create(
        context.account_sid, stored_values(context.body.model_dump(exclude_none=True))
    )
    return Reply({**_json(made), "secret": made.secret})


async def list_assistant_webhooks(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/webhooks of the voice assistant."""
    return Reply(
        [_json(found) for found in await context.services.assistant_webhooks.list(context.account_sid)]
    )


async def get_assistant_webhook(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/webhooks/{webhook_id} of the voice assistant."""
    webhooks = context.services.assistant_webhooks
    return Reply(_json(await webhooks.get(context.account_sid, context.path["webhook_id"])))


async def update_assistant_webhook(context: Context[UpdateWebhook, NoQuery]) -> Reply:
    """Answer PATCH /v1/webhooks/{webhook_id} of the voice assistant."""
    values = stored_values(context.body.model_dump(exclude_unset=True))
    webhooks = context.services.assistant_webhooks
    return Reply(_json(await webhooks.update(context.account_sid, context.path["webhook_id"], values)))


async def delete_assistant_webhook(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /v1/webhooks/{webhook_id} of the voice assistant."""
    await context.services.assistant_webhooks.delete(context.account_sid, context.path["webhook_id"])
    return Reply(None)


async def test_assistant_webhook(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /v1/webhooks/{webhook_id}/test: 200 whatever the receiver answers."""
    return await tested(context, context.services.assistant_webhooks, context.path["webhook_id"])


async def list_assistant_deliveries(context: Context[NoBody, DeliveryLog]) -> Reply:
    """Answer GET /v1/webhooks/{webhook_id}/deliveries of the voice assistant."""
    return await logged(context, context.services.assistant_webhooks, context.path["webhook_id"])


async def replay_assistant_delivery(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay."""
    return await replayed_one(context, context.services.assistant_webhooks, context.path["webhook_id"])


async def replay_failed_assistant_deliveries(context: Context[ReplayFailed, NoQuery]) -> Reply:
    """Answer POST /v1/webhooks/{webhook_id}/deliveries/replay."""
    return await replayed_all(context, context.services.assistant_webhooks, context.path["webhook_id"])


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


_WEBHOOKS: dict[str, Any] = {**ASSISTANT, "tag": "voice assistant webhooks"}
_ALL = "/api/v1/webhooks"
_ONE = _ALL + "/{webhook_id}"

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_ALL,
        handler=create_assistant_webhook,
        summary="Register a webhook",
        description="The URL must be https and public. The secret that signs events is shown this once.",
        success=201,
        body=CreateWebhook,
        response=CreatedWebhook,
        errors=(Conflict,),
        **_WEBHOOKS,
    ),
    Endpoint(
        method="GET",
        path=_ALL,
        handler=list_assistant_webhooks,
        summary="List webhooks, newest first",
        response=WebhookObjects,
        **_WEBHOOKS,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_assistant_webhook,
        summary="Get a webhook",
        response=WebhookObject,
        **_WEBHOOKS,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_assistant_webhook,
        summary="Update a webhook",
        description="Fields that are left out stay as they are. What waits to be sent goes to the new URL.",
        body=UpdateWebhook,
        response=WebhookObject,
        **_WEBHOOKS,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_assistant_webhook,
        summary="Delete a webhook",
        description="What waits to be sent is not sent.",
        success=204,
        response=None,
        **_WEBHOOKS,
    ),
    *WebhookLog(
        path=_ONE,
        webhook="a webhook of the assistant",
        events="the events of the assistant",
        read=_WEBHOOKS,
        write=_WEBHOOKS,
        test=test_assistant_webhook,
        log=list_assistant_deliveries,
        replay=replay_assistant_delivery,
        replay_failed=replay_failed_assistant_deliveries,
    ).endpoints(),
)
