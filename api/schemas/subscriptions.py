"""Request and response models of webhook subscriptions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel, all_optional
from api.schemas.common import PeriodRequest, Timestamp
from callcontrol.egress.url_policy import WEB_SCHEMES, check_url
from callcontrol.errors import DomainError, FieldError, ValidationFailed
from callcontrol.webhooks.subscriptions import CALL_EVENTS, MAX_SECRET_CHARS, MIN_SECRET_CHARS, wrong_values

__all__ = [
    "CreateSubscription",
    "DeliveryLog",
    "DeliveryObject",
    "DeliveryObjects",
    "ReplayFailed",
    "ReplayedAll",
    "ReplayedOne",
    "Secret",
    "SubscriptionObject",
    "SubscriptionObjects",
    "TestOutcome",
    "UpdateSubscription",
    "WebhookRequest",
    "WebhookUrl",
    "wrong_url",
]

WebhookUrl = Annotated[
    str,
    Field(
        max_length=2048,
        description="https://, and public wherever its name leads.",
        json_schema_extra={"pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\]+$"},
    ),
]
# A secret is encrypted before it is stored, so any text is safe; the domain refuses one that cannot sign.
Secret = Annotated[
    str,
    Field(
        description=(
            "Signs what is sent; never shown again. Libraries for Standard Webhooks need whsec_ and base64;"
            " what follows whsec_ must be base64."
        ),
        json_schema_extra={"minLength": MIN_SECRET_CHARS, "maxLength": MAX_SECRET_CHARS},
    ),
]
_EventTypes = Annotated[
    list[str],
    Field(
        max_length=50,
        description=f"Which events are sent: {', '.join(CALL_EVENTS.names)}.",
        json_schema_extra={
            "minItems": 1,
            "items": {"type": "string", "enum": list(CALL_EVENTS.names)},
        },
    ),
]
_Moment = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]


def wrong_url(sound: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the field `url`, if it is there; its host is checked elsewhere."""
    if "url" not in sound:
        return []
    schemes = WEB_SCHEMES if sound["url"].lower().startswith("http:") else ("https",)
    try:
        check_url(sound["url"], schemes=schemes, allow_private=True)
    except ValidationFailed as refusal:
        return list(refusal.errors)
    except DomainError as refusal:
        return [FieldError("url", refusal.message)]
    return []


class WebhookRequest(RequestModel):
    """A webhook, new or changed: its URL and secret follow the same rules in every service."""

    urls = {"url": WEB_SCHEMES}

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the URL and the secret; the URL's host is checked elsewhere."""
        return wrong_values(CALL_EVENTS, sound) + wrong_url(sound)


class CreateSubscription(WebhookRequest):
    """A new subscription."""

    url: WebhookUrl
    event_types: _EventTypes
    secret: Secret | None = None


class UpdateSubscription(WebhookRequest):
    """Fields to change; a null secret removes it, omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    url: WebhookUrl = ""
    event_types: _EventTypes = []
    secret: Secret | None = None
    is_active: Annotated[bool, Field(description="false pauses deliveries.")] = True


class SubscriptionObject(ResponseModel):
    """A subscription; its secret is never shown."""

    id: str
    url: str
    event_types: list[str]
    has_secret: bool
    is_active: bool
    created_at: Timestamp
    updated_at: Timestamp


class SubscriptionObjects(ResponseList[SubscriptionObject]):
    """All subscriptions of the account, newest first."""


class TestOutcome(ResponseModel):
    """Result of a test event."""

    success: bool
    status_code: Annotated[int, Field(description="0 without a response.")]
    error: Annotated[str, Field(description="Error; empty on success.")]


class DeliveryLog(RequestModel):
    """Number of log entries to return."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50


class DeliveryObject(ResponseModel):
    """Delivery of one event to the subscription's URL."""

    id: str
    subscription_id: str
    event_type: str
    call_sid: Annotated[str, Field(description="Empty for an event without a call.")]
    status: Literal["pending", "retrying", "delivered", "failed"]
    attempts: int
    max_attempts: int
    response_code: Annotated[int, Field(description="0 without a response.")]
    error: Annotated[str, Field(description="Last error; empty without one.")]
    created_at: Timestamp
    next_attempt_at: Annotated[Timestamp | None, Field(description="null without a further attempt.")]
    delivered_at: Timestamp | None


class DeliveryObjects(ResponseList[DeliveryObject]):
    """The newest deliveries, newest first."""


class ReplayFailed(PeriodRequest):
    """Filter of the deliveries to resend."""

    period = ("since", "until")

    status: Annotated[Literal["failed"], Field(description="Only failed ones can be resent.")] = "failed"
    since: Annotated[_Moment, Field(description="RFC 3339; inclusive, by creation time.")] | None = None
    until: Annotated[_Moment, Field(description="RFC 3339; inclusive, by creation time.")] | None = None


class ReplayedOne(ResponseModel):
    """Number of deliveries that are sent again."""

    replayed: Annotated[int, Field(description="1; 0 when it is being sent at this moment.")]


class ReplayedAll(ResponseModel):
    """Number of deliveries that are sent again."""

    replayed: int
    truncated: Annotated[bool, Field(description="True if more are left: repeat the request.")]
