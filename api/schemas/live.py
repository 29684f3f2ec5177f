"""Request that changes an active call."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.base import Reach, RequestModel
from api.schemas.calls import MAX_TIME_LIMIT_S, MAX_TIMEOUT_S, MIN_TIMEOUT_S, InviteHeaders
from api.schemas.common import Digits
from api.schemas.forms import Callee, WebUrl
from api.schemas.verbs import DubFields, HeardLanguage
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import FieldError
from callcontrol.instructions.verbs import unreachable_errors, verb_errors

__all__ = ["LiveDigits", "LiveDub", "LiveRecording", "LiveTranscription", "LiveTransfer", "UpdateLiveCall"]

PartyName = Literal["a", "b"]


class LiveRecording(RequestModel):
    """Action on the recording of a call; a call has one recording, which may be paused and resumed."""

    action: Literal["start", "stop", "pause", "resume"]
    channels: Annotated[Literal["mono", "dual"], Field(description="With start.")] = "dual"


class LiveTranscription(RequestModel):
    """Begin or end the transcription of the call."""

    action: Literal["start", "stop"]
    language: Annotated[HeardLanguage, Field(description="With start; en-IN by default.")] | None = None


class LiveDub(DubFields):
    """Change of a track: a sound that a party hears beside everything else."""

    party: PartyName = "a"


class LiveDigits(RequestModel):
    """Digits to send to a party."""

    digits: Annotated[Digits, Field(description="w waits 0.5 s, W 1 s.")]
    party: PartyName = "a"


class LiveTransfer(RequestModel):
    """Transfer of a party to a new one; the party it was connected to leaves when the new one answers."""

    to: Callee
    party: Annotated[PartyName, Field(description="Who is put through.")] = "a"
    caller_id: (
        Annotated[str, Field(max_length=MAX_NUMBER_CHARS, json_schema_extra={"minLength": 2})] | None
    ) = None
    timeout: Annotated[int, Field(ge=MIN_TIMEOUT_S, le=MAX_TIMEOUT_S, description="Ring seconds.")] = 30
    headers: InviteHeaders = {}


_ORDERS = (
    "call_status",
    "mute_status",
    "listen_status",
    "record",
    "transcribe",
    "dub",
    "dtmf",
    "transfer",
    "time_limit",
    "webhook_url",
)
_WITH: Mapping[str, str] = {
    "party": "mute_status",
    "mute_direction": "mute_status",
    "webhook_method": "webhook_url",
}


class UpdateLiveCall(RequestModel):
    """Changes to an active call: one or several, applied together or not at all."""

    call_status: (
        Annotated[
            Literal["completed", "no-answer"],
            Field(description="completed: hang up. no-answer: give up a call that was not answered yet."),
        ]
        | None
    ) = None
    mute_status: Literal["mute", "unmute"] | None = None
    mute_direction: (
        Annotated[
            Literal["says", "hears", "both"],
            Field(description="says: others do not hear it. hears: it hears nobody. Default says."),
        ]
        | None
    ) = None
    party: (
        Annotated[PartyName, Field(description="Who is muted. a: the first party; b: whom it talks to.")]
        | None
    ) = None
    listen_status: (
        Annotated[
            Literal["pause", "silence", "resume"],
            Field(description="Audio that the agent gets: none, silence, or the party's."),
        ]
        | None
    ) = None
    record: LiveRecording | None = None
    transcribe: LiveTranscription | None = None
    dub: LiveDub | None = None
    dtmf: LiveDigits | None = None
    transfer: LiveTransfer | None = None
    time_limit: (
        Annotated[int, Field(ge=1, le=MAX_TIME_LIMIT_S, description="Seconds from the answer.")] | None
    ) = None
    webhook_url: (
        Annotated[
            WebUrl,
            Field(
                description="URL for new instructions; the call continues until it responds.",
            ),
        ]
        | None
    ) = None
    webhook_method: Literal["POST", "GET"] | None = None

    urls = {"webhook_url": WEB_SCHEMES}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require at least one change, and no other change beside the end of the call."""
        errors: list[FieldError] = []
        wanted = [name for name in _ORDERS if given.get(name) is not None]
        if not wanted and not given.keys() - {*_WITH, *_ORDERS}:
            errors.append(FieldError("body", f"must have one of {', '.join(_ORDERS)}"))
        if "call_status" in wanted and len(wanted) > 1:
            errors.append(FieldError("call_status", f"cannot be combined with {', '.join(wanted[1:])}"))
        if "transfer" in wanted and "webhook_url" in wanted:
            errors.append(FieldError("webhook_url", "cannot be combined with transfer"))
        errors += [
            FieldError(name, f"goes with {other} only")
            for name, other in _WITH.items()
            if given.get(name) is not None and other not in wanted
        ]
        match given.get("transcribe"):
            case {"action": "stop", "language": language} if language is not None:
                errors.append(FieldError("transcribe.language", "goes with start only"))
        return errors + [_in_dub(error) for error in verb_errors(_dubbed(given))]

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """Errors of a sound that this server cannot play or fetch."""
        return [_in_dub(error) for error in unreachable_errors(_dubbed(given), reach.rules)]


def _dubbed(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the change of a track as the verb that it is."""
    dub = given.get("dub")
    if not isinstance(dub, Mapping):
        return []
    return [{**{name: value for name, value in dub.items() if name != "party"}, "verb": "dub"}]


def _in_dub(error: FieldError) -> FieldError:
    return replace(error, field=error.field.replace("verbs[0]", "dub", 1))
