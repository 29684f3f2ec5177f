"""Webhook events and their deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """
    Event for one URL of a customer, without its signature.

    ``delivery_id`` is the same in all attempts, so that receivers detect duplicates; it is the ``event_id``
    if an event goes to one URL only. Events of one ``call_sid`` to one URL are delivered in order of
    publication. An event for a subscription is signed with the subscription's secret, any other with the
    account's.
    """

    event_id: str
    account_sid: str
    event: str
    url: str
    body: bytes
    created_at: datetime
    call_sid: str | None = None
    method: Literal["POST", "GET"] = "POST"
    delivery_id: str = ""
    subscription_id: str | None = None

    def __post_init__(self) -> None:
        if not self.delivery_id:
            object.__setattr__(self, "delivery_id", self.event_id)


@dataclass(frozen=True, slots=True)
class SubscribedEvent:
    """
    Event for all its subscriptions; when written it becomes one ``WebhookEvent`` for each.

    ``fields`` is the body without its ``id``, which is the id of each delivery and comes first. Recipients
    are the subscriptions of ``service`` (``calls``, ``masking``, ``assistant``, ``messaging``) that list
    ``event``. Events keep their order by ``call_sid``; those of a chat message have its id there.
    """

    event_id: str
    account_sid: str
    service: str
    event: str
    fields: Mapping[str, Any]
    created_at: datetime
    call_sid: str | None = None


PublishedEvent = WebhookEvent | SubscribedEvent
"""Event that a change publishes in its own transaction."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """
    Subscription data needed by its deliveries.

    ``secret`` is None without one of its own; ``problem`` is the reason why a stored one cannot be used.
    """

    subscription_id: str
    service: str
    url: str
    is_active: bool
    secret: str | None = field(default=None, repr=False)
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """
    One attempt at a delivery.

    Attributes:
        at: Time of its beginning.
        number: Its number since the last replay, from 1. Nodes of an older version log no attempts, so that
            numbers may be missing.
        took_ms: Time to the status line or the failure; None if the request was not sent.
        status: HTTP status; 0 without a response.
        problem: Error text; None if the receiver accepted the event.
        body: Beginning of the response's body; None for one that is no text.
        body_bytes: Length of the body, as far as it was read.
        is_whole: False if `body` or `body_bytes` is only the beginning.
    """

    at: datetime
    number: int
    took_ms: int | None
    status: int = 0
    problem: str | None = None
    body: str | None = ""
    body_bytes: int = 0
    is_whole: bool = True


@dataclass(slots=True)
class Delivery:
    """
    Delivery of an event to one URL, with its status and number of attempts.

    ``attempt_log`` has the newest attempts since the last replay, oldest first.
    """

    event: WebhookEvent
    next_attempt_at: datetime
    status: Literal["pending", "delivered", "failed"] = "pending"
    attempts: int = 0
    response_code: int = 0
    last_error: str | None = None
    delivered_at: datetime | None = None
    attempt_log: Sequence[Attempt] = ()
