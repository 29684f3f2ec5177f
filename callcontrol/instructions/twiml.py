"""
TwiML, as far as there are verbs for it: translates a document into objects of the verb reader.

Unsupported elements and attributes are refused by name, as with verbs; attributes without an effect on the
call are ignored (``_HARMLESS``). Wrong values are named by their place in the document:
``Response.Gather[2].numDigits``.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.instructions.safe_xml import Element, XmlError, read_xml

Verb = dict[str, Any]
Attribute = Callable[[str], object]

_MAX_RING_S: Final = 120
_MIN_RING_S: Final = 5
_ENDLESS_LOOPS: Final = 100
"""Number of loops for ``loop="0"``, which means for ever."""

_ROOT: Final = "Response"
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?", re.ASCII)
_PLACE: Final = re.compile(r"(verbs\[\d+\](?:\.(?:prompts|target)\[\d+\])?)\.?(.*)", re.DOTALL)


def read_twiml(document: bytes, url: str) -> tuple[object, Mapping[str, str], list[FieldError]]:
    """
    The verbs of a document that came from ``url``, its places by those of the list of verbs, and its errors.

    Verbs stand for all that can be translated, so that their errors can be named with those of the document.

    Raises:
        ValidationFailed: The document cannot be read.
    """
    try:
        root = read_xml(document)
    except XmlError as error:
        raise ValidationFailed.of("body", str(error)) from None
    if root.name != _ROOT:
        raise ValidationFailed.of("body", f"must be a <{_ROOT}>, not <{root.name[:50]}>")
    translation = _Translation(url)
    translation.document(root)
    return translation.verbs, translation.places, translation.errors


def named_in(error: FieldError, places: Mapping[str, str]) -> FieldError:
    """The error of a verb, named by the place in the document that the verb comes from."""
    found = _PLACE.fullmatch(error.field)
    if found is None or found[1] not in places:
        return error
    name = _ATTRIBUTE_OF.get(found[2], found[2])
    return FieldError(f"{places[found[1]]}{'.' if name else ''}{name}", error.message)


class _Translation:
    """Translates one document into verbs."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.verbs: list[Verb] = []
        self.places: dict[str, str] = {}
        self.errors: list[FieldError] = []

    def document(self, root: Element) -> None:
        """Translate all verbs of a document, in order."""
        for path, element in _numbered(_ROOT, root):
            translate = _ELEMENTS.get(element.name)
            if translate is None:
                self.wrong(path, f"is not available; these are: {', '.join(_ELEMENTS)}")
            else:
                self.add(path, translate(self, path, element))

    def add(self, path: str, verb: Verb | None) -> None:
        """Add a verb, and the place it comes from."""
        if verb is not None:
            self.places.setdefault(f"verbs[{len(self.verbs)}]", path)
            self.verbs.append(verb)

    def wrong(self, path: str, message: str) -> None:
        """Record an error."""
        self.errors.append(FieldError(path[:200], message))

    def attributes(self, path: str, element: Element, known: Mapping[str, tuple[str, Attribute]]) -> Verb:
        """The attributes of an element by the field names of verbs."""
        found: Verb = {}
        for name, text in element.attributes.items():
            if name in known:
                field, read = known[name]
                try:
                    value = read(text.strip())
                except ValueError as error:
                    self.wrong(f"{path}.{name}", str(error))
                else:
                    if field:
                        found[field] = value
            elif name not in _HARMLESS.get(element.name, ()):
                self.wrong(f"{path}.{name[:100]}", f"is not available in <{element.name}>")
        return found

    def childless(self, path: str, element: Element) -> None:
        """Refuse child elements where none may be: they would have no effect."""
        for inner, _ in _numbered(path, element):
            self.wrong(inner, f"is not available in <{element.name}>")

    # --- elements -------------------------------------------------------------------------------------------

    def say(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Say>``: a text to be spoken."""
        self.childless(path, element)
        return {"verb": "say", "text": element.text, **self.attributes(path, element, _SAY)}

    def play(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Play>``: a sound, or digits."""
        self.childless(path, element)
        found = self.attributes(path, element, _PLAY)
        if "digits" in found:
            return {"verb": "send_digits", "digits": found["digits"]}
        return {"verb": "play", "url": element.text.strip(), **found}

    def pause(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Pause>``: a silence."""
        self.childless(path, element)
        found = self.attributes(path, element, _PAUSE)
        # A pause of length zero has no effect.
        return None if found.get("length") == 0 else {"verb": "pause", **found}

    def gather(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Gather>``: keys, during prompts; the action defaults to the same document."""
        verb = {"verb": "gather", "action_url": self._url, **self.attributes(path, element, _GATHER)}
        prompts: list[Verb] = []
        for inner, child in _numbered(path, element):
            translate = _PROMPTS.get(child.name)
            prompt = translate(self, inner, child) if translate is not None else None
            if translate is None:
                self.wrong(inner, f"is not available in <Gather>; these are: {', '.join(_PROMPTS)}")
            elif prompt is not None:
                self.places[f"verbs[{len(self.verbs)}].prompts[{len(prompts)}]"] = inner
                prompts.append(prompt)
        return {**verb, "prompts": prompts}

    def record(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Record>``: a message; the action defaults to the same document."""
        self.childless(path, element)
        return {"verb": "record", "action_url": self._url, **self.attributes(path, element, _RECORD)}

    def dial(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Dial>``: a number as text, or one element with the target."""
        found = self.attributes(path, element, _DIAL)
        found.setdefault("timeout", 30)
        place = f"verbs[{len(self.verbs)}].target[0]"
        self.places[place] = path
        if len(element.children) + bool(element.text.strip()) != 1:
            self.wrong(path, "must have one number, or one <Number>, <Sip> or <Conference>")
            return None
        if not element.children:
            return {"verb": "dial", **found, "target": [{"type": "phone", "number": element.text.strip()}]}
        ((inner, child),) = _numbered(path, element)
        self.places[place] = inner
        self.childless(inner, child)
        translate = _TARGETS.get(child.name)
        if translate is None:
            self.wrong(inner, f"is not available in <Dial>; these are: {', '.join(_TARGETS)}")
            return None
        return translate(self, inner, child, found)

    def dialled_number(self, path: str, element: Element, dial: Verb) -> Verb:
        """Translate ``<Number>``: a number to call."""
        self.attributes(path, element, {})
        return {"verb": "dial", **dial, "target": [{"type": "phone", "number": element.text.strip()}]}

    def dialled_sip(self, path: str, element: Element, dial: Verb) -> Verb:
        """Translate ``<Sip>``: a SIP address to call; the part after its question mark is headers."""
        self.attributes(path, element, {})
        address, _, query = element.text.strip().partition("?")
        # The reader of verbs limits their number.
        headers = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        given = {"headers": headers} if headers else {}
        return {"verb": "dial", **dial, **given, "target": [{"type": "sip", "sip_uri": address}]}

    def dialled_conference(self, path: str, element: Element, dial: Verb) -> Verb:
        """Translate ``<Conference>``: a conference to join, which dials no party."""
        room = {"type": "conference", "name": element.text.strip(), **self.attributes(path, element, _ROOM)}
        kept = {name: value for name, value in dial.items() if name.startswith("action")}
        return {"verb": "dial", **kept, "target": [room]}

    def connect(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Connect>``: a voice agent over a WebSocket."""
        found = self.attributes(path, element, _CONNECT)
        if [child.name for child in element.children] != ["Stream"]:
            self.wrong(path, "must have one <Stream>")
            return None
        ((inner, stream),) = _numbered(path, element)
        self.places[f"verbs[{len(self.verbs)}]"] = inner
        verb = {"verb": "stream", "stream_protocol": "twilio", **found}
        verb |= self.attributes(inner, stream, _STREAM)
        parameters: dict[str, str] = {}
        for place, child in _numbered(inner, stream):
            if child.name != "Parameter":
                self.wrong(place, "is not available in <Stream>; use <Parameter>")
            else:
                given = self.attributes(place, child, _PARAMETER)
                parameters[given.get("name", "")] = given.get("value", "")
        return {**verb, "custom_parameters": parameters} if parameters else verb

    def redirect(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Redirect>``: another URL to request; an empty one means the same document again."""
        self.childless(path, element)
        url = element.text.strip() or self._url
        return {"verb": "redirect", "url": url, **self.attributes(path, element, _REDIRECT)}

    def reject(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Reject>``: a refusal of the call."""
        self.childless(path, element)
        return {"verb": "reject", "status": 603, **self.attributes(path, element, _REJECT)}

    def hangup(self, path: str, element: Element) -> Verb | None:
        """Translate ``<Hangup>``: the end of the call."""
        self.childless(path, element)
        self.attributes(path, element, {})
        return {"verb": "hangup"}


def _numbered(path: str, element: Element) -> list[tuple[str, Element]]:
    """The child elements of an element, each with its place: ``Response.Say[1]`` is the first child."""
    return [(f"{path}.{child.name[:50]}[{index}]", child) for index, child in enumerate(element.children, 1)]


# --- attributes ---------------------------------------------------------------------------------------------


def _text(text: str) -> object:
    return text


def _number(text: str) -> object:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("must be a number")
    return float(text) if "." in text else int(text)


def _loops(text: str) -> object:
    return _number(text) or _ENDLESS_LOOPS


def _ring_s(text: str) -> object:
    """Twilio's ring time has a wider range than ours at both ends."""
    seconds = _number(text)
    assert isinstance(seconds, int | float)
    return min(max(seconds, _MIN_RING_S), _MAX_RING_S)


def _one_of(meanings: Mapping[str, object]) -> Attribute:
    def read(text: str) -> object:
        if text not in meanings:
            raise ValueError(f"must be {' or '.join(meanings)}")
        return meanings[text]

    return read


_YES_NO: Final = _one_of({"true": True, "false": False})
_NEVER: Final = _one_of({"false": None})
"""An unsupported option: only ``false`` is accepted."""
_METHOD: Final = _one_of({"POST": "POST", "GET": "GET", "post": "POST", "get": "GET"})
_ACTION: Final = {"action": ("action_url", _text), "method": ("action_method", _METHOD)}

_SAY: Final = {"language": ("language", _text), "loop": ("loop", _loops)}
_PLAY: Final = {"loop": ("loop", _loops), "digits": ("digits", _text)}
_PAUSE: Final = {"length": ("length", _number)}
_GATHER: Final = {
    **_ACTION,
    "input": (
        "input",
        _one_of(
            {
                "dtmf": ["digits"],
                "speech": ["speech"],
                "dtmf speech": ["digits", "speech"],
                "speech dtmf": ["digits", "speech"],
            }
        ),
    ),
    "language": ("language", _text),
    "numDigits": ("num_digits", _number),
    "finishOnKey": ("finish_on_key", _text),
    "timeout": ("timeout", _number),
    "actionOnEmptyResult": ("action_on_empty", _YES_NO),
}
_RECORD: Final = {
    **_ACTION,
    "maxLength": ("max_length", _number),
    "timeout": ("silence_timeout", _number),
    "finishOnKey": ("finish_on_key", _text),
    "playBeep": ("beep", _YES_NO),
    "transcribe": ("", _NEVER),
}
_DIAL: Final = {
    **_ACTION,
    "timeout": ("timeout", _ring_s),
    "timeLimit": ("time_limit", _number),
    "callerId": ("caller_id", _text),
    "hangupOnStar": ("", _NEVER),
    "record": ("", _one_of({"do-not-record": None, "false": None})),
}
_ROOM: Final = {
    "muted": ("muted", _YES_NO),
    "beep": ("beep", _one_of({"true": True, "false": False, "onEnter": True, "onExit": True})),
    "startConferenceOnEnter": ("start_on_enter", _YES_NO),
    "endConferenceOnExit": ("end_on_exit", _YES_NO),
    "maxParticipants": ("max_participants", _number),
    "record": ("", _one_of({"do-not-record": None, "false": None})),
}
_CONNECT: Final = dict(_ACTION)
_STREAM: Final = {
    "url": ("url", _text),
    "track": ("stream_track", _one_of({"inbound_track": "inbound", "both_tracks": "both"})),
    "protocol": ("stream_protocol", _text),
    "sampleRate": ("sample_rate", _number),
    "maxRetries": ("stream_max_retries", _number),
}
_PARAMETER: Final = {"name": ("name", _text), "value": ("value", _text)}
_REDIRECT: Final = {"method": ("method", _METHOD)}
_REJECT: Final = {"reason": ("status", _one_of({"rejected": 603, "busy": 486}))}

_STATUS: Final = frozenset({"statusCallback", "statusCallbackEvent", "statusCallbackMethod"})
_HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "Say": frozenset({"voice"}),
    "Gather": frozenset(
        {"speechTimeout", "speechModel", "hints", "profanityFilter", "enhanced", "bargeIn"}
        | {"partialResultCallback", "partialResultCallbackMethod", "maxSpeechTime", "debug"}
    ),
    "Record": frozenset(
        {"trim", "recordingStatusCallback", "recordingStatusCallbackMethod", "recordingStatusCallbackEvent"}
    ),
    "Dial": frozenset({"answerOnBridge", "ringTone", "trim", "sequential"}),
    "Number": _STATUS,
    "Sip": _STATUS,
    "Conference": _STATUS
    | {"waitUrl", "waitMethod", "participantLabel", "region", "trim", "eventCallbackUrl"},
    "Stream": frozenset({"name", "statusCallback", "statusCallbackMethod"}),
}
"""
Attributes without an effect on the call.

They set the voice, additional callbacks, or speech recognition where keys are gathered.
"""

_PROMPTS: Final[Mapping[str, Callable[[_Translation, str, Element], Verb | None]]] = {
    "Say": _Translation.say,
    "Play": _Translation.play,
    "Pause": _Translation.pause,
}
_ELEMENTS: Final[Mapping[str, Callable[[_Translation, str, Element], Verb | None]]] = {
    **_PROMPTS,
    "Gather": _Translation.gather,
    "Record": _Translation.record,
    "Dial": _Translation.dial,
    "Connect": _Translation.connect,
    "Redirect": _Translation.redirect,
    "Reject": _Translation.reject,
    "Hangup": _Translation.hangup,
}
_TARGETS: Final[Mapping[str, Callable[[_Translation, str, Element, Verb], Verb]]] = {
    "Number": _Translation.dialled_number,
    "Sip": _Translation.dialled_sip,
    "Conference": _Translation.dialled_conference,
}
_ATTRIBUTE_OF: Final[Mapping[str, str]] = {
    **{
        field: name
        for table in (_SAY, _PAUSE, _REDIRECT, _STREAM, _ROOM, _DIAL, _GATHER, _ACTION)
        for name, (field, _) in table.items()
        if field
    },
    "silence_timeout": "timeout",
    "max_length": "maxLength",
    "beep": "beep",
    **{
        "text": "",
        "verb": "",
        "name": "",
        "number": "",
        "sip_uri": "",
        "target": "",
        "custom_parameters": "Parameter",
    },
}
"""The document's name of a verb's field; empty for the text of an element."""
