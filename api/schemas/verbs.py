"""
The verbs of a call request: what to do with the call once it is answered.

The list is an addition to the specification, written as jambonz writes its own. Verbs that are known and not
available yet are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from api.schemas.base import RequestModel
from api.schemas.common import Digits
from api.schemas.forms import Number, SipAddress, StreamRate, StreamUrl, WebUrl
from api.schemas.streams import CustomParameters, StreamAuth
from callcontrol.errors import FieldError
from callcontrol.verbs import NOT_YET

__all__ = [
    "Answer",
    "CallTarget",
    "CompleteTarget",
    "Dial",
    "Hangup",
    "Pause",
    "Play",
    "Redirect",
    "SendDigits",
    "Stream",
    "Verb",
    "check_names",
]


class CallTarget(RequestModel):
    """A party to dial, as jambonz writes it."""

    type: Literal["phone", "sip"] = "phone"
    number: Number | None = None
    sip_uri: SipAddress | None = None

    @property
    def address(self) -> str:
        """The number or the URI, whichever the type asks for; empty when it is missing."""
        return (self.number if self.type == "phone" else self.sip_uri) or ""


def _complete(target: CallTarget) -> CallTarget:
    if not target.address:
        raise ValueError(f"needs {'number' if target.type == 'phone' else 'sip_uri'} with type {target.type}")
    if target.number is not None and target.sip_uri is not None:
        raise ValueError("cannot have both number and sip_uri")
    return target


CompleteTarget = Annotated[CallTarget, AfterValidator(_complete)]


class Answer(RequestModel):
    """Answer the caller; a call that is placed is answered already."""

    verb: Literal["answer"]


class Play(RequestModel):
    """Play a recorded sound: `prompt:NAME`, or an http(s) address of a WAV file."""

    verb: Literal["play"]
    url: Annotated[str, Field(min_length=3, max_length=2048)]
    loop: Annotated[int, Field(ge=1, le=100, description="How often.")] = 1


class Redirect(RequestModel):
    """Ask your server what to do next; its answer takes the place of the rest."""

    verb: Literal["redirect"]
    url: WebUrl
    method: Literal["POST", "GET"] = "POST"


class Pause(RequestModel):
    """Wait."""

    verb: Literal["pause"]
    length: Annotated[float, Field(gt=0, le=600, description="Seconds.")] = 1.0


class Dial(RequestModel):
    """Call a second party and bridge the two."""

    verb: Literal["dial"]
    target: Annotated[list[CompleteTarget], Field(min_length=1, max_length=1)]
    caller_id: Annotated[str, Field(min_length=2, max_length=32)] | None = None
    timeout: Annotated[int, Field(ge=5, le=120)] = 60


class Stream(RequestModel):
    """Connect the call to a voice agent over WebSocket."""

    verb: Literal["stream"]
    url: StreamUrl
    sample_rate: StreamRate | None = None
    stream_protocol: Annotated[str, Field(max_length=32)] | None = None
    encoding: Annotated[str, Field(max_length=32)] | None = None
    custom_parameters: CustomParameters | None = None
    stream_auth: StreamAuth | None = None


class SendDigits(RequestModel):
    """Send DTMF."""

    verb: Literal["send_digits"]
    digits: Digits


class Hangup(RequestModel):
    """End the call."""

    verb: Literal["hangup"]


AVAILABLE = ("answer", "play", "pause", "dial", "stream", "send_digits", "redirect", "hangup")


def _tag(value: Any) -> str | None:
    name = value.get("verb") if isinstance(value, Mapping) else getattr(value, "verb", None)
    return f"<{name}>" if name in AVAILABLE else None


Verb = Annotated[
    Annotated[Answer, Tag("<answer>")]
    | Annotated[Play, Tag("<play>")]
    | Annotated[Pause, Tag("<pause>")]
    | Annotated[Dial, Tag("<dial>")]
    | Annotated[Stream, Tag("<stream>")]
    | Annotated[SendDigits, Tag("<send_digits>")]
    | Annotated[Redirect, Tag("<redirect>")]
    | Annotated[Hangup, Tag("<hangup>")],
    Discriminator(_tag),
]


def check_names(verbs: Any) -> list[FieldError]:
    """Name the verbs of a raw list that do not exist or are not available yet."""
    errors: list[FieldError] = []
    for index, verb in enumerate(verbs[:100] if isinstance(verbs, list) else []):
        name = verb.get("verb") if isinstance(verb, dict) else None
        if isinstance(name, str) and name in NOT_YET:
            errors.append(FieldError(f"verbs[{index}].verb", f"{name} is not available yet"))
        elif name == "reject":
            message = "reject is for calls that come in; use hangup"
            errors.append(FieldError(f"verbs[{index}].verb", message))
        elif isinstance(verb, dict) and (not isinstance(name, str) or name not in AVAILABLE):
            errors.append(FieldError(f"verbs[{index}].verb", f"must be one of {', '.join(AVAILABLE)}"))
    return errors
