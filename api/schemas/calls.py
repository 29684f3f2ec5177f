"""Request and response models of the call endpoints."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from api.schemas.base import Reach, ResponseModel
from api.schemas.common import (
    E164,
    Cursor,
    CursorQuery,
    Digits,
    EndDate,
    Id,
    Page,
    PeriodRequest,
    PerPage,
    StartDate,
    Timestamp,
)
from api.schemas.forms import Callee, QueryAddress, StreamRate, StreamUrl, WebUrl
from api.schemas.model import ModelFields, model_errors
from api.schemas.streams import StreamFields
from api.schemas.verbs import HeardLanguage, Verb, check_names
from callcontrol.errors import FieldError
from callcontrol.instructions.verbs import unreachable_errors, verb_errors
from callcontrol.numbers.binding import BINDING_URLS
from media.streams import StreamSetupError, choose_stream

__all__ = [
    "CallList",
    "CallObject",
    "CallTranscriptObject",
    "CreateCall",
    "CreateStreamCall",
    "TraceObject",
]


MAX_HEADERS = 20
MAX_VERBS = 50
MIN_TIMEOUT_S, MAX_TIMEOUT_S, DEFAULT_TIMEOUT_S = 5, 120, 60
MAX_TIME_LIMIT_S = 14_400

StatusEvent = Literal["initiated", "ringing", "early-media", "answered", "completed"]
CallStatusName = Literal[
    "queued", "initiated", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"
]

_HEADER_NAME = re.compile(r"[Xx]-[A-Za-z0-9-]{1,60}")
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f]*")


def _header_name(name: str) -> str:
    if _HEADER_NAME.fullmatch(name) is None:
        raise ValueError("is not allowed; only X-* headers are passed on")
    return name


def _header_value(value: str) -> str:
    if len(value) > 256 or _PRINTABLE.fullmatch(value) is None:
        raise ValueError("must be at most 256 characters without control characters")
    return value


InviteHeaders = Annotated[
    dict[Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_value)]],
    Field(max_length=MAX_HEADERS, description="X-* headers of the INVITE."),
]


def _caller_name(name: str) -> str:
    if _PRINTABLE.fullmatch(name) is None:
        raise ValueError("must not contain control characters")
    return name


CallerName = Annotated[str, Field(max_length=80), AfterValidator(_caller_name)]


class CallFields(StreamFields):
    """Common fields of both requests that create a call."""

    from_: Annotated[
        E164,
        Field(alias="from", description="Caller-ID: a registered number of the account."),
    ]
    to: Callee
    sample_rate: Annotated[StreamRate, Field(description="8000 or 16000; default 8000.")] | None = None
    fallback_url: (
        Annotated[WebUrl, Field(description="Asked when server or agent cannot be reached.")] | None
    ) = None
    status_webhook_url: WebUrl | None = None
    status_webhook_events: Annotated[list[StatusEvent], Field(max_length=5)] = [
        "initiated",
        "ringing",
        "answered",
        "completed",
    ]
    timeout: Annotated[int, Field(ge=MIN_TIMEOUT_S, le=MAX_TIMEOUT_S, description="Ring seconds.")] = (
        DEFAULT_TIMEOUT_S
    )
    time_limit: Annotated[
        int, Field(ge=1, le=MAX_TIME_LIMIT_S, description="Longest duration in seconds.")
    ] = MAX_TIME_LIMIT_S
    machine_detection: Annotated[
        Literal["off", "detect", "hangup"],
        Field(description="Tell who answers, within five seconds; hangup: end the call of a machine."),
    ] = "off"
    record: bool = False
    recording_channels: Literal["mono", "dual"] = "dual"
    transcribe: Annotated[bool, Field(description="Once answered; needs a recogniser.")] = False
    transcription_language: HeardLanguage | None = None
    send_digits: (
        Annotated[Digits, Field(description="Played after the answer; w waits 0.5 s, W 1 s.")] | None
    ) = None
    caller_name: CallerName | None = None
    headers: InviteHeaders = {}
    tag: Annotated[str, Field(max_length=255)] | None = None
    carrier_sid: Annotated[Id, Field(description="Leave through this trunk only.")] | None = None
    app_sid: Annotated[Id, Field(description="An application: it says what the request does not.")] | None = (
        None
    )
    agent_id: (
        Annotated[Id, Field(description="A voice agent, instead of a stream_url; it has one.")] | None
    ) = None

    urls = BINDING_URLS

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the stream."""
        try:
            choose_stream(
                sound.get("stream_url"), {name: sound.get(name) for name in StreamFields.model_fields}
            )
        except StreamSetupError as error:
            # An agent or an application may have the URL that is missing here.
            return [FieldError(name, why) for name, why in error.faults.items() if name in sound]
        return []

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse fields of a stream in a request without one."""
        return reject_stream_fields(given)


class CreateCall(CallFields):
    """Originate a call and define what happens once it is answered."""

    stream_url: (
        Annotated[StreamUrl, Field(description="ws://, wss:// or audiosocket:// of a voice agent.")] | None
    ) = None
    webhook_url: (
        Annotated[WebUrl, Field(description="Asked what to do once the call is answered.")] | None
    ) = None
    webhook_method: Literal["POST", "GET"] = "POST"
    webhook_format: Annotated[
        Literal["json", "form", "jambonz"],
        Field(description="How your server is asked; form as servers of TwiML expect, or as jambonz asks."),
    ] = "json"
    verbs: (
        Annotated[
            list[Verb],
            Field(
                min_length=1,
                max_length=MAX_VERBS,
                description="What to do with the call, instead of a stream.",
            ),
        ]
        | None
    ) = None

    model: (
        Annotated[ModelFields, Field(description="A vendor's realtime speech model, instead of a stream.")]
        | None
    ) = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require exactly one target of the call."""
        errors = super().cross_check(given)
        if given.get("verbs") is not None:
            errors += check_names(given["verbs"])
        return errors + require_one_target(given, "stream_url", "webhook_url", "agent_id", "verbs", "model")

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the stream, the model and the verbs."""
        errors = super().rules(sound) + verb_errors(sound.get("verbs", ()))
        return errors + (model_errors(sound["model"]) if "model" in sound else [])

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """Errors of hosts and prompts in the verbs."""
        return unreachable_errors(given.get("verbs"), reach.rules)


class CreateStreamCall(CallFields):
    """Originate a call for a WebSocket streaming agent."""

    not_accepted: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("webhook_url", "webhook_method", "webhook_format", "verbs", "model"),
        "is a field of POST /v1/calls only",
    )

    stream_url: (
        Annotated[StreamUrl, Field(description="Required unless app_sid has one or agent_id names an agent.")]
        | None
    ) = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require a stream: in the request, of an agent, or of an application."""
        return super().cross_check(given) + require_one_target(given, "stream_url", "agent_id")


class CallList(CursorQuery, PeriodRequest):
    """Filters of a list of calls."""

    listed = ("calls", "[0-9a-z-]+")

    status: CallStatusName | None = None
    direction: Literal["inbound", "outbound"] | None = None
    from_: Annotated[QueryAddress | None, Field(alias="from")] = None
    to: QueryAddress | None = None
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    page: Page = 1
    per_page: PerPage = 20
    cursor: Cursor | None = None


class StreamObject(ResponseModel):
    """The agent stream of a call."""

    stream_sid: str | None
    stream_url: str | None
    protocol: str
    encoding: str
    sample_rate: int
    state: str | None
    model: Annotated[str, Field(description="Of a speech model: the vendor's name of it.")] | None = None
    usage: (
        Annotated[dict[str, int], Field(description="Of a speech model: what the vendor counted.")] | None
    ) = None


class DirectionQualityObject(ResponseModel):
    """Audio quality in one direction of a leg."""

    mos: Annotated[float | None, Field(description="By the E-model (ITU-T G.107), 1 to 4.5.")]
    jitter_ms: float | None
    packet_loss_pct: float | None


class LegQualityObject(ResponseModel):
    """Audio quality of one leg of a call."""

    leg: Annotated[Literal["a", "b"], Field(description="a: the first party; b: any other.")]
    codec: str | None
    encrypted: bool
    rtt_ms: float | None
    received: DirectionQualityObject
    sent: Annotated[DirectionQualityObject, Field(description="As the far end's RTCP reports say.")]


class QualityObject(ResponseModel):
    """Quality of the audio received from the first party over the whole call, and of each leg."""

    mos: float | None
    jitter_ms: float | None
    packet_loss_pct: float | None
    codec: str | None
    encrypted: bool
    legs: list[LegQualityObject]


class CallSip(ResponseModel):
    """
    Further headers of an inbound call's INVITE: unverified, and only those that were present.

    For a caller that withholds its number, fields that contain it are left out.
    """

    headers: Annotated[dict[str, str], Field(description="X- header fields.")] | None = None
    display_name: str | None = None
    privacy: Annotated[list[str], Field(description="RFC 3323.")] | None = None
    diversion: Annotated[list[str], Field(description="RFC 5806, the latest first.")] | None = None
    history_info: Annotated[list[str], Field(description="RFC 7044.")] | None = None
    user_to_user: Annotated[list[str], Field(description="RFC 7433.")] | None = None
    session_id: Annotated[str, Field(description="RFC 7989.")] | None = None
    identity: Annotated[list[str], Field(description="Signed identities (RFC 8224), as received.")] | None = (
        None
    )


class CallObject(ResponseModel):
    """A call."""

    call_sid: str
    sid: Annotated[str, Field(description="Alias of call_sid.")]
    account_sid: str
    parent_call_sid: str | None
    direction: Literal["inbound", "outbound"]
    from_: Annotated[str, Field(alias="from")]
    to: str
    status: CallStatusName
    answered_by: Literal["human", "machine", "unknown"] | None
    carrier_sid: str | None
    phone_number_id: str | None
    app_sid: str | None
    stream: StreamObject | None
    created_at: Timestamp
    ringing_at: Timestamp | None
    answered_at: Timestamp | None
    ended_at: Timestamp | None
    duration_sec: Annotated[int, Field(description="From answer to end.")] | None
    bill_duration_sec: int | None
    hangup_cause: str | None
    hangup_cause_code: Annotated[int, Field(description="Q.850.")] | None
    hangup_source: Literal["caller", "callee", "carrier", "api", "stream", "system"] | None
    sip_status: int | None
    sip_reason: str | None
    sip_call_id: str | None
    sip: CallSip | None
    price: float | None
    currency: str
    recording_url: str | None
    recording_status: Annotated[
        Literal["in-progress", "paused", "completed", "failed", "deleted"] | None,
        Field(
            description="failed: the call went on without it, as when the disk is full. "
            "deleted: it was asked to be, or was kept for long enough."
        ),
    ]
    quality: QualityObject | None
    tag: str | None


class SentenceObject(ResponseModel):
    """One sentence; times count from the answer."""

    speaker: Annotated[Literal["a", "b"], Field(description="a: the first party; b: any other.")]
    text: str
    start_ms: int
    end_ms: int | None


class CallTranscriptObject(ResponseModel):
    """Sentences of a transcribed call so far."""

    call_sid: str
    sentences: list[SentenceObject]


class TraceMessage(ResponseModel):
    """One SIP message of a call."""

    at: Timestamp
    leg: str | None
    direction: Literal["in", "out"]
    transport: str
    peer: Annotated[str, Field(description="host:port of the other side.")]
    call_id: str | None
    message: Annotated[str, Field(description="The message as it was on the wire.")]


class TraceObject(ResponseModel):
    """Signalling of a call, as messages and as a ladder diagram."""

    call_sid: str
    ladder: Annotated[str, Field(description="Ladder diagram in plain text.")]
    messages: list[TraceMessage]


def require_one_target(given: Mapping[str, Any], *ways: str) -> list[FieldError]:
    """Require exactly one of the fields that define the call's target, or an application."""
    said = [name for name in ways if given.get(name) is not None]
    errors = [FieldError(name, f"cannot be combined with {said[0]}") for name in said[1:]]
    if not said and given.get("app_sid") is None:
        message = f"is required, unless {_either(*ways[1:], 'app_sid')} says what to do with the call"
        errors.append(FieldError(ways[0], message))
    if given.get("webhook_method") is not None and given.get("webhook_url") is None:
        errors.append(FieldError("webhook_method", "needs a webhook_url"))
    return errors


def reject_stream_fields(given: Mapping[str, Any]) -> list[FieldError]:
    """
    Refuse stream fields of a call without a stream: accepted, they would silently have no effect.

    An agent defines its own stream; a call may only add parameters. The stream of an application is unknown
    here, so its fields are not checked.
    """
    others = [name for name in ("webhook_url", "agent_id", "verbs", "model") if given.get(name) is not None]
    if given.get("stream_url") is not None or not others:
        return []
    return [
        FieldError(name, f"needs a stream_url; it cannot be combined with {others[0]}")
        for name in StreamFields.model_fields
        if given.get(name) is not None and not (others[0] == "agent_id" and name == "custom_parameters")
    ]


def _either(*names: str) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]])
