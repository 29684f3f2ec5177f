"""Request and response models of the voice assistant's webhooks."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel, all_optional
from api.schemas.common import Timestamp
from api.schemas.subscriptions import WEBHOOK_URLS, WebhookUrl, wrong_webhook
from callcontrol.assistant.calls import AssistantEvent
from callcontrol.errors import FieldError
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


class CreateWebhook(RequestModel):
    """A new webhook; without a secret, one is generated."""

    url: WebhookUrl
    events: _Events
    secret: WebhookSecret | None = None
    description: WebhookDescription | None = None

    urls = WEBHOOK_URLS

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the URL and the secret."""
        return wrong_webhook(sound)


class UpdateWebhook(RequestModel):
    """Fields to change; a null secret means signing with the account's, omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    url: WebhookUrl = ""
    events: _Events = ["call.completed"]
    secret: WebhookSecret | None = None
    description: WebhookDescription | None = None
    is_active: Annotated[bool, Field(description="false pauses deliveries.")] = True

    urls = WEBHOOK_URLS

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the URL and the secret."""
        return wrong_webhook(sound)


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
