"""Reader of lists of verbs: those that control the call itself, and the table of all verbs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import phonenumbers

from callcontrol.calls.plan import MESSAGED_EVENT, Answer, Hangup, Reject, SendDtmf, SendMessage, Step
from callcontrol.egress.url_policy import check_url
from callcontrol.errors import FieldError
from callcontrol.instructions.verbs.dialling import (
    CONFERENCE_FIELDS,
    DIAL_FIELDS,
    MODEL_FIELDS,
    STREAM_FIELDS,
    read_conference,
    read_dial,
    read_model,
    read_stream,
)
from callcontrol.instructions.verbs.dubbing import DUB_FIELDS, read_dub
from callcontrol.instructions.verbs.speaking import (
    GATHER_FIELDS,
    PAUSE_FIELDS,
    PLAY_FIELDS,
    RECORD_FIELDS,
    SAY_FIELDS,
    TRANSCRIBE_FIELDS,
    read_gather,
    read_pause,
    read_play,
    read_record,
    read_say,
    read_transcribe,
)
from callcontrol.instructions.verbs.values import VerbRules, VerbValues

MAX_VERBS: Final = 50
NO_REJECT: Final = "reject is for a caller who is not answered yet; use hangup"
"""Error of ``reject`` in a call that was placed, or answered."""
MAX_MESSAGE_CHARS: Final = 4096
REJECT_STATUSES: Final = (403, 404, 408, 410, 480, 484, 486, 488, 500, 502, 503, 504, 600, 603, 604, 606)

_MAX_DIGITS: Final = 64
_DIGITS: Final = frozenset("0123456789*#ABCDwW")

_ANY_SERVER: Final = VerbRules(
    phonenumbers.SUPPORTED_REGIONS, prompts=None, check_url=partial(check_url, allow_private=True)
)


ReadVerb = Callable[[VerbValues, str, Mapping[str, Any]], Sequence[Step]]
VerbTable = Mapping[str, tuple[frozenset[str], ReadVerb]]
"""By name: the fields that a verb may have, and its reader."""


def read_verbs(values: VerbValues, path: str, verbs: object, table: VerbTable | None = None) -> list[Step]:
    """
    The steps of a list of verbs, as far as they are valid; ``values`` has the errors of the others.

    ``table`` has the verbs of another language.
    """
    if not isinstance(verbs, Sequence) or isinstance(verbs, str | bytes) or len(verbs) > MAX_VERBS:
        values.wrong(path, f"must be a list of at most {MAX_VERBS} verbs")
        return []
    steps: list[Step] = []
    for index, verb in enumerate(verbs):
        steps += _read_verb(values, f"{path}[{index}]", verb, VERBS if table is None else table)
    return steps


def verb_errors(verbs: Sequence[object], rules: VerbRules = _ANY_SERVER) -> list[FieldError]:
    """Errors of the verbs of a call to place; without ``rules`` those that any server would find."""
    values = VerbValues(rules, None)
    for index, verb in enumerate(verbs):
        _read_verb(values, f"verbs[{index}]", verb, VERBS)
    return values.errors


def unreachable_errors(verbs: object, rules: VerbRules) -> list[FieldError]:
    """Errors of prompts and hosts that this server does not take, in verbs that may be wrong otherwise."""
    if not isinstance(verbs, Sequence) or isinstance(verbs, str | bytes):
        return []
    found = verb_errors(verbs[:MAX_VERBS], rules)
    anywhere = verb_errors(verbs[:MAX_VERBS]) if found else ()
    return [error for error in found if error not in anywhere]


def _read_verb(values: VerbValues, path: str, verb: object, table: VerbTable) -> Sequence[Step]:
    if not isinstance(verb, Mapping):
        values.wrong(path, "must be an object with the field verb")
        return []
    name = verb.get("verb")
    known = table.get(name) if isinstance(name, str) else None
    if known is None:
        values.wrong(f"{path}.verb", f"must be one of {', '.join(table)}")
        return []
    fields, read = known
    values.refuse_others(path, verb, fields, str(name))
    return read(values, path, verb)


def read_answer(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that answers a waiting caller."""
    return [Answer()]


def read_hangup(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that ends the call."""
    return [Hangup()]


def read_redirect(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that requests further instructions from a server."""
    return values.request_instructions(
        f"{path}.url", values.absolute(verb.get("url")), f"{path}.method", verb.get("method")
    )


def read_reject(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that rejects a waiting caller."""
    if not values.may_reject:
        values.wrong(f"{path}.verb", NO_REJECT)
        return []
    status = verb.get("status", 486)
    if isinstance(status, bool) or status not in REJECT_STATUSES:
        allowed = ", ".join(str(item) for item in REJECT_STATUSES)
        values.wrong(f"{path}.status", f"must be one of {allowed}")
        return []
    return [Reject(int(status))]


def read_message(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that sends a chat message; opt-outs and the channel are looked at when it is sent."""
    count = len(values.errors)
    to, from_ = values.number(f"{path}.to", verb.get("to")), None
    if verb.get("from") is not None:
        from_ = values.number(f"{path}.from", verb["from"])
    text = verb.get("text")
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_MESSAGE_CHARS:
        values.wrong(f"{path}.text", f"must be a text of 1 to {MAX_MESSAGE_CHARS} characters")
    step = SendMessage(to or "", str(text), from_, values.action(path, verb, MESSAGED_EVENT))
    return [step] if len(values.errors) == count else []


def read_send_digits(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that sends digits to the party."""
    return digit_steps(values, f"{path}.digits", verb.get("digits"))


def digit_steps(values: VerbValues, path: str, digits: object) -> list[Step]:
    """The step that sends digits; none if they are invalid."""
    text = digits if isinstance(digits, str) else ""
    if not 1 <= len(text) <= _MAX_DIGITS or not _DIGITS.issuperset(text):
        values.wrong(path, f"must be 1 to {_MAX_DIGITS} of 0-9 * # A-D w W")
        return []
    return [SendDtmf(text)]


_NONE: Final[frozenset[str]] = frozenset()
VERBS: Final[VerbTable] = {
    "answer": (_NONE, read_answer),
    "play": (PLAY_FIELDS, read_play),
    "say": (SAY_FIELDS, read_say),
    "pause": (PAUSE_FIELDS, read_pause),
    "gather": (GATHER_FIELDS, read_gather),
    "record": (RECORD_FIELDS, read_record),
    "transcribe": (TRANSCRIBE_FIELDS, read_transcribe),
    "dub": (DUB_FIELDS, read_dub),
    "dial": (DIAL_FIELDS, read_dial),
    "conference": (CONFERENCE_FIELDS, read_conference),
    "stream": (STREAM_FIELDS, read_stream),
    "model": (MODEL_FIELDS, read_model),
    "message": (frozenset({"to", "from", "text", "action_url", "action_method"}), read_message),
    "send_digits": (frozenset({"digits"}), read_send_digits),
    "redirect": (frozenset({"url", "method"}), read_redirect),
    "reject": (frozenset({"status"}), read_reject),
    "hangup": (_NONE, read_hangup),
}
