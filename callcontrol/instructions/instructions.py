"""
Instructions of the customer's server, without I/O: the request, and the parsing of the answer.

An answer is a list of verbs, one verb, or a single action as voice platforms write it. Other languages for
the same verbs have their own readers in one table, by the media type of the answer.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from callcontrol.calls.plan import Step
from callcontrol.calls.records.call_info import HEARD_LANGUAGE, SPOKEN_LANGUAGE
from callcontrol.clock import timestamp
from callcontrol.errors import FieldError, RequestErrors, ValidationFailed
from callcontrol.instructions.jambonz import JAMBONZ_VERBS, continued, read_jambonz
from callcontrol.instructions.twiml import named_in, read_twiml
from callcontrol.instructions.verbs import VerbRules, VerbValues, WebhookDefaults, read_verbs
from callcontrol.models import CallRecord
from callcontrol.trunks.inbound_invite import Caller

ATTEMPTS: Final = 2
"""Attempts of a request; the caller hears ringing, or nothing, meanwhile."""

RETRY_AFTER_S: Final = 0.5
TIMEOUT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 64 * 1024
ACCEPT: Final = "application/json, application/xml, text/xml"

JSON: Final = "application/json"
_NO_ANSWERS: Final = ("text/plain", "application/octet-stream", "")
"""Types of answers that mean nothing to jambonz: servers for it send ``OK``."""

_MAX_DEPTH: Final = 20
_MAX_ERRORS: Final = 20
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def request_body(
    record: CallRecord,
    event: str,
    *,
    event_id: str,
    at: datetime,
    facts: Sequence[tuple[str, str | int | None]] = (),
) -> bytes:
    """The JSON body of a request for instructions: ``event`` is its reason, ``facts`` the results so far."""
    body = {
        "event": event,
        "event_id": event_id,
        "timestamp": timestamp(at),
        "data": {
            "call_sid": record.call_sid,
            "account_sid": record.account_sid,
            "from": record.from_,
            "to": record.to,
            "direction": record.direction,
            "status": record.status.value,
            "sip_call_id": record.sip_call_id,
            "carrier_sid": record.carrier_sid,
            "phone_number_id": record.phone_number_id,
            "app_sid": record.app_sid,
            "answered_by": record.answered_by,
            "tag": record.tag,
            "headers": dict((record.sip or {}).get("headers") or {}),
            **dict(facts),
        },
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def read_instructions(
    media_type: str,
    body: bytes,
    rules: VerbRules,
    record: CallRecord,
    *,
    caller: Caller | None,
    url: str,
    webhooks: WebhookDefaults | None = None,
) -> list[Step]:
    """
    Parse an answer into steps; an empty answer has none.

    A dialled party sees the account's number of this call unless a verb says otherwise; ``caller`` is the
    caller of an inbound call, and addresses without a host are relative to ``url``. ``webhooks`` has the
    settings of requests that the answer leads to.

    Raises:
        ValidationFailed: Names every error: the answer cannot be read, or has an invalid instruction.
        Forbidden: A number may not be dialled.
    """
    if not body.strip():
        return []
    asked = webhooks or WebhookDefaults()
    kind = media_type.lower()
    if asked.format == "jambonz" and kind in _NO_ANSWERS:
        return []
    read = _READERS.get(kind)
    if read is None:
        known = " or ".join(sorted(_READERS))
        raise ValidationFailed.of("Content-Type", f"must be {known}, not {media_type[:100] or 'absent'}")
    own = record.to if record.direction == "inbound" else record.from_
    values = VerbValues(
        rules,
        own,
        caller=caller,
        base_url=url,
        webhooks=asked,
        may_reject=record.direction == "inbound" and record.answered_at is None,
    )
    if asked.format == "jambonz" and kind == JSON:
        return _read_jambonz(values, body, record)
    verbs, places, errors = read(body, url)
    steps = read_verbs(values, "verbs", verbs)
    errors = [*errors, *(named_in(error, places) for error in values.errors)]
    RequestErrors(errors=errors[:_MAX_ERRORS], forbidden=values.forbidden).raise_found()
    return steps


def _read_jambonz(values: VerbValues, body: bytes, record: CallRecord) -> list[Step]:
    """The steps of an answer in jambonz's verbs; one that is no list has no instructions, as with jambonz."""
    answer = _parsed(body)
    if isinstance(answer, Mapping) and "verb" not in answer:
        return []
    given = [answer] if isinstance(answer, Mapping) else answer
    details = record.details or {}
    translated = read_jambonz(given, details.get(SPOKEN_LANGUAGE), details.get(HEARD_LANGUAGE))
    steps = read_verbs(values, "verbs", translated.verbs, JAMBONZ_VERBS)
    # A field that could not be translated is missing in the verb, which is no second error.
    named = {error.field for error in translated.errors}
    found = [translated.named(error) for error in values.errors]
    errors = [*translated.errors, *(error for error in found if error.field not in named)]
    RequestErrors(errors=errors[:_MAX_ERRORS], forbidden=values.forbidden).raise_found()
    return continued(steps)


def _read_json(body: bytes) -> object:
    answer = _parsed(body)
    if not isinstance(answer, Mapping):
        return answer
    if not answer:
        return []
    if answer.keys() == {"verbs"}:
        return answer["verbs"]
    return [_verb_of(answer) if "action" in answer else answer]


def _parsed(body: bytes) -> object:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ValidationFailed([FieldError("body", "must be JSON")]) from None
    if _too_deep(answer, _MAX_DEPTH):
        raise ValidationFailed([FieldError("body", f"must not nest deeper than {_MAX_DEPTH}")])
    if _unstorable(answer):
        raise ValidationFailed([FieldError("body", "must not contain NUL or lone surrogate characters")])
    return answer


def _verb_of(action: Mapping[str, Any]) -> dict[str, Any]:
    """A single action as a verb: ``{"action": "stream", "stream_url": ...}`` is a verb with an ``url``."""
    verb = {name: value for name, value in action.items() if name != "action"}
    if action["action"] == "stream" and "stream_url" in verb:
        verb["url"] = verb.pop("stream_url")
    return {"verb": action["action"], **verb}


def _too_deep(value: object, left: int) -> bool:
    if isinstance(value, Mapping):
        return left == 0 or any(_too_deep(item, left - 1) for item in value.values())
    if isinstance(value, list):
        return left == 0 or any(_too_deep(item, left - 1) for item in value)
    return False


def _unstorable(value: object) -> bool:
    """True if a text in it contains NUL or a lone surrogate, which would break the call later."""
    if isinstance(value, str):
        return not value.isascii() and _SURROGATE.search(value) is not None or "\0" in value
    if isinstance(value, Mapping):
        return any(_unstorable(name) or _unstorable(item) for name, item in value.items())
    return isinstance(value, list) and any(_unstorable(item) for item in value)


Verbs = tuple[object, Mapping[str, str], list[FieldError]]
"""The verbs of an answer, the names of their places in its own language, and its errors in it."""


def _json_verbs(body: bytes, _: str) -> Verbs:
    return _read_json(body), {}, []


_READERS: Final[Mapping[str, Callable[[bytes, str], Verbs]]] = {
    "application/json": _json_verbs,
    "application/xml": read_twiml,
    "text/xml": read_twiml,
    # Many servers of TwiML send it with the default media type of their framework.
    "text/html": read_twiml,
}
