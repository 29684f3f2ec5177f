"""Request and response models of listening in on active calls."""

from typing import Annotated

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Timestamp
from api.schemas.webrtc import MAX_SDP_CHARS

__all__ = ["CallListenerObject", "CallListenersObject", "ListenBody", "NewCallListenerObject"]


class ListenBody(RequestModel):
    """A browser that shall hear a call."""

    sdp: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_SDP_CHARS,
            description="Offer of the browser's RTCPeerConnection, with one audio section that is recvonly.",
        ),
    ]


class CallListenerObject(ResponseModel):
    """Somebody who listens in on a call, or has."""

    listener_sid: str
    call_sid: str
    listened_by: Annotated[
        str, Field(description="Id of the API key, or operator: with the name of an operator of the server.")
    ]
    created_at: Timestamp
    ended_at: Timestamp | None
    reason: Annotated[str | None, Field(description="Reason of the end.")]


class NewCallListenerObject(CallListenerObject):
    """A listener, with the answer to the browser's offer."""

    sdp: Annotated[str, Field(description="Answer for the browser's RTCPeerConnection.")]


class CallListenersObject(ResponseModel):
    """Everybody who listens or has listened to a call."""

    call_sid: str
    listeners: Annotated[list[CallListenerObject], Field(description="In order, the first 200.")]
