"""Request and response models of telephones in web pages, and of listening in."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import E164, Timestamp
from callcontrol.e164 import read_number
from callcontrol.errors import ValidationFailed
from callcontrol.models.parties import IDENTITY
from callcontrol.routing.targets import parse_address
from callcontrol.webrtc.aio.gateways import Direction, State
from callcontrol.webrtc.tokens import (
    DEFAULT_IDENTITY,
    DEFAULT_TOKEN_S,
    MAX_NUMBERS,
    MAX_TOKEN_S,
    MIN_TOKEN_S,
    normalise_callee,
)

__all__ = [
    "BrowserAnswerBody",
    "BrowserCallBody",
    "BrowserCallDialQuery",
    "BrowserCallObject",
    "BrowserCallQuery",
    "BrowserRestartBody",
    "CallListenerObject",
    "CallListenersObject",
    "IceServerObject",
    "ListenBody",
    "NewBrowserCallObject",
    "NewCallListenerObject",
    "PhoneEventsQuery",
    "PhoneTokenBody",
    "PhoneTokenObject",
]

_MAX_SDP_CHARS = 32_768
_MAX_PARAMETERS = 20
_MAX_VALUE_CHARS = 256
# Names that begin so are this server's own.
_PARAMETER = re.compile(r"(?!trunkline-)[A-Za-z][A-Za-z0-9-]{0,39}", re.IGNORECASE)


def _identity(text: str) -> str:
    if IDENTITY.fullmatch(text) is None:
        raise ValueError("must be 1 to 64 letters, digits and . _ -, the first a letter")
    return text


def _caller(text: str) -> str:
    if IDENTITY.fullmatch(text) is not None:
        return text
    try:
        return read_number(text)
    except ValueError:
        raise ValueError(
            "must be a number, or a name: 1 to 64 letters, digits and . _ -, the first a letter"
        ) from None


def _callee(text: str) -> str:
    try:
        return str(parse_address(text))
    except ValidationFailed as refusal:
        raise ValueError(refusal.errors[0].message) from None


def _allowed(text: str) -> str:
    try:
        return normalise_callee(text, field="may_call")
    except ValidationFailed as refusal:
        raise ValueError(refusal.errors[0].message) from None


def _parameter(name: str) -> str:
    if _PARAMETER.fullmatch(name) is None:
        raise ValueError(
            "must be 1 to 40 letters, digits and -, the first a letter, and not begin with trunkline-"
        )
    return name


def _value(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be printable ASCII")
    return text


Identity = Annotated[
    str, AfterValidator(_identity), Field(json_schema_extra={"pattern": f"^{IDENTITY.pattern}$"})
]
_Caller = Annotated[str, Field(max_length=64), AfterValidator(_caller)]
_Callee = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_callee)]
_Allowed = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_allowed)]
_Parameters = dict[
    Annotated[str, AfterValidator(_parameter)],
    Annotated[str, AfterValidator(_value), Field(min_length=1, max_length=_MAX_VALUE_CHARS)],
]


class PhoneTokenBody(RequestModel):
    """A new token."""

    identity: Annotated[Identity, Field(description="Name of the telephone, which the called side sees.")]
    from_: Annotated[
        E164 | None,
        Field(alias="from", description="A number of the account that is shown in place of the name."),
    ] = None
    may_call: Annotated[
        list[_Allowed],
        Field(
            max_length=MAX_NUMBERS,
            description="Numbers and addresses (browser:, sip:) that it may call, browser:* for all"
            " browsers, * for everybody; empty for all numbers of the account.",
        ),
    ] = []
    receives_calls: Annotated[bool, Field(description="The page may be called as its identity.")] = False
    ttl_seconds: Annotated[
        int, Field(ge=MIN_TOKEN_S, le=MAX_TOKEN_S, description="Seconds until it expires.")
    ] = DEFAULT_TOKEN_S


class IceServerObject(ResponseModel):
    """STUN or TURN servers with one credential, as an RTCPeerConnection takes them."""

    urls: list[str]
    username: Annotated[str, Field(description="Empty for STUN.")]
    credential: Annotated[str, Field(description="Empty for STUN.")]


class PhoneTokenObject(ResponseModel):
    """A token, which is shown only here."""

    token: str
    identity: str
    from_: Annotated[str | None, Field(alias="from")]
    may_call: list[str]
    receives_calls: bool
    expires_at: Timestamp
    ice_servers: Annotated[
        list[IceServerObject],
        Field(description="Servers for the page's connections, with credentials for as long as the token."),
    ]


class BrowserCallBody(RequestModel):
    """A call of a browser."""

    sdp: Annotated[
        str,
        Field(
            min_length=1, max_length=_MAX_SDP_CHARS, description="Offer of the browser's RTCPeerConnection."
        ),
    ]
    to: Annotated[
        _Callee,
        Field(
            description="A number, browser: with a telephone's name, or a sip: address at a gateway of yours."
        ),
    ]
    from_: Annotated[
        _Caller | None,
        Field(
            alias="from",
            description=f"Caller to show: a name (default: {DEFAULT_IDENTITY}), or a number of the account."
            " With a token always that of the token.",
        ),
    ] = None
    parameters: Annotated[
        _Parameters,
        Field(max_length=_MAX_PARAMETERS, description="X- header fields of the call, without X-."),
    ] = {}


class BrowserCallDialQuery(RequestModel):
    """Fields of a call of a browser beside an offer that is the body itself."""

    to: Annotated[
        _Callee | None, Field(description="As in JSON; required beside application/sdp, ignored beside JSON.")
    ] = None
    from_: Annotated[_Caller | None, Field(alias="from", description="As in JSON; ignored beside JSON.")] = (
        None
    )


class BrowserRestartBody(RequestModel):
    """Another path or direction of a browser's call."""

    sdp: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_MAX_SDP_CHARS,
            description="Offer after restartIce(), or with another direction: inactive holds the call.",
        ),
    ]


class BrowserAnswerBody(RequestModel):
    """Answer of a browser that is called."""

    sdp: Annotated[
        str,
        Field(
            min_length=1, max_length=_MAX_SDP_CHARS, description="Offer of the browser's RTCPeerConnection."
        ),
    ]


class PhoneEventsQuery(RequestModel):
    """The telephone that may be called."""

    identity: Annotated[
        Identity | None, Field(description="Name of the telephone; with a token always that of the token.")
    ] = None


class BrowserCallQuery(RequestModel):
    """Wait for a change."""

    after: Annotated[
        Literal["connecting", "ringing", "active"] | None,
        Field(description="Answer once the state is another, after 4 s at the latest."),
    ] = None


class BrowserCallObject(ResponseModel):
    """A call of a browser."""

    call_sid: Annotated[
        str,
        Field(description="Of a browser that calls: the inbound call, once the browser has connected."),
    ]
    direction: Annotated[Direction, Field(description="As the browser sees it.")]
    from_: Annotated[str, Field(alias="from")]
    to: str
    state: State
    reason: Annotated[str | None, Field(description="Reason of the end.")]
    sip_status: Annotated[int | None, Field(description="SIP status of a refusal.")]
    ended_at: Timestamp | None


class NewBrowserCallObject(BrowserCallObject):
    """A call of a browser, with the answer to its offer."""

    sdp: Annotated[str, Field(description="Answer for the browser's RTCPeerConnection.")]


class ListenBody(RequestModel):
    """A browser that shall hear a call."""

    sdp: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_MAX_SDP_CHARS,
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
