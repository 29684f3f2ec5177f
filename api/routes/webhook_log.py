"""What is done with the deliveries of any webhook: it is tested, its log is read, events are sent again."""

from __future__ import annotations

from typing import Any

from api.endpoint import Context, Reply
from api.moments import time_span
from api.present import rfc3339
from api.schemas.base import NoBody, NoQuery
from api.schemas.subscriptions import DeliveryLog, ReplayFailed
from api.services import Subscriptions
from callcontrol.subscriptions import LoggedDelivery

__all__ = ["logged", "replayed_all", "replayed_one", "tested"]


async def tested(context: Context[NoBody, NoQuery], webhooks: Subscriptions, subscription_id: str) -> Reply:
    """Send a test event; how the receiver took it is the answer, not the status of it."""
    trial = await webhooks.test(context.account_sid, subscription_id)
    return Reply({"success": trial.success, "status_code": trial.status_code, "error": trial.error or ""})


async def logged(
    context: Context[NoBody, DeliveryLog], webhooks: Subscriptions, subscription_id: str
) -> Reply:
    """The delivery log."""
    found = await webhooks.deliveries(context.account_sid, subscription_id, context.query.limit)
    return Reply([_json(delivery) for delivery in found])


async def replayed_one(
    context: Context[NoBody, NoQuery], webhooks: Subscriptions, subscription_id: str
) -> Reply:
    """Send the delivery that the path names again."""
    replayed = await webhooks.replay(context.account_sid, subscription_id, context.path["delivery_id"])
    return Reply({"replayed": replayed.count})


async def replayed_all(
    context: Context[ReplayFailed, NoQuery], webhooks: Subscriptions, subscription_id: str
) -> Reply:
    """Send what has failed again."""
    since, until = time_span(context.body.since, context.body.until, ("since", "until"))
    replayed = await webhooks.replay_failed(context.account_sid, subscription_id, since, until)
    return Reply({"replayed": replayed.count, "truncated": replayed.truncated})


def _json(delivery: LoggedDelivery) -> dict[str, Any]:
    return {
        "id": delivery.delivery_id,
        "subscription_id": delivery.subscription_id,
        "event_type": delivery.event_type,
        "call_sid": delivery.call_sid or "",
        "status": delivery.status,
        "attempts": delivery.attempts,
        "max_attempts": delivery.max_attempts,
        "response_code": delivery.response_code,
        "error": delivery.error or "",
        "created_at": rfc3339(delivery.created_at),
        "next_attempt_at": rfc3339(delivery.next_attempt_at),
        "delivered_at": rfc3339(delivery.delivered_at),
    }
