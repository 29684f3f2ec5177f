"""Events on their way to the URLs of customers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """
    An event on its way to a customer's URL, complete but for its signature.

    ``delivery_id`` stays the same through all attempts and is the receiver's key for recognising doubles;
    it is the ``event_id`` where an event goes to one URL only. Events of one ``call_sid`` to one URL are
    delivered in the order they were published. One that goes to a subscription is signed with the secret of
    that; any other with the account's.
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
class Broadcast:
    """
    An event for whoever has subscribed to it; when it is written it becomes a ``WebhookEvent`` for each.

    ``fields`` is the body but for its ``id``, which is the id of each delivery and comes first. Subscriptions
    are those of ``service`` (``calls``, ``masking``, ``assistant``, ``messaging``) that list ``event``.
    Events keep their order by ``call_sid``; those of a chat message have its id there.
    """

    event_id: str
    account_sid: str
    service: str
    event: str
    fields: Mapping[str, Any]
    created_at: datetime
    call_sid: str | None = None


PublishedEvent = WebhookEvent | Broadcast
"""What a change publishes in its own transaction."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """
    A subscription as its deliveries need it.

    ``secret`` is None for one that has none of its own; ``problem`` says why a stored one cannot be used.
    """

    subscription_id: str
    service: str
    url: str
    is_active: bool
    secret: str | None = field(default=None, repr=False)
    problem: str | None = None


@dataclass(slots=True)
class Delivery:
    """One event's way to one URL: ``pending``, ``delivered`` or ``failed``, and after how many attempts."""

    event: WebhookEvent
    next_attempt_at: datetime
    status: Literal["pending", "delivered", "failed"] = "pending"
    attempts: int = 0
    response_code: int = 0
    last_error: str | None = None
    delivered_at: datetime | None = None
