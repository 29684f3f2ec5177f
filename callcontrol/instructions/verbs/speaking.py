"""Verbs that play to a party, and those that collect its input: play, say, pause, gather, record."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from callcontrol.calls.plan import (
    USUAL_LANGUAGE,
    ChangeTranscription,
    Gather,
    Pause,
    Play,
    RecordMessage,
    Say,
    Step,
)
from callcontrol.egress.url_policy import WEB_SCHEMES, wrong_scheme
from callcontrol.instructions.verbs.values import VerbValues
from media.audio import SpeechError
from media.audio.recognition import LANGUAGE_TAG
from media.audio.speech import speech_text

Prompt = Play | Say | Pause

MAX_GATHERED: Final = 32
MAX_RECORDED_S: Final = 3600.0
_MAX_PAUSE_S: Final = 600.0
_MAX_LOOPS: Final = 100
_NO_SOUND: Final = wrong_scheme(WEB_SCHEMES).replace("a URL", "prompt:NAME, or the URL of a WAV file", 1)
_MAX_PROMPTS: Final = 20
_MAX_WAIT_S: Final = 60.0
_INPUTS: Final = ("digits", "speech")
_VOICE: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_KEYS: Final = frozenset("0123456789*#")

SAY_FIELDS: Final = frozenset({"text", "language", "loop", "voice"})
PLAY_FIELDS: Final = frozenset({"url", "loop"})
PAUSE_FIELDS: Final = frozenset({"length"})
GATHER_FIELDS: Final = frozenset(
    {"prompts", "say", "play", "num_digits", "finish_on_key", "timeout", "input", "language"}
    | {"action_url", "action_method", "action_on_empty"}
)
RECORD_FIELDS: Final = frozenset(
    {"max_length", "silence_timeout", "finish_on_key", "beep", "action_url", "action_method"}
)
TRANSCRIBE_FIELDS: Final = frozenset({"action", "language"})


def read_play(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Play]:
    """Read the verb that plays a sound of this server or of the customer."""
    count = len(values.errors)
    loops = values.whole(path, verb, "loop", 1, 1, _MAX_LOOPS)
    text = verb.get("url")
    url = text if isinstance(text, str) else ""
    if url.startswith("prompt:"):
        if values.rules.prompts is not None and url[7:] not in values.rules.prompts:
            values.wrong(f"{path}.url", "names no prompt of this server")
    else:
        url = values.absolute(url)
        if url.lower().startswith(("http://", "https://")):
            values.check_url(f"{path}.url", url, WEB_SCHEMES)
        else:
            values.wrong(f"{path}.url", _NO_SOUND)
    return [Play(url, loops)] if len(values.errors) == count else []


def read_say(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Say]:
    """Read the verb that speaks a text."""
    count = len(values.errors)
    text, language = verb.get("text"), verb.get("language", "en-IN")
    loops = values.whole(path, verb, "loop", 1, 1, _MAX_LOOPS)
    if not isinstance(language, str):
        values.wrong(f"{path}.language", "must be a language such as en-IN or hi")
    elif not isinstance(text, str):
        values.wrong(f"{path}.text", "is required" if text is None else "must be a string")
    else:
        try:
            # Check the language with a safe text first, to tell its errors from those of the text.
            speech_text("a", language)
            speech_text(text, language)
        except SpeechError as refusal:
            named = "language" if "language" in str(refusal) else "text"
            values.wrong(f"{path}.{named}", str(refusal))
    voice = verb.get("voice")
    if voice is not None and not (isinstance(voice, str) and _VOICE.fullmatch(voice)):
        values.wrong(f"{path}.voice", "must be 1 to 64 letters, digits or . _ : -")
    return [Say(str(text), str(language), loops, voice)] if len(values.errors) == count else []


def read_pause(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Pause]:
    """Read the verb that pauses."""
    length = verb.get("length", 1)
    number = isinstance(length, int | float) and not isinstance(length, bool)
    if not number or not 0 < length <= _MAX_PAUSE_S:
        values.wrong(f"{path}.length", f"must be more than 0 and at most {_MAX_PAUSE_S:.0f} seconds")
        return []
    return [Pause(float(length))]


def read_gather(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that collects keys of the party, during prompts or after them."""
    count = len(values.errors)
    action = values.action(path, verb, "call.gathered")
    keys, language = _input(values, path, verb)
    gather = Gather(
        prompts=tuple(_prompts(values, path, verb)),
        num_digits=values.whole(path, verb, "num_digits", 32, 1, MAX_GATHERED),
        finish_on_key=_keys(values, f"{path}.finish_on_key", verb.get("finish_on_key"), "#", most=1),
        timeout_s=values.seconds(path, verb, "timeout", 5.0, 1.0, _MAX_WAIT_S),
        action=action,
        action_on_empty=values.flag(path, verb, "action_on_empty", False),
        language=language,
        keys=keys,
    )
    if gather.action_on_empty and verb.get("action_url") is None:
        values.wrong(f"{path}.action_on_empty", "needs an action_url")
    return [gather] if len(values.errors) == count else []


def read_record(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that records a message of the party."""
    count = len(values.errors)
    step = RecordMessage(
        max_length_s=values.seconds(path, verb, "max_length", MAX_RECORDED_S, 1.0, MAX_RECORDED_S),
        silence_s=values.seconds(path, verb, "silence_timeout", 5.0, 1.0, _MAX_WAIT_S),
        finish_on_keys=_keys(
            values, f"{path}.finish_on_key", verb.get("finish_on_key"), "1234567890*#", most=12
        ),
        beep=values.flag(path, verb, "beep", True),
        action=values.action(path, verb, "call.recorded"),
    )
    return [step] if len(values.errors) == count else []


def read_transcribe(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that begins or ends the transcription of the call."""
    count = len(values.errors)
    action = verb.get("action", "start")
    if action not in ("start", "stop"):
        values.wrong(f"{path}.action", "must be start or stop")
    language = heard_language(values, path, verb.get("language"))
    if action == "stop" and verb.get("language") is not None:
        values.wrong(f"{path}.language", "goes with start only")
    step = ChangeTranscription(language if action == "start" else None)
    return [step] if len(values.errors) == count else []


def _input(values: VerbValues, path: str, verb: Mapping[str, Any]) -> tuple[bool, str | None]:
    """True if keys count, and the language of what is said, if that does."""
    given, language = verb.get("input", ["digits"]), verb.get("language")
    kinds = given if isinstance(given, Sequence) and not isinstance(given, str | bytes) else ()
    if not kinds or any(kind not in _INPUTS for kind in kinds):
        values.wrong(f"{path}.input", f"must be a list of {' and '.join(_INPUTS)}")
    heard = heard_language(values, path, language)
    return "digits" in kinds, heard if "speech" in kinds else None


def heard_language(values: VerbValues, path: str, given: object) -> str:
    """Read the language of what is to be recognised."""
    if given is None:
        return USUAL_LANGUAGE
    if not isinstance(given, str) or not LANGUAGE_TAG.fullmatch(given):
        values.wrong(f"{path}.language", "must be a language such as en-IN or hi")
    return str(given)


def _prompts(values: VerbValues, path: str, verb: Mapping[str, Any]) -> list[Prompt]:
    """The prompts of ``gather``: a list of verbs, or one text to say or sound to play."""
    given = [name for name in ("prompts", "say", "play") if verb.get(name) is not None]
    for name in given[1:]:
        values.wrong(f"{path}.{name}", f"cannot be combined with {given[0]}")
    if not given:
        return []
    name, value = given[0], verb[given[0]]
    if name != "prompts":
        if not isinstance(value, Mapping):
            values.wrong(f"{path}.{name}", f"must be an object such as the verb {name} has")
            return []
        return _prompt(values, f"{path}.{name}", name, value)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) > _MAX_PROMPTS:
        values.wrong(f"{path}.prompts", f"must be a list of at most {_MAX_PROMPTS} verbs")
        return []
    found: list[Prompt] = []
    for index, item in enumerate(value):
        place = f"{path}.prompts[{index}]"
        kind = item.get("verb") if isinstance(item, Mapping) else None
        if not isinstance(kind, str) or kind not in _PROMPTS:
            values.wrong(f"{place}.verb", f"must be one of {', '.join(_PROMPTS)}")
        else:
            found += _prompt(values, place, kind, item)
    return found


def _prompt(values: VerbValues, path: str, kind: str, item: Mapping[str, Any]) -> list[Prompt]:
    fields, read = _PROMPTS[kind]
    values.refuse_others(path, item, fields, kind)
    return list(read(values, path, item))


def _keys(values: VerbValues, path: str, given: object, default: str, *, most: int) -> str:
    """Keys that end an input; an empty text means none."""
    if given is None:
        return default
    if not isinstance(given, str) or len(given) > most or not _KEYS.issuperset(given):
        values.wrong(path, "must be one key of 0-9 * #" if most == 1 else "must be keys of 0-9 * #")
        return default
    return given


_PROMPTS: Final[
    Mapping[str, tuple[frozenset[str], Callable[[VerbValues, str, Mapping[str, Any]], Sequence[Prompt]]]]
] = {
    "play": (PLAY_FIELDS, read_play),
    "say": (SAY_FIELDS, read_say),
    "pause": (PAUSE_FIELDS, read_pause),
}
