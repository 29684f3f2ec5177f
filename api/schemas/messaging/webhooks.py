"""Request and response models of messaging's webhook endpoints."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from api.schemas.assistant.webhooks import WebhookDescription, WebhookSecret
from api.schemas.base import ResponseList, all_optional
from api.schemas.common import Timestamp
from api.schemas.messaging.base import CamelRequest, CamelResponse
from api.schemas.subscriptions import TestOutcome, WebhookRequest, WebhookUrl
from callcontrol.messaging.events import MessagingEvent

__all__ = [
    "CreateWebhookEndpoint",
    "CreatedWebhookEndpoint",
    "EndpointDelivery",
    "EndpointDeliveries",
    "EndpointTestOutcome",
    "UpdateWebhookEndpoint",
    "WebhookEndpointObject",
    "WebhookEndpointObjects",
]

_Events = Annotated[list[MessagingEvent], Field(min_length=1, max_length=50)]


class CreateWebhookEndpoint(WebhookRequest, CamelRequest):
    """A new webhook endpoint; without a secret, one is generated."""

    url: WebhookUrl
    events: _Events
    secret: WebhookSecret | None = None
    description: WebhookDescription | None = None


class UpdateWebhookEndpoint(WebhookRequest, CamelRequest):
    """Fields to change; omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    url: WebhookUrl = ""
    events: _Events = ["message.failed"]
    secret: WebhookSecret = ""
    description: WebhookDescription | None = None
    is_active: Annotated[bool, Field(description="false pauses deliveries.")] = True


class WebhookEndpointObject(CamelResponse):
    """A webhook endpoint; its secret is never shown again."""

    id: int
    url: str
    events: list[MessagingEvent]
    description: str | None
    is_active: bool
    created_at: Timestamp
    updated_at: Timestamp


class CreatedWebhookEndpoint(WebhookEndpointObject):
    """A new webhook endpoint, with its secret."""

    secret: Annotated[str, Field(description="Shown this once.")]


class WebhookEndpointObjects(ResponseList[WebhookEndpointObject]):
    """All webhook endpoints of the account, newest first."""


class EndpointTestOutcome(TestOutcome):
    """Result of a test event."""

    model_config = CamelResponse.model_config


class EndpointDelivery(CamelResponse):
    """Delivery of one event to the endpoint's URL."""

    id: Annotated[str, Field(description="The webhook-id of the request, and the id in its body.")]
    endpoint_id: int
    event: MessagingEvent
    message_id: Annotated[str | None, Field(description="null for an event without a message.")]
    status: Literal["pending", "retrying", "delivered", "failed"]
    attempts: int
    max_attempts: int
    response_code: Annotated[int, Field(description="0 without a response.")]
    error: Annotated[str, Field(description="Last error; empty without one.")]
    created_at: Timestamp
    next_attempt_at: Annotated[Timestamp | None, Field(description="null without a further attempt.")]
    delivered_at: Timestamp | None


class EndpointDeliveries(ResponseList[EndpointDelivery]):
    """The newest deliveries, newest first."""
