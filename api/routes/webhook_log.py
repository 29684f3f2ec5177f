"""Delivery endpoints common to all webhooks: test, log and replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from api.http.endpoint import Context, Endpoint, Handler, Reply
from api.http.time_ranges import time_span
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import rfc3339
from api.schemas.subscriptions import (
    DeliveryLog,
    DeliveryObjects,
    ReplayedAll,
    ReplayedOne,
    ReplayFailed,
    TestOutcome,
)
from api.services import Subscriptions
from callcontrol.errors import Conflict, DomainError
from callcontrol.webhooks.subscriptions import LoggedDelivery

__all__ = ["WebhookLog", "logged", "replayed_all", "replayed_one", "stored_values", "tested"]

TESTS_PER_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookLog:
    """
    Declares the four delivery endpoints of a webhook, below ``path``.

    ``webhook`` and ``events`` are the words for the webhook and its events in descriptions; ``read`` and
    ``write`` are the common fields of its endpoints. ``errors`` are those of a webhook that may not exist.
    ``outcome`` and ``listed`` are the response models of the test and the log, where they differ.
    """

    path: str
    webhook: str
    events: str
    read: Mapping[str, Any]
    write: Mapping[str, Any]
    test: Handler[NoBody, NoQuery]
    log: Handler[NoBody, DeliveryLog]
    replay: Handler[NoBody, NoQuery]
    replay_failed: Handler[ReplayFailed, NoQuery]
    errors: tuple[type[DomainError], ...] = ()
    outcome: type[BaseModel] = TestOutcome
    listed: type[BaseModel] = DeliveryObjects

    def endpoints(self) -> tuple[Endpoint[Any, Any], ...]:
        """Return the declarations."""
        log = self.path + "/deliveries"
        return (
            Endpoint(
                method="POST",
                path=self.path + "/test",
                handler=self.test,
                summary=f"Send a test event to {self.webhook} now",
                description="The answer is 200 however the receiver takes it, and says how it did.",
                response=self.outcome,
                errors=self.errors,
                **{"requests_per_minute": TESTS_PER_MINUTE, **self.write},
            ),
            Endpoint(
                method="GET",
                path=log,
                handler=self.log,
                summary=f"The delivery log of {self.webhook}, newest first",
                query=DeliveryLog,
                response=self.listed,
                errors=self.errors,
                **self.read,
            ),
            Endpoint(
                method="POST",
                path=log + "/{delivery_id}/replay",
                handler=self.replay,
                summary=f"Send one of {self.events} again",
                description="It keeps its id. It is not charged.",
                response=ReplayedOne,
                errors=(Conflict,),
                **self.write,
            ),
            Endpoint(
                method="POST",
                path=log + "/replay",
                handler=self.replay_failed,
                summary=f"Send those of {self.events} again that failed",
                description=(
                    "Up to 10,000 of the window, the oldest first. They keep their ids and are not charged."
                ),
                body=ReplayFailed,
                response=ReplayedAll,
                errors=(*self.errors, Conflict),
                **self.write,
            ),
        )


def stored_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the fields of a webhook's body to those of subscriptions."""
    return {"event_types" if name == "events" else name: value for name, value in given.items()}


async def tested(context: Context[NoBody, NoQuery], webhooks: Subscriptions, subscription_id: str) -> Reply:
    """Send a test event; the receiver's result is in the body, not in the status."""
    trial = await webhooks.test(context.account_sid, subscription_id)
    return Reply({"success": trial.success, "status_code": trial.status_code, "error": trial.error or ""})


async def logged(
    context: Context[NoBody, DeliveryLog], webhooks: Subscriptions, subscription_id: str
) -> Reply:
    """Return the newest deliveries."""
    found = await webhooks.deliveries(context.account_sid, subscription_id, context.query.limit)
    return Reply([_json(delivery) for delivery in found])


async def replayed_one(
    context: Context[NoBody, NoQuery], webhooks: Subscriptions, subscription_id: str
) -> Reply:
    """Resend the delivery in the path."""
    replayed = await webhooks.replay(context.account_sid, subscription_id, context.path["delivery_id"])
    return Reply({"replayed": replayed.count})


async def replayed_all(
    context: Context[ReplayFailed, NoQuery], webhooks: Subscriptions, subscription_id: str
) -> Reply:
    """Resend failed deliveries."""
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
