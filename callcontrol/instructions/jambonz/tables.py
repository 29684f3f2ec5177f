"""
Meaning of jambonz's verbs and fields here: one table for each verb.

A field leads to a field of our verb and to the function that reads its value; without a name of ours its
value is only checked, as it must not ask for what is not done. What is in no table is refused by name.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

ReadValue = Callable[[Any], object]
FieldTable = Mapping[str, tuple[str, ReadValue]]

_ENDLESS_LOOPS: Final = 100
"""Number of loops that stand for ``forever``."""

_MAX_RING_S: Final = 120
_MIN_RING_S: Final = 5
_RATES: Final = (8000, 16000)
_TRACK_ACTIONS: Final = {
    "addTrack": "add",
    "playOnTrack": "play",
    "sayOnTrack": "say",
    "silenceTrack": "silence",
    "removeTrack": "remove",
}
_GAIN: Final = re.compile(r"([+-]?[0-9]{1,3}(?:\.[0-9]{1,3})?)(?: ?dB)?", re.IGNORECASE)
_INPUTS: Final = ("digits", "dtmf", "speech")


def _as_is(value: Any) -> object:
    return value


def _only(*allowed: object) -> ReadValue:
    shown = " or ".join(str(item).lower() if isinstance(item, bool) else str(item) for item in allowed)

    def read(value: Any) -> object:
        if not any(type(value) is type(item) and value == item for item in allowed):
            raise ValueError(f"is not available; only {shown} is")
        return None

    return read


def _loops(value: Any) -> object:
    if value in ("forever", 0, "0") and not isinstance(value, bool):
        return _ENDLESS_LOOPS
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value


def _ring_s(value: Any) -> object:
    """The ring time of jambonz has no limits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return min(max(value, _MIN_RING_S), _MAX_RING_S)


def _text(value: Any) -> object:
    """A text to speak; a list of several leaves the choice of one to the server."""
    text = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(text, str):
        raise ValueError("must be one text")
    if text.lstrip().lower().startswith("<speak"):
        raise ValueError("is SSML, which is not available")
    return text


def _keys_only(value: Any) -> object:
    if not isinstance(value, list) or not value or any(item not in ("digits", "dtmf") for item in value):
        raise ValueError('is not available; only ["digits"] is')
    return None


def _inputs(value: Any) -> object:
    """Keys have two names with jambonz."""
    if not isinstance(value, list) or not value or any(item not in _INPUTS for item in value):
        raise ValueError("must be a list of digits and speech")
    return ["speech" if item == "speech" else "digits" for item in value]


def _empty(value: Any) -> object:
    if value:
        raise ValueError("is not available")
    return None


def _bidirectional(value: Any) -> object:
    if not isinstance(value, Mapping) or value.get("enabled", True) is not True:
        raise ValueError("must be an object whose enabled is true")
    return None


def _rate(value: Any) -> object:
    if value not in _RATES or isinstance(value, bool):
        raise ValueError("must be 8000 or 16000")
    return value


def _metadata(value: Any) -> object:
    """Data for an agent; its parameters are texts."""
    if not isinstance(value, Mapping):
        raise ValueError("must be an object")
    for item in value.values():
        if isinstance(item, Mapping | list):
            raise ValueError("must be an object of texts, numbers, true and false")
    return {name: _word(item) for name, item in value.items() if item is not None}


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _basic(value: Any) -> object:
    if not isinstance(value, Mapping) or set(value) != {"username", "password"}:
        raise ValueError("must be {username, password}")
    return {"type": "basic", **value}


def _track_action(value: Any) -> object:
    if not isinstance(value, str) or value not in _TRACK_ACTIONS:
        raise ValueError(f"must be one of {', '.join(_TRACK_ACTIONS)}")
    return _TRACK_ACTIONS[value]


def _gain_db(value: Any) -> object:
    """Decibels as a number, or as a text such as "-6 dB"."""
    if not isinstance(value, str):
        return value
    found = _GAIN.fullmatch(value.strip())
    if found is None:
        raise ValueError('must be a number of decibels, or a text such as "-6 dB"')
    return float(found[1])


_NEVER: Final = _only(False)
_ALWAYS: Final = _only(True)

SAY: Final[FieldTable] = {
    "text": ("text", _text),
    "loop": ("loop", _loops),
    "stream": ("", _NEVER),
    "earlyMedia": ("", _NEVER),
}
PLAY: Final[FieldTable] = {"loop": ("loop", _loops), "earlyMedia": ("", _NEVER)}
PAUSE: Final[FieldTable] = {"length": ("length", _as_is)}
GATHER: Final[FieldTable] = {
    "input": ("input", _inputs),
    "finishOnKey": ("finish_on_key", _as_is),
    "maxDigits": ("num_digits", _as_is),
    "numDigits": ("num_digits", _as_is),
    "minDigits": ("min_digits", _as_is),
    "interDigitTimeout": ("inter_digit_timeout", _as_is),
    "timeout": ("timeout", _as_is),
    "dtmfBargein": ("", _ALWAYS),
    "listenDuringPrompt": ("", _ALWAYS),
}
BARGE_IN: Final[FieldTable] = {
    "enable": ("", _as_is),
    "sticky": ("", _NEVER),
    "input": ("", _keys_only),
    **{name: GATHER[name] for name in ("finishOnKey", "maxDigits", "numDigits", "minDigits")},
    "interDigitTimeout": GATHER["interDigitTimeout"],
    "dtmfBargein": GATHER["dtmfBargein"],
}
DIAL: Final[FieldTable] = {
    "timeout": ("timeout", _ring_s),
    "timeLimit": ("time_limit", _as_is),
    "callerId": ("caller_id", _as_is),
    "headers": ("headers", _as_is),
    "anchorMedia": ("", _ALWAYS),
    "exitMediaPath": ("", _NEVER),
}
CONFERENCE: Final[FieldTable] = {
    "name": ("name", _as_is),
    "beep": ("beep", _as_is),
    "startConferenceOnEnter": ("start_on_enter", _as_is),
    "endConferenceOnExit": ("end_on_exit", _as_is),
    "maxParticipants": ("max_participants", _as_is),
    "joinMuted": ("muted", _as_is),
    "distributeDtmf": ("", _NEVER),
}
LISTEN: Final[FieldTable] = {
    "url": ("url", _as_is),
    "sampleRate": ("sample_rate", _rate),
    "mixType": ("", _only("mono")),
    "metadata": ("custom_parameters", _metadata),
    "wsAuth": ("stream_auth", _basic),
    "auth": ("stream_auth", _basic),
    "passDtmf": ("", _only(True, False)),
    "playBeep": ("", _NEVER),
    "earlyMedia": ("", _NEVER),
    "disableBidirectionalAudio": ("", _NEVER),
    "bidirectionalAudio": ("", _bidirectional),
}
TRANSCRIBE: Final[FieldTable] = {"enabled": ("", _ALWAYS), "earlyMedia": ("", _NEVER)}
REDIRECT: Final[FieldTable] = {}
HANGUP: Final[FieldTable] = {"headers": ("", _empty)}
TAG: Final[FieldTable] = {"data": ("data", _as_is)}
DTMF: Final[FieldTable] = {"dtmf": ("digits", _as_is)}
DECLINE: Final[FieldTable] = {"status": ("status", _as_is), "headers": ("", _empty)}
MESSAGE: Final[FieldTable] = {name: (name, _as_is) for name in ("to", "from", "text")}
DUB: Final[FieldTable] = {
    "action": ("action", _track_action),
    "track": ("track", _as_is),
    "play": ("url", _as_is),
    "say": ("text", _text),
    "loop": ("loop", _as_is),
    "gain": ("gain", _gain_db),
}
REFER: Final[FieldTable] = {"headers": ("headers", _as_is)}
CONFIG: Final[FieldTable] = {
    name: ("", _NEVER) for name in ("notifyEvents", "notifySttLatency", "autoStreamTts", "earlyMedia")
}

HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "say": frozenset({"instructions", "disableTtsCache", "closeStreamOnEmpty"}),
    "gather": frozenset({"bargein", "minBargeinWordCount", "speechTimeout", "partialResultHook", "vad"}),
    "bargeIn": frozenset({"minBargeinWordCount", "partialResultHook"}),
    "dtmf": frozenset({"duration"}),
    "sip:decline": frozenset({"reason"}),
    "config": frozenset({"vad", "disableTtsCache"}),
}
"""
Fields without an effect on the call.

They set how a voice sounds, when words count as heard, a tone's length, a phrase.
"""

SWITCHES: Final = frozenset({"listen", "stream", "transcribe", "fillerNoise", "ttsStream", "bargeIn"})
"""Parts of ``config`` that do nothing while their ``enable`` is false."""

_NO_QUEUE: Final = "is not available: there are no queues; use conference"
_NO_BOT: Final = "is not available; use listen, or llm"
_NO_CHAIN: Final = "is not available: recogniser, model and voice are not joined here; use llm, or listen"
_NO_MODEL: Final = "is not available; models are those of openai, google, deepgram, elevenlabs and ultravox"
MODEL_VERBS: Final[Mapping[str, str | None]] = {
    "llm": None,
    "s2s": None,
    "openai_s2s": "openai",
    "google_s2s": "google",
    "deepgram_s2s": "deepgram",
    "elevenlabs_s2s": "elevenlabs",
    "ultravox_s2s": "ultravox",
}
"""Verbs that connect a speech model, and the only vendor of each that has one."""

REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("enqueue", "dequeue", "leave"), _NO_QUEUE),
    **dict.fromkeys(("dialogflow", "lex", "rasa"), _NO_BOT),
    **dict.fromkeys(("agent", "pipeline"), _NO_CHAIN),
    **dict.fromkeys(("qwen_s2s", "gptlive_s2s", "voicelive_s2s"), _NO_MODEL),
    "alert": "is not available: a waiting caller hears ringing by itself",
    "sip:request": "is not available",
    "transfer": "is not available; use sip:refer, or dial",
    "record": "is not available; use the field record of config",
}
"""Verbs of jambonz that are refused, and why."""
