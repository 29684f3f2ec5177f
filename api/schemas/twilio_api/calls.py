"""Forms and shapes of calls in Twilio's interface."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.calls import MAX_TIME_LIMIT_S, CallStatusName
from api.schemas.common import E164, Digits, EndDate, Id, StartDate
from api.schemas.forms import Address, QueryAddress, WebUrl
from api.schemas.twilio_api.base import Flag, Moment, Number, Several, TwilioCursorQuery, TwilioPage
from api.schemas.twilio_api.base import unavailable as _unavailable
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import FieldError

__all__ = ["CreateTwilioCall", "TwilioCall", "TwilioCallList", "TwilioCallQuery", "UpdateTwilioCall"]

_MAX_TWIML_CHARS = 64 * 1024

Document = Annotated[
    str,
    Field(min_length=1, max_length=_MAX_TWIML_CHARS, description="A TwiML document, instead of a Url."),
]
_WAYS = ("Url", "Twiml", "ApplicationSid")


class CreateTwilioCall(RequestModel):
    """Place a call, as Twilio's clients do."""

    urls = dict.fromkeys(("Url", "FallbackUrl", "StatusCallback"), WEB_SCHEMES)
    repeatable: ClassVar[frozenset[str]] = frozenset({"StatusCallbackEvent"})
    not_accepted: ClassVar[Mapping[str, str]] = _unavailable(
        *("AsyncAmd", "AsyncAmdStatusCallback", "AsyncAmdStatusCallbackMethod", "CallReason", "CallToken"),
        *("CallerId", "ClientNotificationUrl", "MachineDetectionSilenceTimeout", "MachineDetectionTimeout"),
        *("MachineDetectionSpeechEndThreshold", "MachineDetectionSpeechThreshold", "RecordingTrack"),
        *("RecordingStatusCallback", "RecordingStatusCallbackEvent", "RecordingStatusCallbackMethod"),
        *("SipAuthPassword", "SipAuthUsername", "Trim"),
    )

    To: Annotated[Address, Field(description="A telephone number, or sip: at a gateway of a trunk.")]
    From: Annotated[E164, Field(description="Caller-ID: a registered number of the account.")]
    Url: Annotated[WebUrl, Field(description="Asked for TwiML once the call is answered.")] | None = None
    Method: Literal["POST", "GET"] = "POST"
    Twiml: Document | None = None
    ApplicationSid: Annotated[Id, Field(description="An application, which says what to do.")] | None = None
    FallbackUrl: (
        Annotated[WebUrl, Field(description="Asked when the Url fails, by the same method.")] | None
    ) = None
    FallbackMethod: Literal["POST", "GET"] | None = None
    StatusCallback: Annotated[WebUrl, Field(description="Gets events of the call.")] | None = None
    StatusCallbackEvent: Annotated[
        list[Literal["initiated", "ringing", "answered", "completed"]], Field(max_length=4), Several
    ] = ["completed"]
    StatusCallbackMethod: Literal["POST"] = "POST"
    Record: Flag = False
    RecordingChannels: Literal["mono", "dual"] = "mono"
    Timeout: Annotated[Number, Field(ge=1, le=600, description="Ring seconds; 5 to 120 have effect.")] = 60
    TimeLimit: Annotated[Number, Field(ge=1, le=MAX_TIME_LIMIT_S)] = MAX_TIME_LIMIT_S
    MachineDetection: Literal["Enable"] | None = None
    SendDigits: Digits | None = None
    Byoc: Annotated[Id, Field(description="Leave through this trunk only.")] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require exactly one definition of the call, and one method for it and its fallback."""
        said = [name for name in _WAYS if given.get(name) is not None]
        errors = [FieldError(name, f"cannot be combined with {said[0]}") for name in said[1:]]
        if not said:
            errors.append(FieldError("Url", "is required, unless Twiml or ApplicationSid says what to do"))
        fallback = given.get("FallbackMethod")
        if fallback is not None and fallback != given.get("Method", "POST"):
            errors.append(FieldError("FallbackMethod", "must be the Method"))
        return errors


class UpdateTwilioCall(RequestModel):
    """Change of an active call: other instructions, or its end."""

    urls = {"Url": WEB_SCHEMES}
    not_accepted: ClassVar[Mapping[str, str]] = _unavailable(
        "FallbackMethod", "FallbackUrl", "StatusCallback", "StatusCallbackMethod"
    )

    Status: (
        Annotated[
            Literal["completed", "canceled"],
            Field(description="completed ends a call in any state, canceled one that is not answered yet."),
        ]
        | None
    ) = None
    Url: (
        Annotated[WebUrl, Field(description="Asked for TwiML; the call goes on until it answers.")] | None
    ) = None
    Method: Literal["POST", "GET"] = "POST"
    Twiml: Document | None = None
    TimeLimit: Annotated[Number, Field(ge=1, le=MAX_TIME_LIMIT_S)] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require a change, and no two that exclude each other."""
        said = [name for name in ("Status", "Url", "Twiml") if given.get(name) is not None]
        errors = [FieldError(name, f"cannot be combined with {said[0]}") for name in said[1:]]
        if not said and given.get("TimeLimit") is None and not given.keys() - cls.model_fields.keys():
            errors.append(
                FieldError("Status", "is required, unless Url, Twiml or TimeLimit changes the call")
            )
        return errors


class TwilioCall(ResponseModel):
    """A call, in the shape of Twilio's call resource."""

    sid: str
    account_sid: str
    parent_call_sid: str | None
    from_: Annotated[str, Field(alias="from")]
    from_formatted: str
    to: str
    to_formatted: str
    status: CallStatusName
    direction: Literal["inbound", "outbound-api"]
    answered_by: Literal["human", "machine_start", "unknown"] | None
    phone_number_sid: str | None
    trunk_sid: Annotated[str | None, Field(description="The carrier trunk.")]
    date_created: Moment
    date_updated: Moment
    start_time: Moment | None
    end_time: Moment | None
    duration: Annotated[str, Field(description="Seconds.")] | None
    price: Annotated[str, Field(description="Negative: what the call cost.")] | None
    price_unit: str
    annotation: None
    caller_name: None
    forwarded_from: None
    group_sid: None
    queue_time: str
    api_version: Literal["2010-04-01"]
    uri: str
    subresource_uris: dict[str, str]


class TwilioCallQuery(TwilioCursorQuery):
    """Filters of a list of calls."""

    not_accepted: ClassVar[Mapping[str, str]] = _unavailable(
        "ParentCallSid", "EndTime", "EndTime<", "EndTime>"
    )

    To: QueryAddress | None = None
    From: QueryAddress | None = None
    Status: CallStatusName | None = None
    on: Annotated[StartDate | None, Field(alias="StartTime")] = None
    before: Annotated[EndDate | None, Field(alias="StartTime<")] = None
    after: Annotated[StartDate | None, Field(alias="StartTime>")] = None


class TwilioCallList(TwilioPage):
    """Page of a list of calls, newest first."""

    calls: list[TwilioCall]
