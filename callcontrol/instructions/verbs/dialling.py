"""Verbs that connect another party to the call: dial, conference, stream and model."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callcontrol.calls.plan import STREAMED_EVENT, Dial, JoinConference, Step
from callcontrol.errors import FieldError
from callcontrol.instructions.verbs.values import VerbValues
from callcontrol.models.parties import Party, Target

_RING_S: Final = (5.0, 120.0)
_MAX_TALK_S: Final = 14_400.0
_MAX_HEADERS: Final = 20
_MAX_MEMBERS: Final = 40
_MAX_NAME_CHARS: Final = 128
_HEADER_NAME: Final = re.compile(r"[Xx]-[A-Za-z0-9-]{1,60}")
_PRINTABLE: Final = re.compile(r"[^\x00-\x1f\x7f]{0,256}")

_ACTION_FIELDS: Final = frozenset({"action_url", "action_method"})
DIAL_FIELDS: Final = _ACTION_FIELDS | {"target", "caller_id", "timeout", "time_limit", "headers"}
_ROOM_FIELDS: Final = frozenset(
    {"name", "muted", "start_on_enter", "end_on_exit", "beep", "max_participants"}
)
CONFERENCE_FIELDS: Final = _ROOM_FIELDS | _ACTION_FIELDS
STREAM_FIELDS: Final = _ACTION_FIELDS | {
    *("url", "sample_rate", "stream_protocol", "encoding", "custom_parameters", "stream_auth"),
    *("stream_track", "stream_max_retries", "stream_events"),
}

MODEL_FIELDS: Final = _ACTION_FIELDS | {
    *("provider", "model", "instructions", "voice", "greeting", "language", "tools", "api_key", "key"),
    *("transcription", "url", "max_retries"),
}


def read_dial(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that dials a party and joins it with this one, or that joins a conference."""
    count = len(values.errors)
    targets = verb.get("target")
    if not isinstance(targets, Sequence) or len(targets) != 1 or not isinstance(targets[0], Mapping):
        values.wrong(f"{path}.target", "must be a list of one target")
        return []
    kind = targets[0].get("type", "phone")
    if kind == "conference":
        return _dial_conference(values, path, verb, targets[0])
    key = {"sip": "sip_uri", "browser": "identity"}.get(str(kind), "number")
    given = targets[0].get(key)
    if kind == "browser" and isinstance(given, str):
        given = f"browser:{given}"
    target = values.target(f"{path}.target[0].{key}", given)
    ring_s = values.seconds(path, verb, "timeout", 60.0, *_RING_S)
    limit_s = values.seconds(path, verb, "time_limit", 0.0, 1.0, _MAX_TALK_S)
    headers = _headers(values, f"{path}.headers", verb.get("headers"))
    action = values.action(path, verb, "call.dialled")
    party = _party(values, path, target, verb.get("caller_id"), ring_s, headers)
    if party is None or len(values.errors) > count:
        return []
    return [Dial(party, action, limit_s or None)]


def read_conference(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that joins a conference."""
    action = values.action(path, verb, "call.dialled")
    room = _room(values, path, verb)
    return room if action is None or not room else [*room, action]


def read_stream(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that connects a voice agent."""
    action = values.action(path, verb, STREAMED_EVENT)
    steps = values.stream(f"{path}.url", verb.get("url"), verb, f"{path}.")
    return steps if action is None or not steps else [*steps, action]


def read_model(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that connects a vendor's speech model."""
    action = values.action(path, verb, STREAMED_EVENT)
    given = {name: verb[name] for name in verb if name in MODEL_FIELDS - _ACTION_FIELDS}
    steps = values.model(path, given)
    return steps if action is None or not steps else [*steps, action]


def _dial_conference(
    values: VerbValues, path: str, verb: Mapping[str, Any], target: Mapping[str, Any]
) -> Sequence[Step]:
    for field in verb:
        if field not in ("verb", "target", *_ACTION_FIELDS):
            values.wrong(f"{path}.{str(field)[:100]}", "does not go with a conference")
    for field in target:
        if field != "type" and field not in _ROOM_FIELDS:
            values.wrong(f"{path}.target[0].{str(field)[:100]}", "is not a field of conference")
    action = values.action(path, verb, "call.dialled")
    room = _room(values, f"{path}.target[0]", target)
    return room if action is None or not room else [*room, action]


def _room(values: VerbValues, path: str, given: Mapping[str, Any]) -> Sequence[Step]:
    count = len(values.errors)
    name = given.get("name")
    fits = (
        isinstance(name, str)
        and name.isprintable()
        and 1 <= len(name.strip()) <= len(name) <= _MAX_NAME_CHARS
    )
    if not fits:
        values.wrong(f"{path}.name", f"must be a name of 1 to {_MAX_NAME_CHARS} characters")
    step = JoinConference(
        name=str(name).strip(),
        muted=values.flag(path, given, "muted", False),
        starts=values.flag(path, given, "start_on_enter", True),
        ends=values.flag(path, given, "end_on_exit", False),
        beep=values.flag(path, given, "beep", True),
        max_members=values.whole(path, given, "max_participants", _MAX_MEMBERS, 2, _MAX_MEMBERS),
    )
    return [step] if len(values.errors) == count else []


def header_errors(path: str, given: object) -> list[FieldError]:
    """Errors of the ``X-`` headers of the party's INVITE; None is valid."""
    if given is None:
        return []
    if not isinstance(given, Mapping) or len(given) > _MAX_HEADERS:
        return [FieldError(path, f"must be an object of at most {_MAX_HEADERS} X-* headers")]
    errors: list[FieldError] = []
    for name, value in given.items():
        place = f"{path}.{str(name)[:70]}"
        if not isinstance(name, str) or _HEADER_NAME.fullmatch(name) is None:
            errors.append(FieldError(place, "is not allowed; only X-* headers are passed on"))
        elif not isinstance(value, str) or _PRINTABLE.fullmatch(value) is None:
            message = "must be text of at most 256 characters without control characters"
            errors.append(FieldError(place, message))
    return errors


def _headers(values: VerbValues, path: str, given: object) -> tuple[tuple[str, str], ...]:
    """The ``X-`` headers of the party's INVITE."""
    errors = header_errors(path, given)
    values.errors += errors
    if errors or not isinstance(given, Mapping):
        return ()
    return tuple((str(name), str(value)) for name, value in given.items())


def _party(
    values: VerbValues,
    path: str,
    target: Target | None,
    given: object,
    ring_s: float,
    headers: tuple[tuple[str, str], ...],
) -> Party | None:
    caller = values.caller
    # The caller's own number, written out, means the same.
    if given == "passthrough" or (caller is not None and given == caller.number):
        if caller is None:
            values.wrong(f"{path}.caller_id", "nobody called: passthrough is for calls that come in")
        elif target is not None:
            return Party(
                target,
                caller.number,
                passthrough=True,
                caller_name=caller.name,
                withheld=caller.withheld,
                ring_timeout_s=ring_s,
                number=values.caller_id,
                trusted=caller.trusted,
                headers=headers,
            )
        return None
    caller_id = values.number(f"{path}.caller_id", given) if given is not None else values.caller_id
    if target is None or caller_id is None:
        return None
    return Party(target, caller_id, ring_timeout_s=ring_s, headers=headers)
