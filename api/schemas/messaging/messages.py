"""Messages (messaging specification, POST /messages; the additive lists and the sandbox)."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.base import Reach
from api.schemas.common import Filled, Page, PerPage, QueryNumber, Timestamp
from api.schemas.messaging.base import CamelQuery, CamelRequest, CamelResponse
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.egress.url_policy import check_url
from callcontrol.errors import FieldError
from callcontrol.messaging.messages import (
    MAX_BODY,
    MAX_CAPTION,
    MAX_DESCRIPTION,
    MAX_EDGE,
    MAX_FILENAME,
    MAX_ID,
    MAX_PARAMETER,
    MAX_ROW_TITLE,
    MAX_ROWS,
    MAX_TEXT,
    media_url_errors,
    wrong_parts,
    wrong_recipient,
)
from callcontrol.messaging.models import MessageStatus, MessageType
from callcontrol.messaging.templates import DEFAULT_LANGUAGE

__all__ = [
    "MessageList",
    "MessageObject",
    "SandboxInbound",
    "SendMessageBody",
    "SentMessage",
]

# The domain reads it, with the parts of the message, so that one response names every wrong field.
Recipient = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NUMBER_CHARS,
        description="A telephone number, in any common writing.",
        examples=["+919800100000"],
    ),
]
# Types whose part has their name: it is checked although the type is wrong.
_ONE_PART: tuple[MessageType, ...] = ("text", "template", "media")
Text = Annotated[Filled, Field(max_length=MAX_TEXT)]
Edge = Annotated[Filled, Field(max_length=MAX_EDGE)]


# Checks a URL as such; its host is checked elsewhere.
_check_url = partial(check_url, allow_private=True)


class TemplatePart(CamelRequest):
    """An approved template and the values of its variables, in order."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    language: Annotated[str, Field(min_length=2, max_length=10)] = DEFAULT_LANGUAGE
    body_parameters: Annotated[
        list[Annotated[Filled, Field(max_length=MAX_PARAMETER)]], Field(max_length=100)
    ] = []


class MediaPart(CamelRequest):
    """A file that the network fetches itself."""

    type: Literal["image", "video", "audio", "document"]
    url: Annotated[str, Field(min_length=1, max_length=2048, description="http or https, of a public host.")]
    caption: Annotated[
        Annotated[Filled, Field(max_length=MAX_CAPTION)] | None, Field(description="Not of audio.")
    ] = None
    filename: Annotated[
        Annotated[Filled, Field(max_length=MAX_FILENAME)] | None, Field(description="Shown with a document.")
    ] = None


class ButtonPart(CamelRequest):
    """A button with a title of up to 20 characters, or a row of a list with one of up to 24."""

    id: Annotated[Filled, Field(max_length=MAX_ID)]
    title: Annotated[Filled, Field(max_length=MAX_ROW_TITLE)]
    description: Annotated[
        Annotated[Filled, Field(max_length=MAX_DESCRIPTION)] | None,
        Field(description="Of rows of lists only."),
    ] = None


class InteractivePart(CamelRequest):
    """A text with one to three buttons, or with a list of one to ten rows."""

    body: Annotated[Filled, Field(max_length=MAX_BODY)]
    buttons: Annotated[list[ButtonPart], Field(min_length=1, max_length=MAX_ROWS)]
    header: Edge | None = None
    footer: Edge | None = None


class SendMessageBody(CamelRequest):
    """One message to one recipient: its type, and the part that the type requires."""

    to: Recipient
    type: MessageType
    text: Annotated[Text | None, Field(description="Of the type text.", repr=False)] = None
    template: Annotated[TemplatePart | None, Field(description="Of the type template.", repr=False)] = None
    media: Annotated[MediaPart | None, Field(description="Of the type media.", repr=False)] = None
    interactive: Annotated[
        InteractivePart | None, Field(description="Of the types buttons and list.", repr=False)
    ] = None

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the recipient and the parts."""
        errors = list(wrong_recipient("to", sound["to"])) if "to" in sound else []
        if "type" in sound:
            return [*errors, *wrong_parts(sound["type"], sound, _check_url)]
        for kind in _ONE_PART:
            if kind in sound:
                errors += wrong_parts(kind, {kind: sound[kind]}, _check_url)
        return errors

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """Errors of the host of a file."""
        media = given.get("media")
        url = media.get("url") if isinstance(media, Mapping) else None
        return media_url_errors("media.url", url, reach.rules.check_url) if isinstance(url, str) else []


class SentMessage(CamelResponse):
    """A message that was accepted for delivery."""

    success: Literal[True]
    message_id: str
    to: str
    type: MessageType
    timestamp: Timestamp


class MessageError(CamelResponse):
    """Reason of a failed message."""

    code: str
    message: str | None


class MessageObject(CamelResponse):
    """A message in either direction and its delivery state."""

    message_id: str
    direction: Literal["outbound", "inbound"]
    from_: Annotated[str, Field(alias="from")]
    to: str
    type: MessageType
    status: MessageStatus
    campaign_id: int | None
    text: str | None
    template: dict[str, Any] | None
    media: dict[str, Any] | None
    interactive: dict[str, Any] | None
    error: MessageError | None
    created_at: Timestamp
    sent_at: Timestamp | None
    delivered_at: Timestamp | None
    read_at: Timestamp | None
    failed_at: Timestamp | None


class MessageList(CamelQuery):
    """Filters of a list of messages."""

    status: MessageStatus | None = None
    direction: Literal["outbound", "inbound"] | None = None
    to: QueryNumber | None = None
    from_: Annotated[QueryNumber | None, Field(alias="from")] = None
    campaign_id: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None
    page: Page = 1
    page_size: PerPage = 50


class SandboxInbound(CamelRequest):
    """A simulated inbound message to the account's channel."""

    from_: Annotated[Recipient, Field(alias="from")]
    text: Annotated[Text, Field(repr=False)]

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """The error of a sender that is no telephone number."""
        return list(wrong_recipient("from", sound["from"])) if "from" in sound else []
