"""Request and response models of the recording endpoints."""

from typing import Annotated

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Timestamp

__all__ = ["CallMessages", "MessageObject", "RecordingLinkObject", "RecordingQuery"]


class RecordingLinkObject(ResponseModel):
    """Link to a recording, valid for an hour without a key."""

    url: Annotated[
        str, Field(description="Path and query; put the origin of the API before it, without /v1.")
    ]
    call_sid: str


class MessageObject(ResponseModel):
    """A voicemail that a party left on a call."""

    message_sid: str
    duration_ms: int
    created_at: Timestamp
    recording_url: Annotated[str, Field(description="The path of the file; a key opens it.")]
    url: Annotated[
        str, Field(description="Path and query of a link that opens it for an hour, without a key.")
    ]


class CallMessages(ResponseModel):
    """Voicemails of a call, oldest first, without deleted ones."""

    call_sid: str
    messages: list[MessageObject]


class RecordingQuery(RequestModel):
    """Parameters of a signed link to a recording."""

    expires: Annotated[str, Field(description="Expiry of the link, in epoch seconds.")] | None = None
    signature: Annotated[str, Field(description="Signature of the link.")] | None = None
