"""Verbs that jambonz needs beside ours, and the way on behind its action hooks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from callcontrol.calls.plan import (
    Annotate,
    ChangeRecording,
    ChangeTranscription,
    Dial,
    Gather,
    RecordingAction,
    RequestInstructions,
    SendMessage,
    Step,
    TransferParty,
)
from callcontrol.calls.records.call_form import Fact
from callcontrol.calls.records.call_info import (
    CUSTOMER_DATA,
    HEARD_LANGUAGE,
    MIN_DIGITS,
    SPOKEN_LANGUAGE,
)
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.instructions.verbs import VERBS, VerbTable, VerbValues
from callcontrol.instructions.verbs.dialling import DIAL_FIELDS, read_dial
from callcontrol.instructions.verbs.speaking import (
    GATHER_FIELDS,
    MAX_GATHERED,
    heard_language,
    read_gather,
)

MAX_TAG_BYTES: Final = 4096
"""Room for the data of a tag, which every later request carries."""

_MAX_WAIT_S: Final = 60.0
_BARGE_IN_WAIT_S: Final = 0.05
_AFTER_KEY_S: Final = 5.0
RECORDING_ACTIONS: Final[Mapping[str, RecordingAction]] = {
    "startCallRecording": "start",
    "stopCallRecording": "stop",
    "pauseCallRecording": "pause",
    "resumeCallRecording": "resume",
}
"""Orders for the recording of a call, by jambonz's name."""


def continued(steps: Sequence[Step]) -> list[Step]:
    """
    Return the steps so that a server which answers an action hook without verbs lets the list go on.

    That is jambonz's rule; with ours the answer always replaces the list.
    """
    rest: tuple[Step, ...] = ()
    for step in reversed(steps):
        rest = (_before(step, rest), *rest)
    return list(rest)


def _before(step: Step, rest: tuple[Step, ...]) -> Step:
    match step:
        case RequestInstructions():
            return replace(step, otherwise=rest)
        case Gather(action=RequestInstructions() as action) | Dial(action=RequestInstructions() as action):
            return replace(step, action=replace(action, otherwise=rest))
        case TransferParty(action=RequestInstructions() as action):
            return replace(step, action=replace(action, otherwise=rest))
        case SendMessage(action=RequestInstructions() as action):
            return replace(step, action=replace(action, otherwise=rest))
    return step


def tag_problem(data: object) -> str | None:
    """Return why data cannot be the tag of a call, None when they can."""
    if not isinstance(data, Mapping):
        return "is required" if data is None else "must be an object"
    if len(json.dumps(data, ensure_ascii=False).encode(errors="replace")) > MAX_TAG_BYTES:
        return f"must have at most {MAX_TAG_BYTES} bytes"
    return None


def read_keys(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read ``gather`` with the limits that ours has not; ``barge_in`` prompts do not wait for a key."""
    given = {name: value for name, value in verb.items() if name not in _KEY_FIELDS}
    steps = read_gather(values, path, given)
    after_key_s = values.seconds(path, verb, "inter_digit_timeout", 0.0, 0.5, _MAX_WAIT_S) or None
    least = values.whole(path, verb, "min_digits", 1, 1, MAX_GATHERED)
    if not steps or not isinstance(steps[0], Gather):
        return []
    gather = replace(steps[0], inter_digit_s=after_key_s)
    if verb.get("barge_in"):
        gather = replace(gather, timeout_s=_BARGE_IN_WAIT_S, inter_digit_s=after_key_s or _AFTER_KEY_S)
    facts: tuple[tuple[str, Fact], ...] = ((MIN_DIGITS, least),) if least > 1 else ()
    if gather.language is not None:
        facts += ((HEARD_LANGUAGE, gather.language),)
    if gather.action is not None and facts:
        gather = replace(gather, action=replace(gather.action, facts=facts))
    return [gather]


def read_tag(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that adds data to the call, sent with every later request."""
    data = verb.get("data")
    problem = tag_problem(data)
    if problem is not None or not isinstance(data, Mapping):
        values.wrong(f"{path}.data", problem or "must be an object")
        return []
    return [Annotate({CUSTOMER_DATA: dict(data)})]


def read_language(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that sets the language of later texts."""
    language = verb.get("language")
    # A text in it shows whether it is spoken.
    if not VERBS["say"][1](values, path, {"text": "a", "language": language}):
        return []
    return [Annotate({SPOKEN_LANGUAGE: language})]


def read_heard_language(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that sets the language in which later speech is recognised."""
    language = verb.get("language")
    # A step that listens shows whether it is one.
    if not read_gather(values, path, {"input": ["speech"], "language": language}):
        return []
    return [Annotate({HEARD_LANGUAGE: language})]


def read_recording(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that controls the recording of the call."""
    action = RECORDING_ACTIONS.get(str(verb.get("action")))
    if action is None:
        values.wrong(f"{path}.action", f"must be one of {', '.join(RECORDING_ACTIONS)}")
        return []
    return [ChangeRecording(action)]


def read_transcription(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that begins or ends the transcription of the call, with a hook for its sentences."""
    if verb.get("action") == "stop":
        return [ChangeTranscription(None)]
    count = len(values.errors)
    language = heard_language(values, path, verb.get("language"))
    url = values.absolute(verb.get("hook_url"))
    values.check_url(f"{path}.hook_url", url, WEB_SCHEMES)
    step = ChangeTranscription(language, url, waits=verb.get("waits") is True)
    return [step] if len(values.errors) == count else []


def read_refer(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that transfers the party."""
    steps = read_dial(values, path, verb)
    if not steps or not isinstance(steps[0], Dial):
        return []
    action = steps[0].action
    return [TransferParty(steps[0].party, action and replace(action, event="call.referred"))]


_KEY_FIELDS: Final = frozenset({"inter_digit_timeout", "min_digits", "barge_in"})
JAMBONZ_VERBS: Final[VerbTable] = {
    **VERBS,
    "gather": (GATHER_FIELDS | _KEY_FIELDS, read_keys),
    "tag": (frozenset({"data"}), read_tag),
    "language": (frozenset({"language"}), read_language),
    "heard_language": (frozenset({"language"}), read_heard_language),
    "recording": (frozenset({"action"}), read_recording),
    "transcription": (frozenset({"action", "language", "hook_url", "waits"}), read_transcription),
    "refer": (DIAL_FIELDS, read_refer),
}
"""The verbs that a list of jambonz's is translated into."""
