"""
Webhook subscriptions: model and validation.

Each service of the platform has its own subscriptions, limited to the events of that service.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from callcontrol.calls.records.end import CALL_MISSED
from callcontrol.clock import timestamp
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models import SubscribedEvent

SubscribedService = Literal["calls", "masking", "assistant", "messaging"]

WEBHOOK_TEST: Final = "webhook.test"

MAX_REPLAYED: Final = 10_000
"""Most failed deliveries that one request sends again."""

MIN_SECRET_CHARS: Final = 6
MAX_SECRET_CHARS: Final = 256
_MAX_DESCRIPTION_CHARS: Final = 256
_STANDARD_PREFIX: Final = "whsec_"
_CHANGEABLE: Final = ("url", "secret", "event_types", "description", "is_active")


@dataclass(frozen=True, slots=True)
class ServiceEvents:
    """
    Events of a service that can be subscribed to; ``webhook.test`` is sent without subscribing.

    Attributes:
        service: Service of the subscriptions.
        names: Names of its events.
        created_at: Field of an event for the time of its creation.
        numbered: True if the service identifies its subscriptions by number.
        called: Name of a subscription in texts.
        switch: Field that pauses and resumes a subscription, as customers write it.
    """

    service: SubscribedService
    names: tuple[str, ...]
    created_at: str = "created_at"
    numbered: bool = False
    called: str = "subscription"
    switch: str = "is_active"

    @property
    def was_paused(self) -> str:
        """Error of a delivery that was pending when its subscription was paused."""
        return f"the {self.called} was paused"

    def published(
        self,
        event: str,
        data: Mapping[str, Any],
        *,
        event_id: str,
        account_sid: str,
        at: datetime,
        order: str | None = None,
    ) -> SubscribedEvent:
        """An event with its data; those with the same ``order`` are delivered one after the other."""
        return SubscribedEvent(
            event_id=event_id,
            account_sid=account_sid,
            service=self.service,
            event=event,
            fields={"event": event, self.created_at: timestamp(at), "data": data},
            created_at=at,
            call_sid=order,
        )


CALL_EVENTS: Final = ServiceEvents("calls", (CALL_MISSED,))
"""Events of calls; each product declares its own."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """
    Subscription of an account's URL to events of a service.

    Without a ``secret`` deliveries are unsigned, except masking events, which the account's secrets sign. An
    inactive subscription gets nothing. In a service with numbers it has a ``number`` once it is stored.
    """

    subscription_id: str
    account_sid: str
    service: SubscribedService
    url: str
    event_types: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    secret: str | None = field(default=None, repr=False)
    description: str | None = None
    is_active: bool = True
    number: int | None = None

    @property
    def has_secret(self) -> bool:
        """True if the subscription has a signing secret of its own."""
        return self.secret is not None


@dataclass(frozen=True, slots=True)
class LoggedDelivery:
    """
    Delivery in the log of its subscription.

    ``status`` is ``pending``, ``retrying`` after the first attempt that failed, ``delivered`` or ``failed``;
    ``response_code`` is 0 without a response.
    """

    delivery_id: str
    subscription_id: str
    event_type: str
    call_sid: str | None
    status: Literal["pending", "retrying", "delivered", "failed"]
    attempts: int
    max_attempts: int
    response_code: int
    error: str | None
    created_at: datetime
    next_attempt_at: datetime | None
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """Number of deliveries that are sent again; ``truncated`` if the limit left some out."""

    count: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a test event: HTTP status, 0 without a response, and the error, None on success."""

    status_code: int
    error: str | None = None

    @property
    def success(self) -> bool:
        """True if the receiver accepted the event."""
        return self.error is None


def new_subscription(
    subscription_id: str,
    account_sid: str,
    events: ServiceEvents,
    values: Mapping[str, Any],
    now: datetime,
) -> Subscription:
    """
    Build a subscription from the given fields.

    Raises:
        ValidationFailed: With every wrong, missing or unknown field. The URL's destination is checked
            elsewhere.
    """
    missing = [name for name in ("url", "event_types") if values.get(name) is None]
    blank = Subscription(subscription_id, account_sid, events.service, "", (), now, now)
    return _checked(blank, events, values, missing)


def changed_subscription(
    former: Subscription, events: ServiceEvents, values: Mapping[str, Any], now: datetime
) -> Subscription:
    """
    Apply the given fields to a subscription; None removes a secret or a description.

    Raises:
        ValidationFailed: With every wrong or unknown field.
    """
    emptied = [name for name in ("url", "event_types", "is_active") if values.get(name, former) is None]
    changed = _checked(former, events, values, emptied)
    return changed if changed == former else replace(changed, updated_at=now)


def wrong_values(events: ServiceEvents, values: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the event types and the secret; values of another type are reported elsewhere."""
    errors: list[FieldError] = []
    names, secret = values.get("event_types"), values.get("secret")
    if isinstance(names, Sequence) and not isinstance(names, str):
        errors += _event_errors(names, events.names)
    if isinstance(secret, str):
        errors += secret_errors(secret)
    return errors


def secret_errors(secret: str) -> list[FieldError]:
    """Errors of a signing secret."""
    if not MIN_SECRET_CHARS <= len(secret) <= MAX_SECRET_CHARS:
        message = f"must have {MIN_SECRET_CHARS} to {MAX_SECRET_CHARS} characters"
        return [FieldError("secret", message)]
    if not secret.isprintable():
        return [FieldError("secret", "must not hold control characters")]
    if secret.isspace():
        return [FieldError("secret", "must not consist of spaces")]
    if secret.startswith(_STANDARD_PREFIX) and not _is_key(secret.removeprefix(_STANDARD_PREFIX)):
        return [FieldError("secret", "must hold base64 behind whsec_, as Standard Webhooks has it")]
    return []


def _checked(
    former: Subscription, events: ServiceEvents, values: Mapping[str, Any], missing: Sequence[str]
) -> Subscription:
    errors = [FieldError(name, "is not a known field") for name in values if name not in _CHANGEABLE]
    errors += [FieldError(name, "is required") for name in missing]
    given = {name: value for name, value in values.items() if name in _CHANGEABLE and name not in missing}
    errors += wrong_values(events, given)
    if "event_types" in given:
        given["event_types"] = tuple(dict.fromkeys(map(str, given["event_types"])))
    if len(given.get("description") or "") > _MAX_DESCRIPTION_CHARS:
        errors.append(FieldError("description", f"must have at most {_MAX_DESCRIPTION_CHARS} characters"))
    if errors:
        raise ValidationFailed(errors)
    return replace(former, **given)


def _event_errors(wanted: Sequence[str], known: Sequence[str]) -> list[FieldError]:
    if not wanted:
        return [FieldError("event_types", f"must name at least one of {', '.join(known)}")]
    if all(name in known for name in wanted):
        return []
    return [FieldError("event_types", f"must hold only {', '.join(known)}")]


def _is_key(encoded: str) -> bool:
    """Return True if a Standard Webhooks library can decode a key from the text."""
    try:
        return bool(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        return False
