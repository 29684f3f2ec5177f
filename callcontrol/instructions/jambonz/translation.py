"""
Translation of an answer of jambonz's verbs into objects of the verb reader.

Wrong values are named by their place in the answer: ``verbs[2].numDigits``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.instructions.jambonz import tables
from callcontrol.instructions.jambonz.models import read_llm
from callcontrol.instructions.jambonz.tables import FieldTable

Verb = dict[str, Any]

MAX_VERBS: Final = 50
_PLACE: Final = re.compile(r"(verbs\[\d+\](?:\.(?:prompts|target)\[\d+\])?)\.?(.*)", re.DOTALL)
_HOOK: Final = {"action_url": "actionHook", "action_method": "actionHook.method"}
_PROMPT_VERBS: Final = ("say", "play", "pause")


@dataclass(frozen=True, slots=True)
class Translated:
    """
    Verbs of an answer, and the errors of what could not be translated.

    ``places`` leads from a place in ``verbs`` to the one in the answer and the names of its fields there.
    """

    verbs: object
    errors: list[FieldError]
    places: Mapping[str, tuple[str, Mapping[str, str]]]

    def named(self, error: FieldError) -> FieldError:
        """Return the error of a verb, named by the place in the answer that the verb comes from."""
        found = _PLACE.fullmatch(error.field)
        if found is None or found[1] not in self.places:
            return error
        place, names = self.places[found[1]]
        field, dot, rest = found[2].partition(".")
        name = names.get(field, field) + dot + rest
        return FieldError(f"{place}.{name}" if name else place, error.message)


def read_jambonz(answer: object, language: str | None, heard_language: str | None = None) -> Translated:
    """Translate an answer; the languages are those of texts, and of words to recognise, that name none."""
    if not isinstance(answer, list) or len(answer) > MAX_VERBS:
        error = FieldError("body", f"must be a list of at most {MAX_VERBS} verbs")
        return Translated([], [error], {})
    translation = _Translation(language, heard_language)
    for index, item in enumerate(answer):
        translation.item(f"verbs[{index}]", item)
    return Translated(translation.verbs, translation.errors, translation.places)


def live_dub(given: Mapping[str, Any]) -> Verb:
    """
    Translate ``dub`` of a change to an active call into the fields of our verb.

    Raises:
        ValidationFailed: Fields are wrong.
    """
    translation = _Translation(None, None)
    translation.dub("dub", dict(given))
    if translation.errors:
        raise ValidationFailed(translation.errors)
    (verb,) = translation.verbs
    return {name: value for name, value in verb.items() if name != "verb"}


class _Translation:
    """Translates one answer."""

    def __init__(self, language: str | None, heard_language: str | None) -> None:
        self.verbs: list[Verb] = []
        self.errors: list[FieldError] = []
        self.places: dict[str, tuple[str, Mapping[str, str]]] = {}
        self._language = language
        self._heard_language = heard_language
        self._barge_in: Verb | None = None
        self._barges = False
        """True while the last verb is a list of prompts that keys may interrupt."""

    def item(self, path: str, item: object) -> None:
        """Translate one verb."""
        name = item.get("verb") if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not isinstance(name, str):
            self.wrong(f"{path}.verb", f"must be one of {', '.join(_VERBS)}")
            return
        translate = _VERBS.get(name)
        if translate is None:
            known = tables.REFUSED.get(name) or f"must be one of {', '.join(_VERBS)}"
            self.wrong(f"{path}.verb", f"{name} {known}" if name in tables.REFUSED else known)
            return
        given = {field: value for field, value in item.items() if field not in ("verb", "id")}
        translate(self, path, given)

    def wrong(self, path: str, message: str) -> None:
        """Record an error."""
        self.errors.append(FieldError(path[:200], message))

    def add(self, path: str, verb: Verb, names: Mapping[str, str] | None = None) -> None:
        """Add a verb, with the place it comes from and the names of its fields there."""
        if self._barge_in is not None and verb["verb"] in _PROMPT_VERBS:
            self._interruptible(path, verb, names or {})
            return
        self._barges = False
        self.places[f"verbs[{len(self.verbs)}]"] = path, {**_HOOK, **(names or {})}
        self.verbs.append(verb)

    def _interruptible(self, path: str, verb: Verb, names: Mapping[str, str]) -> None:
        """Add a prompt to those that a key may interrupt, as the barge-in of ``config`` demands."""
        if not self._barges:
            self._barges = True
            self.places[f"verbs[{len(self.verbs)}]"] = path, _HOOK
            self.verbs.append({**(self._barge_in or {}), "prompts": []})
        prompts = self.verbs[-1]["prompts"]
        self.places[f"verbs[{len(self.verbs) - 1}].prompts[{len(prompts)}]"] = path, names
        prompts.append(verb)

    def fields(self, path: str, kind: str, given: Mapping[str, Any], table: FieldTable) -> Verb:
        """Read the fields of a verb by their names here; null counts as absent."""
        found: Verb = {}
        for name, value in given.items():
            if value is None or name in tables.HARMLESS.get(kind, ()):
                continue
            if name not in table:
                self.wrong(f"{path}.{str(name)[:100]}", f"is not available in {kind}")
                continue
            field, read = table[name]
            try:
                read_value = read(value)
            except ValueError as error:
                self.wrong(f"{path}.{name}", str(error))
            else:
                if field:
                    found[field] = read_value
        return found

    def hook(self, path: str, given: dict[str, Any]) -> Verb:
        """Remove the action hook from the fields: an address, or an object with address and method."""
        hook = given.pop("actionHook", None)
        if hook is None:
            return {}
        if isinstance(hook, str):
            return {"action_url": hook}
        if not isinstance(hook, Mapping) or not isinstance(hook.get("url"), str):
            self.wrong(f"{path}.actionHook", "must be a URL, or an object with url and method")
            return {}
        for name, value in hook.items():
            if name not in ("url", "method") and value not in (None, ""):
                self.wrong(f"{path}.actionHook.{str(name)[:100]}", "is not available")
        method = hook.get("method")
        found: Verb = {"action_url": hook["url"]}
        if method is not None:
            found["action_method"] = method.upper() if isinstance(method, str) else method
        return found

    def language_of(self, path: str, given: dict[str, Any]) -> str | None:
        """Remove the synthesizer from the fields, and return its language: there is one voice."""
        return self._language_in(path, given, "synthesizer", self._language)

    def heard_language_of(self, path: str, given: dict[str, Any]) -> str | None:
        """Remove the recogniser from the fields, and return its language: there is one recogniser."""
        return self._language_in(path, given, "recognizer", self._heard_language)

    def _language_in(self, path: str, given: dict[str, Any], name: str, usual: str | None) -> str | None:
        found = given.pop(name, None)
        if found is None:
            return usual
        if not isinstance(found, Mapping):
            self.wrong(f"{path}.{name}", "must be an object")
            return usual
        language = found.get("language")
        return usual if language is None else language

    # --- prompts --------------------------------------------------------------------------------------------

    def prompts(self, path: str, kind: str, given: dict[str, Any]) -> list[Verb]:
        """Return the verbs of a ``say`` or ``play``, of which a list of sounds makes several."""
        if kind == "say":
            language = self.language_of(path, given)
            spoken = self.fields(path, "say", given, tables.SAY)
            chosen = {} if language is None else {"language": language}
            return [{"verb": "say", **chosen, **spoken}]
        url = given.pop("url", None)
        found = self.fields(path, "play", given, tables.PLAY)
        urls = url if isinstance(url, list) else [url]
        if not urls:
            self.wrong(f"{path}.url", "must have at least one address")
        return [{"verb": "play", "url": item, **found} for item in urls]

    def say(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``say``."""
        for verb in self.prompts(path, "say", given):
            self.add(path, verb, _SYNTHESIZER)

    def play(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``play``."""
        for verb in self.prompts(path, "play", given):
            self.add(path, verb)

    def pause(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``pause``; one of length zero has no effect."""
        found = self.fields(path, "pause", given, tables.PAUSE)
        if found.get("length") != 0:
            self.add(path, {"verb": "pause", **found})

    def gather(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``gather``: its hook is asked without any input, too, as jambonz does."""
        hook = self.hook(path, given)
        language = self.heard_language_of(path, given)
        nested = [(kind, given.pop(kind, None)) for kind in ("say", "play")]
        found = self.fields(path, "gather", given, tables.GATHER)
        index = len(self.verbs)
        prompts: list[Verb] = []
        for kind, value in nested:
            if value is None:
                continue
            if not isinstance(value, Mapping):
                self.wrong(f"{path}.{kind}", f"must be an object such as the verb {kind} has")
                continue
            inner = {name: item for name, item in value.items() if name not in ("verb", "id")}
            for prompt in self.prompts(f"{path}.{kind}", kind, inner):
                self.places[f"verbs[{index}].prompts[{len(prompts)}]"] = f"{path}.{kind}", _SYNTHESIZER
                prompts.append(prompt)
        asked = {**hook, "action_on_empty": True} if hook else {}
        if language is not None and "speech" in found.get("input", ()):
            found["language"] = language
        self.add(path, {"verb": "gather", "finish_on_key": "", **asked, **found, "prompts": prompts}, _GATHER)

    # --- other parties --------------------------------------------------------------------------------------

    def dial(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``dial``: the caller is answered before the party, unless ``answerOnBridge`` is true."""
        hook = self.hook(path, given)
        targets = given.pop("target", None)
        on_bridge = given.pop("answerOnBridge", None)
        if on_bridge not in (None, True, False):
            self.wrong(f"{path}.answerOnBridge", "must be true or false")
        found = self.fields(path, "dial", given, tables.DIAL)
        if on_bridge is not True:
            self.add(path, {"verb": "answer"})
        place = f"{path}.target[0]"
        if not isinstance(targets, list) or len(targets) != 1 or not isinstance(targets[0], Mapping):
            self.wrong(f"{path}.target", "must be a list of one target: several are not available")
            return
        target, name = self._target(place, dict(targets[0]))
        if not target:
            return
        headers = target.pop("headers", None)
        if headers is not None:
            found["headers"] = headers
        self.places[f"verbs[{len(self.verbs)}].target[0]"] = place, {"sip_uri": name, "number": name}
        self.add(path, {"verb": "dial", **hook, **found, "target": [target]}, _DIAL)

    def _target(self, path: str, given: dict[str, Any]) -> tuple[Verb, str]:
        """Return a target of ours, empty for one of an unknown type, and the name of its address."""
        kind = given.pop("type", None)
        known = _TARGETS.get(kind) if isinstance(kind, str) else None
        if known is None:
            self.wrong(f"{path}.type", f"must be {' or '.join(_TARGETS)}")
            return {}, ""
        name, ours = known
        address = given.pop(name, None)
        headers = given.pop("headers", None)
        for field, value in given.items():
            if value is not None and not (kind == "sip" and field == "name"):
                self.wrong(f"{path}.{str(field)[:100]}", f"is not available in a target of type {kind}")
        if kind == "user" and isinstance(address, str) and not address.lower().startswith("sip:"):
            address = f"sip:{address}"
        kept = {} if headers is None else {"headers": headers}
        return {"type": "phone" if ours == "number" else "sip", ours: address, **kept}, name

    def conference(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``conference``."""
        hook = self.hook(path, given)
        found = self.fields(path, "conference", given, tables.CONFERENCE)
        self.add(path, {"verb": "conference", **hook, **found}, _CONFERENCE)

    def listen(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``listen`` and its synonym ``stream``: a voice agent by the dialect of that name."""
        hook = self.hook(path, given)
        found = self.fields(path, "listen", given, tables.LISTEN)
        self.add(path, {"verb": "stream", "stream_protocol": "jambonz", **hook, **found}, _LISTEN)

    def model(self, path: str, given: dict[str, Any], verb: str) -> None:
        """Translate ``llm`` and its synonyms: a vendor's speech model."""
        hook = self.hook(path, given)
        read = read_llm(verb, given, lambda place, message: self.wrong(f"{path}.{place}", message))
        if read is not None:
            fields, names = read
            self.add(path, {"verb": "model", **hook, **fields}, names)

    def refer(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``sip:refer``: a transfer to a SIP address or a number."""
        hook = self.hook(path, given)
        address = given.pop("referTo", None)
        found = self.fields(path, "sip:refer", given, tables.REFER)
        is_sip = isinstance(address, str) and address.lower().startswith("sip")
        ours = {"type": "sip", "sip_uri": address} if is_sip else {"type": "phone", "number": address}
        names = {"sip_uri": "referTo", "number": "referTo"}
        self.places[f"verbs[{len(self.verbs)}].target[0]"] = path, names
        self.add(path, {"verb": "refer", **hook, **found, "target": [ours]})

    # --- the call itself ------------------------------------------------------------------------------------

    def answer(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``answer``."""
        self.fields(path, "answer", given, {})
        self.add(path, {"verb": "answer"})

    def hangup(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``hangup``."""
        self.fields(path, "hangup", given, tables.HANGUP)
        self.add(path, {"verb": "hangup"})

    def redirect(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``redirect``."""
        if given.get("actionHook") is None:
            self.wrong(f"{path}.actionHook", "is required")
            return
        hook = self.hook(path, given)
        self.fields(path, "redirect", given, tables.REDIRECT)
        if hook:
            asked = {"url": hook["action_url"], "method": hook.get("action_method")}
            self.add(path, {"verb": "redirect", **asked}, _REDIRECT)

    def decline(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``sip:decline``."""
        if given.get("status") is None:
            self.wrong(f"{path}.status", "is required")
        self.add(path, {"verb": "reject", **self.fields(path, "sip:decline", given, tables.DECLINE)})

    def dtmf(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``dtmf``."""
        found = self.fields(path, "dtmf", given, tables.DTMF)
        self.add(path, {"verb": "send_digits", **found}, {"digits": "dtmf"})

    def message(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``message``: a text on the chat network of the account's channel."""
        hook = self.hook(path, given)
        self.add(path, {"verb": "message", **hook, **self.fields(path, "message", given, tables.MESSAGE)})

    def dub(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``dub``; what is to be said is a text, or the fields of ``say``."""
        say = given.get("say")
        if isinstance(say, Mapping):
            given = {**given, "say": say.get("text"), "synthesizer": say.get("synthesizer")}
            for name in say.keys() - {"text", "synthesizer"}:
                self.wrong(f"{path}.say.{str(name)[:100]}", "is not available in dub")
        language = self.language_of(path, given)
        found = self.fields(path, "dub", {"action": "", **given}, tables.DUB)
        if language is not None and "text" in found:
            found["language"] = language
        self.add(path, {"verb": "dub", **found}, _DUB)

    def tag(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``tag``."""
        self.add(path, {"verb": "tag", **self.fields(path, "tag", given, tables.TAG)})

    def config(self, path: str, given: dict[str, Any]) -> None:
        """Translate ``config``: the recording, languages, barge-in by keys, and the transcription."""
        record = given.pop("record", None)
        spoken, heard = (given.get(name) is not None for name in ("synthesizer", "recognizer"))
        language, heard_language = self.language_of(path, given), self.heard_language_of(path, given)
        switches = {name: given.pop(name) for name in list(given) if name in tables.SWITCHES}
        self.fields(path, "config", given, tables.CONFIG)
        if spoken and language is not None:
            self._language = language
            self.add(path, {"verb": "language", "language": language}, _SYNTHESIZER)
        if heard and heard_language is not None:
            self._heard_language = heard_language
            self.add(path, {"verb": "heard_language", "language": heard_language}, _RECOGNIZER)
        if record is not None:
            self._record(f"{path}.record", record)
        for name, value in switches.items():
            if value is not None:
                self._switch(f"{path}.{name}", name, value)

    def _record(self, path: str, record: object) -> None:
        if not isinstance(record, Mapping):
            self.wrong(path, "must be an object with the field action")
            return
        for name, value in record.items():
            if name not in ("action", "recordingID", "type") and value is not None:
                self.wrong(f"{path}.{str(name)[:100]}", "is not available")
        self.add(path, {"verb": "recording", "action": record.get("action")})

    def transcribe(self, path: str, given: dict[str, Any], *, waits: bool = True) -> None:
        """Translate ``transcribe``: one that ``waits`` lasts until the call goes on with other verbs."""
        language = self.heard_language_of(path, given)
        hook = given.pop("transcriptionHook", None)
        if isinstance(hook, Mapping):
            for name, value in hook.items():
                if name != "url" and value not in (None, "", "POST", "post"):
                    self.wrong(f"{path}.transcriptionHook.{str(name)[:100]}", "is not available")
            hook = hook.get("url")
        if not isinstance(hook, str):
            self.wrong(f"{path}.transcriptionHook", "must be a URL, or an object with url")
            return
        self.fields(path, "transcribe", given, tables.TRANSCRIBE)
        chosen = {} if language is None else {"language": language}
        verb = {"verb": "transcription", "action": "start", "hook_url": hook, "waits": waits, **chosen}
        self.add(path, verb, _TRANSCRIPTION)

    def _switch(self, path: str, name: str, value: object) -> None:
        enabled = value.get("enable") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(enabled, bool):
            self.wrong(path, "must be an object whose enable is true or false")
        elif not enabled:
            if name == "bargeIn":
                self._barge_in, self._barges = None, False
            elif name == "transcribe":
                self.add(path, {"verb": "transcription", "action": "stop"})
        elif name == "transcribe":
            given = {field: item for field, item in value.items() if field != "enable"}
            self.transcribe(path, given, waits=False)
        elif name != "bargeIn":
            self.wrong(path, "is not available in config")
        else:
            given = dict(value)
            hook = self.hook(path, given)
            found = self.fields(path, "bargeIn", given, tables.BARGE_IN)
            self._barges = False
            self._barge_in = {"verb": "gather", "barge_in": True, "finish_on_key": "", **hook, **found}


_SYNTHESIZER: Final = {"language": "synthesizer.language"}
_RECOGNIZER: Final = {"language": "recognizer.language"}
_TRANSCRIPTION: Final = {**_RECOGNIZER, "hook_url": "transcriptionHook"}
_TARGETS: Final = {"phone": ("number", "number"), "sip": ("sipUri", "sip_uri"), "user": ("name", "sip_uri")}
"""By the type of a target: the field with its address, and ours."""


def _names(table: FieldTable) -> dict[str, str]:
    return {field: name for name, (field, _) in table.items() if field}


_GATHER: Final = {**_names(tables.GATHER), **_RECOGNIZER}
_DIAL: Final = _names(tables.DIAL)
_DUB: Final = {**_names(tables.DUB), "language": "say.synthesizer.language"}
_CONFERENCE: Final = _names(tables.CONFERENCE)
_LISTEN: Final = {**_names(tables.LISTEN), "stream_auth": "wsAuth"}
_REDIRECT: Final = {"url": "actionHook", "method": "actionHook.method"}
_VERBS: Final[Mapping[str, Callable[[_Translation, str, dict[str, Any]], None]]] = {
    "answer": _Translation.answer,
    "conference": _Translation.conference,
    "config": _Translation.config,
    "dial": _Translation.dial,
    "dtmf": _Translation.dtmf,
    "dub": _Translation.dub,
    "gather": _Translation.gather,
    "hangup": _Translation.hangup,
    "listen": _Translation.listen,
    "message": _Translation.message,
    "pause": _Translation.pause,
    "play": _Translation.play,
    "redirect": _Translation.redirect,
    "room": _Translation.conference,
    "say": _Translation.say,
    "sip:decline": _Translation.decline,
    "sip:refer": _Translation.refer,
    "stream": _Translation.listen,
    "tag": _Translation.tag,
    "transcribe": _Translation.transcribe,
    **{verb: partial(_Translation.model, verb=verb) for verb in tables.MODEL_VERBS},
}
