"""
Verbs of a call request: the actions once the call is answered.

The list is an addition to the specification, in the syntax of jambonz.
``callcontrol.instructions.verbs`` checks the values; their syntax is checked here too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from api.schemas.base import RequestModel
from api.schemas.common import E164, Digits, Filled
from api.schemas.forms import CompleteTarget, StreamUrl, WebUrl
from api.schemas.model import ModelFields
from api.schemas.streams import StreamFields
from callcontrol.calls.plan import TrackAction
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.errors import FieldError
from callcontrol.instructions.verbs import MAX_MESSAGE_CHARS, NO_REJECT, VERBS, header_errors
from callcontrol.instructions.verbs.dubbing import MAX_GAIN_DB, MAX_NAME_CHARS, MIN_GAIN_DB
from media.audio import SpeechError
from media.audio.recognition import LANGUAGE_TAG
from media.audio.speech import MAX_SPEECH_CHARS, speech_text

__all__ = [
    "Answer",
    "Dial",
    "Dub",
    "DubFields",
    "Hangup",
    "Message",
    "Model",
    "Pause",
    "Play",
    "Redirect",
    "SendDigits",
    "Stream",
    "Transcribe",
    "Verb",
    "check_names",
]


Loop = Annotated[int, Field(ge=1, le=100, description="How often.")]
Wait = Annotated[float, Field(ge=1, le=60, description="Seconds.")]
Method = Literal["POST", "GET"]
ActionUrl = Annotated[WebUrl, Field(description="Asked what follows, and told what came of this.")]


def _heard(language: str) -> str:
    if LANGUAGE_TAG.fullmatch(language) is None:
        raise ValueError("must be a language such as en-IN or hi")
    return language


HeardLanguage = Annotated[
    str,
    AfterValidator(_heard),
    Field(
        json_schema_extra={"pattern": f"^{LANGUAGE_TAG.pattern}$"}, description="Of speech; default en-IN."
    ),
]
RoomName = Annotated[str, Field(min_length=1, max_length=128)]
Members = Annotated[int, Field(ge=2, le=40)]


def _spoken(language: str) -> str:
    try:
        speech_text("a", language)
    except SpeechError as refusal:
        raise ValueError(str(refusal)) from None
    return language


SpokenLanguage = Annotated[str, Field(min_length=2, max_length=35), AfterValidator(_spoken)]
SpeechVoice = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._:-]{1,64}$", description="One of the speech server's, if there is one."),
]


def _ending(most: int) -> AfterValidator:
    """Make a validator of the keys that end an input."""
    message = (
        "must be one key of 0-9 * #, or empty" if most == 1 else f"must be at most {most} keys of 0-9 * #"
    )

    def check(keys: str) -> str:
        if re.fullmatch(f"[0-9*#]{{0,{most}}}", keys) is None:
            raise ValueError(message)
        return keys

    return AfterValidator(check)


class Answer(RequestModel):
    """Answer the caller; an outbound call is answered already."""

    verb: Literal["answer"]


class PlayedPrompt(RequestModel):
    """Sound to play while digits are collected."""

    url: Annotated[str, Field(max_length=2048, json_schema_extra={"minLength": 8})]
    loop: Loop = 1


class Play(PlayedPrompt):
    """Play a recorded sound: `prompt:NAME`, or an http(s) address of a WAV file."""

    verb: Literal["play"]


class SpokenPrompt(RequestModel):
    """Text to speak while digits are collected."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_SPEECH_CHARS)]
    language: SpokenLanguage = "en-IN"
    loop: Loop = 1
    voice: SpeechVoice | None = None


class Say(SpokenPrompt):
    """Speak a text."""

    verb: Literal["say"]


class Redirect(RequestModel):
    """Request new verbs from your server; they replace the remaining ones."""

    verb: Literal["redirect"]
    url: WebUrl
    method: Method = "POST"


class Pause(RequestModel):
    """Wait."""

    verb: Literal["pause"]
    length: Annotated[float, Field(gt=0, le=600, description="Seconds.")] = 1.0


PROMPTS = ("say", "play", "pause")
Prompt = Annotated[
    Annotated[Say, Tag("<say>")] | Annotated[Play, Tag("<play>")] | Annotated[Pause, Tag("<pause>")],
    Discriminator(lambda value: tag_of(value, PROMPTS)),
]


class Gather(RequestModel):
    """Collect the party's DTMF digits, or what it says, while prompts are played."""

    verb: Literal["gather"]
    prompts: Annotated[list[Prompt], Field(max_length=20, description="Played while collecting.")] | None = (
        None
    )
    say: Annotated[SpokenPrompt, Field(description="Instead of prompts.")] | None = None
    play: Annotated[PlayedPrompt, Field(description="Instead of prompts.")] | None = None
    num_digits: Annotated[int, Field(ge=1, le=32, description="Maximum number of digits.")] = 32
    finish_on_key: Annotated[
        str, _ending(1), Field(description="Empty for none.", json_schema_extra={"pattern": "^[0-9*#]?$"})
    ] = "#"
    timeout: Annotated[Wait, Field(description="Seconds without a key.")] = 5
    action_url: ActionUrl | None = None
    action_method: Method | None = None
    action_on_empty: Annotated[bool, Field(description="Ask even when there was no input.")] | None = None
    input: (
        Annotated[
            list[Literal["digits", "speech"]],
            Field(min_length=1, max_length=2, description="Default digits; speech needs a recogniser."),
        ]
        | None
    ) = None
    language: HeardLanguage | None = None


class Record(RequestModel):
    """Record the party's speech as a voicemail."""

    verb: Literal["record"]
    max_length: Annotated[float, Field(ge=1, le=3600, description="Seconds.")] = 3600
    silence_timeout: Annotated[Wait, Field(description="Seconds of silence that end it.")] = 5
    finish_on_key: Annotated[str, _ending(12), Field(json_schema_extra={"pattern": "^[0-9*#]{0,12}$"})] = (
        "1234567890*#"
    )
    beep: bool = True
    action_url: ActionUrl | None = None
    action_method: Method | None = None


class Transcribe(RequestModel):
    """Begin or end the transcription of the call, and go on with the next verb."""

    verb: Literal["transcribe"]
    action: Literal["start", "stop"] = "start"
    language: HeardLanguage | None = None


class DubFields(RequestModel):
    """Change of a track: a sound that a party hears beside everything else."""

    action: Annotated[
        TrackAction,
        Field(description="add: with a sound or without. play, say: instead of what plays on the track."),
    ]
    track: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, description="A name of yours.")]
    url: (
        Annotated[
            str,
            Field(max_length=2048, description="`prompt:NAME`, or a WAV file by http(s).", min_length=8),
        ]
        | None
    ) = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_SPEECH_CHARS)] | None = None
    language: Annotated[SpokenLanguage, Field(description="Of the text; default en-IN.")] | None = None
    voice: SpeechVoice | None = None
    loop: Annotated[bool, Field(description="Without end; default false.")] | None = None
    gain: (
        Annotated[float, Field(ge=MIN_GAIN_DB, le=MAX_GAIN_DB, description="Decibels; default 0.")] | None
    ) = None


class Dub(DubFields):
    """Change a track that the party hears beside everything else, and go on with the next verb."""

    verb: Literal["dub"]


class ConferenceFields(RequestModel):
    """A conference, and the party's part in it."""

    name: RoomName
    muted: bool = False
    start_on_enter: bool = True
    end_on_exit: bool = False
    beep: bool = True
    max_participants: Members = 40


class Conference(ConferenceFields):
    """Add the party to a conference of the account."""

    verb: Literal["conference"]
    action_url: ActionUrl | None = None
    action_method: Method | None = None


class ConferenceTarget(ConferenceFields):
    """A conference to join."""

    type: Literal["conference"]


def _kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return "<conference>" if kind == "conference" else "<party>"


DialTarget = Annotated[
    Annotated[CompleteTarget, Tag("<party>")] | Annotated[ConferenceTarget, Tag("<conference>")],
    Discriminator(_kind),
]


class Dial(RequestModel):
    """Call a second party and bridge the two, or join a conference."""

    verb: Literal["dial"]
    target: Annotated[list[DialTarget], Field(min_length=1, max_length=1)]
    caller_id: (
        Annotated[str, Field(max_length=MAX_NUMBER_CHARS, json_schema_extra={"minLength": 2})] | None
    ) = None
    timeout: Annotated[int, Field(ge=5, le=120)] | None = None
    time_limit: Annotated[int, Field(ge=1, le=14_400, description="Maximum duration in seconds.")] | None = (
        None
    )
    headers: (
        Annotated[dict[str, str], Field(max_length=20, description="X-* headers of the INVITE.")] | None
    ) = None
    action_url: ActionUrl | None = None
    action_method: Method | None = None


class Stream(StreamFields):
    """Connect the call to a voice agent over WebSocket."""

    verb: Literal["stream"]
    url: StreamUrl
    action_url: ActionUrl | None = None
    action_method: Method | None = None


class Model(ModelFields):
    """Connect the call to a vendor's realtime speech model."""

    verb: Literal["model"]
    action_url: ActionUrl | None = None
    action_method: Method | None = None


class Message(RequestModel):
    """Send a chat message; the call goes on, whether or not it is accepted."""

    verb: Literal["message"]
    to: E164
    from_: Annotated[E164 | None, Field(alias="from", description="Number of the account's channel.")] = None
    text: Annotated[Filled, Field(max_length=MAX_MESSAGE_CHARS, repr=False)]
    action_url: ActionUrl | None = None
    action_method: Method | None = None


class SendDigits(RequestModel):
    """Send DTMF."""

    verb: Literal["send_digits"]
    digits: Digits


class Hangup(RequestModel):
    """End the call."""

    verb: Literal["hangup"]


# `reject` is for inbound calls before the answer; an outbound call has been answered already.
AVAILABLE = tuple(name for name in VERBS if name != "reject")


def tag_of(value: Any, known: Sequence[str]) -> str | None:
    """Return the discriminator tag of a known verb; None for others."""
    name = value.get("verb") if isinstance(value, Mapping) else getattr(value, "verb", None)
    return f"<{name}>" if name in known else None


Verb = Annotated[
    Annotated[Answer, Tag("<answer>")]
    | Annotated[Play, Tag("<play>")]
    | Annotated[Say, Tag("<say>")]
    | Annotated[Pause, Tag("<pause>")]
    | Annotated[Gather, Tag("<gather>")]
    | Annotated[Record, Tag("<record>")]
    | Annotated[Transcribe, Tag("<transcribe>")]
    | Annotated[Dub, Tag("<dub>")]
    | Annotated[Dial, Tag("<dial>")]
    | Annotated[Conference, Tag("<conference>")]
    | Annotated[Stream, Tag("<stream>")]
    | Annotated[Model, Tag("<model>")]
    | Annotated[Message, Tag("<message>")]
    | Annotated[SendDigits, Tag("<send_digits>")]
    | Annotated[Redirect, Tag("<redirect>")]
    | Annotated[Hangup, Tag("<hangup>")],
    Discriminator(lambda value: tag_of(value, AVAILABLE)),
]


def check_names(verbs: Any) -> list[FieldError]:
    """
    List the errors of a raw list of verbs that its types do not name.

    Verbs that do not exist or do not apply to outbound calls, prompts of another kind, and headers.
    """
    errors = _wrong_kinds("verbs", verbs, AVAILABLE)
    for index, verb in enumerate(_listed(verbs)):
        name = verb.get("verb") if isinstance(verb, dict) else None
        if name == "gather":
            errors += _wrong_kinds(f"verbs[{index}].prompts", verb.get("prompts"), PROMPTS)
        elif name == "dial":
            errors += header_errors(f"verbs[{index}].headers", verb.get("headers"))
    return errors


def _wrong_kinds(path: str, verbs: Any, known: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, verb in enumerate(_listed(verbs)):
        place = f"{path}[{index}]"
        if not isinstance(verb, dict):
            errors.append(FieldError(place, "must be an object with the field verb"))
        elif (name := verb.get("verb")) == "reject" and known is AVAILABLE:
            errors.append(FieldError(f"{place}.verb", NO_REJECT))
        elif name not in known:
            errors.append(FieldError(f"{place}.verb", f"must be one of {', '.join(known)}"))
    return errors


def _listed(verbs: Any) -> Sequence[Any]:
    return verbs[:100] if isinstance(verbs, list) else ()
