"""Bodies and shapes of calls in jambonz's interface."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel
from api.schemas.calls import MAX_TIME_LIMIT_S, CallerName, InviteHeaders
from api.schemas.common import E164, Id
from api.schemas.forms import QueryAddress
from api.schemas.jambonz_api.base import CompleteJambonzTarget, Hook, StatusHook, unavailable
from callcontrol.egress.url_policy import HOOK_SCHEMES, WEB_SCHEMES
from callcontrol.errors import FieldError
from callcontrol.instructions.jambonz import tag_problem
from callcontrol.instructions.verbs.dubbing import MAX_NAME_CHARS

__all__ = ["CreateJambonzCall", "JambonzCall", "JambonzCallQuery", "JambonzCalls", "UpdateJambonzCall"]

StatusName = Literal[
    "trying", "ringing", "early-media", "in-progress", "completed", "failed", "busy", "no-answer", "queued"
]


def _tag(data: dict[str, Any]) -> dict[str, Any]:
    problem = tag_problem(data)
    if problem is not None:
        raise ValueError(problem)
    return data


class CreateJambonzCall(RequestModel):
    """Place a call, as jambonz's clients do."""

    urls = {"call_hook": HOOK_SCHEMES, "call_status_hook": WEB_SCHEMES}
    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        *("amd", "app_json", "dual_streams", "env_vars", "fromHost", "proxy", "record", "referHook"),
        *("sipRequestWithinDialogHook", "speech_recognizer_language", "speech_recognizer_vendor"),
        *("speech_synthesis_language", "speech_synthesis_vendor", "speech_synthesis_voice"),
    )

    from_: Annotated[E164, Field(alias="from", description="Caller-ID: a registered number of the account.")]
    to: CompleteJambonzTarget
    call_hook: Annotated[Hook, Field(description="Asked for verbs once the call is answered.")] | None = None
    call_status_hook: Annotated[StatusHook, Field(description="Gets events of the call, by POST.")] | None = (
        None
    )
    application_sid: Annotated[Id, Field(description="An application, which says what to do.")] | None = None
    tag: (
        Annotated[
            dict[str, Any],
            AfterValidator(_tag),
            Field(description="Sent as customerData with every request, up to 4096 bytes."),
        ]
        | None
    ) = None
    timeout: Annotated[int, Field(ge=1, le=600, description="Ring seconds; 5 to 120 have effect.")] = 60
    time_limit: Annotated[int, Field(alias="timeLimit", ge=1, le=MAX_TIME_LIMIT_S)] = MAX_TIME_LIMIT_S
    caller_name: Annotated[CallerName | None, Field(alias="callerName")] = None
    headers: InviteHeaders = {}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require a definition of the call."""
        if given.get("call_hook") is None and given.get("application_sid") is None:
            return [FieldError("call_hook", "is required, unless application_sid says what to do")]
        return []


class JambonzRecording(RequestModel):
    """Action on the recording of a call; a call has one recording."""

    not_accepted = unavailable("recordingID", "siprecServerURL", "headers")

    action: Literal["startCallRecording", "stopCallRecording", "pauseCallRecording", "resumeCallRecording"]


class JambonzDub(RequestModel):
    """Change of a track: a sound that the first party hears beside everything else."""

    action: Literal["addTrack", "removeTrack", "silenceTrack", "playOnTrack", "sayOnTrack"]
    track: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    play: Annotated[str | None, Field(max_length=2048, description="WAV by http(s), or prompt:NAME.")] = None
    say: Annotated[str | dict[str, Any] | None, Field(description="{text, synthesizer.language}.")] = None
    loop: bool | None = None
    gain: Annotated[float | str | None, Field(description='Decibels, or a text such as "-6 dB".')] = None


class JambonzDigit(RequestModel):
    """Keys to send to the party."""

    digit: Annotated[str, Field(pattern=r"^[0-9*#A-DwW]{1,64}$")]
    duration: Annotated[int, Field(ge=1, le=10_000, description="Without effect.")] | None = None


_ORDERS = (
    *("call_hook", "call_status", "mute_status", "conf_mute_status", "listen_status", "record", "dub"),
    "dtmf",
)


class UpdateJambonzCall(RequestModel):
    """Changes of an active call, applied together or not at all."""

    urls = {"call_hook": HOOK_SCHEMES}
    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        *("agent_update", "child_call_hook", "conf_hold_status", "conferenceParticipantAction"),
        *("llm_update", "media_path", "noise_isolation_status", "sip_request", "tag", "transcribe_status"),
        *("transfer", "whisper"),
    )

    call_hook: (
        Annotated[Hook, Field(description="Asked for verbs; the call goes on until it answers.")] | None
    ) = None
    call_status: (
        Annotated[
            Literal["completed", "no-answer"],
            Field(description="completed: hang up. no-answer: give up a call that was not answered yet."),
        ]
        | None
    ) = None
    mute_status: Literal["mute", "unmute"] | None = None
    conf_mute_status: Annotated[Literal["mute", "unmute"], Field(description="As mute_status.")] | None = None
    listen_status: Literal["pause", "silence", "resume"] | None = None
    record: JambonzRecording | None = None
    dub: JambonzDub | None = None
    dtmf: JambonzDigit | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require a change, and no other beside the end of the call."""
        wanted = [name for name in _ORDERS if given.get(name) is not None]
        errors: list[FieldError] = []
        if not wanted and not given.keys() - set(_ORDERS):
            errors.append(FieldError("body", f"must have one of {', '.join(_ORDERS)}"))
        if "call_status" in wanted and len(wanted) > 1:
            others = ", ".join(name for name in wanted if name != "call_status")
            errors.append(FieldError("call_status", f"cannot be combined with {others}"))
        if "mute_status" in wanted and "conf_mute_status" in wanted:
            errors.append(FieldError("conf_mute_status", "cannot be combined with mute_status"))
        return errors


class JambonzCall(ResponseModel):
    """A call, in the shape of jambonz's."""

    call_sid: str
    account_sid: str
    application_sid: str | None
    parent_call_sid: str | None
    call_id: Annotated[str | None, Field(description="The Call-ID of its INVITE.")]
    direction: Literal["inbound", "outbound"]
    from_: Annotated[str, Field(alias="from")]
    to: str
    call_status: StatusName
    sip_status: int
    sip_reason: str
    duration: Annotated[int, Field(description="Seconds; 0 until the call has ended.")]
    customer_data: Annotated[dict[str, Any] | None, Field(alias="customerData")]


class JambonzCalls(ResponseList[JambonzCall]):
    """Calls, newest first."""


class JambonzCallQuery(RequestModel):
    """Filters of the list of calls."""

    direction: Literal["inbound", "outbound"] | None = None
    from_: Annotated[QueryAddress | None, Field(alias="from")] = None
    to: QueryAddress | None = None
    status: Annotated[StatusName | None, Field(alias="callStatus")] = None
