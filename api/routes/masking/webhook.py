"""The masking webhook: test, delivery log and replay (additive)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.masking.calls import MASKING
from api.routes.webhook_log import WebhookLog, logged, replayed_all, replayed_one, tested
from api.schemas.base import NoBody, NoQuery
from api.schemas.subscriptions import DeliveryLog, ReplayFailed
from callcontrol.errors import NotFound

__all__ = ["ENDPOINTS"]


async def test_masking_webhook(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /masking/settings/webhook/test: 200 whatever the receiver answers."""
    return await tested(context, context.services.masking_webhooks, await _webhook(context))


async def list_masking_deliveries(context: Context[NoBody, DeliveryLog]) -> Reply:
    """Answer GET /masking/settings/webhook/deliveries."""
    return await logged(context, context.services.masking_webhooks, await _webhook(context))


async def replay_masking_delivery(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /masking/settings/webhook/deliveries/{delivery_id}/replay."""
    return await replayed_one(context, context.services.masking_webhooks, await _webhook(context))


async def replay_failed_masking_deliveries(context: Context[ReplayFailed, NoQuery]) -> Reply:
    """Answer POST /masking/settings/webhook/deliveries/replay."""
    return await replayed_all(context, context.services.masking_webhooks, await _webhook(context))


async def _webhook(context: Context[Any, Any]) -> str:
    """Subscription id of the account's masking webhook."""
    settings = await context.services.masking_settings.of(context.account_sid)
    if settings.subscription_id is None:
        raise NotFound("There is no masking webhook; set webhook_url in the masking settings first.")
    return settings.subscription_id


ENDPOINTS: tuple[Endpoint[Any, Any], ...] = WebhookLog(
    path="/v1/masking/settings/webhook",
    webhook="the masking webhook",
    events="the events of masked calls",
    read={"scope": "masking.read", **MASKING},
    write={"scope": "masking.write", **MASKING},
    test=test_masking_webhook,
    log=list_masking_deliveries,
    replay=replay_masking_delivery,
    replay_failed=replay_failed_masking_deliveries,
    errors=(NotFound,),
).endpoints()
