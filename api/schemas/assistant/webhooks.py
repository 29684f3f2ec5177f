"""Request and response models of the voice assistant's webhooks."""

from typing import Annotated

from pydantic import ConfigDict, Field

from api.schemas.base import ResponseList, ResponseModel, all_optional
from api.schemas.common import Timestamp
from api.schemas.subscriptions import WebhookRequest, WebhookUrl
from callcontrol.assistant.calls import AssistantEvent
from callcontrol.webhooks.subscriptions import MAX_SECRET_CHARS, MIN_SECRET_CHARS

__all__ = [
    "CreateWebhook",
    "CreatedWebhook",
    "UpdateWebhook",
    "WebhookDescription",
    "WebhookObject",
    "WebhookObjects",
    "WebhookSecret",
]

_Events = Annotated[list[AssistantEvent], Field(min_length=1, max_length=50)]
WebhookSecret = Annotated[
    str,
    Field(
        description=(
            "Signs what is sent. Libraries for Standard Webhooks need whsec_ and base64; what follows whsec_"
            " must be base64."
        ),
        json_schema_extra={
            "writeOnly": True,
            "minLength": MIN_SECRET_CHARS,
            "maxLength": MAX_SECRET_CHARS,
        },
    ),
]
WebhookDescription = Annotated[str, Field(max_length=256)]


class CreateWebhook(WebhookRequest):
    """A new webhook; without a secret, one is generated."""

    url: WebhookUrl
    events: _Events
    secret: WebhookSecret | None = None
    description: WebhookDescription | None = None


class UpdateWebhook(WebhookRequest):
    """Fields to change; a null secret means signing with the account's, omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    url: WebhookUrl = ""
    events: _Events = ["call.completed"]
    secret: WebhookSecret | None = None
    description: WebhookDescription | None = None
    is_active: Annotated[bool, Field(description="false pauses deliveries.")] = True


class WebhookObject(ResponseModel):
    """A webhook; its secret is never shown again."""

    id: str
    url: str
    events: list[AssistantEvent]
    description: str | None
    is_active: bool
    created_at: Timestamp
    updated_at: Timestamp


class CreatedWebhook(WebhookObject):
    """A new webhook, with its secret."""

    secret: Annotated[str, Field(description="Shown this once.")]


class WebhookObjects(ResponseList[WebhookObject]):
    """All webhooks of the account, newest first."""
