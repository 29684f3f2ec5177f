"""The masking webhook: a test of it, what was sent to it, and sending that again (additive)."""

from __future__ import annotations

from typing import Any

from api.endpoint import Context, Endpoint, Reply
from api.routes.masking import MASKING
from api.routes.webhook_log import logged, replayed_all, replayed_one, tested
from api.schemas.base import NoBody, NoQuery
from api.schemas.subscriptions import (
    DeliveryLog,
    DeliveryObjects,
    ReplayedAll,
    ReplayedOne,
    ReplayFailed,
    TestOutcome,
)
from callcontrol.errors import Conflict, NotFound

__all__ = ["ENDPOINTS"]


async def test_masking_webhook(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /masking/settings/webhook/test: 200 however the receiver takes it."""
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
    """The subscription that the account's masking webhook is."""
    settings = await context.services.masking_settings.of(context.account_sid)
    if settings.subscription_id is None:
        raise NotFound("There is no masking webhook; set webhook_url in the masking settings first.")
    return settings.subscription_id


_WEBHOOK = "/v1/masking/settings/webhook"
_LOG = _WEBHOOK + "/deliveries"
_WRITE: dict[str, Any] = {"scope": "masking.write", **MASKING}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_WEBHOOK + "/test",
        handler=test_masking_webhook,
        summary="Send a test event to the masking webhook now",
        description="The answer is 200 however the receiver takes it, and says how it did.",
        response=TestOutcome,
        errors=(NotFound,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_LOG,
        handler=list_masking_deliveries,
        scope="masking.read",
        summary="The delivery log of the masking webhook, newest first",
        query=DeliveryLog,
        response=DeliveryObjects,
        errors=(NotFound,),
        **MASKING,
    ),
    Endpoint(
        method="POST",
        path=_LOG + "/{delivery_id}/replay",
        handler=replay_masking_delivery,
        summary="Send an event of a masked call again",
        description="It keeps its id. It is not charged.",
        response=ReplayedOne,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="POST",
        path=_LOG + "/replay",
        handler=replay_failed_masking_deliveries,
        summary="Send failed events of masked calls again",
        description="Up to 10,000 of the window, the oldest first. They keep their ids and are not charged.",
        body=ReplayFailed,
        response=ReplayedAll,
        errors=(NotFound, Conflict),
        **_WRITE,
    ),
)
