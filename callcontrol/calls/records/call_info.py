"""
Call information as jambonz sends it: in its requests for verbs, and in its call status events.

The names and values are those of jambonz's callback schemas, published as ``@jambonz/schema``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from callcontrol.calls.records.call_form import Fact
from callcontrol.models import CallRecord, CallStatus

CUSTOMER_DATA: Final = "customer_data"
"""Name of the detail of a call that holds the data of its tag."""

SPOKEN_LANGUAGE: Final = "say_language"
"""Name of the detail of a call that holds the language of texts which name none."""

HEARD_LANGUAGE: Final = "recognizer_language"
"""
Name of the detail of a call that holds the language of words which are to be recognised.

It is also the fact of a request after ``gather`` with that language, which is sent within ``speech``.
"""

COMPLETION_REASON: Final = "completion_reason"
"""Fact of a request after a speech model: how its session has ended."""

MESSAGE_STATUS: Final = "message_status"
"""Fact of a request after a message: ``accepted`` or ``failed``; others have its id and its error."""

MIN_DIGITS: Final = "min_digits"
"""Fact of a request after ``gather``: fewer digits count as none. It is not sent itself."""

STATUS_EVENTS: Final = {
    "call.initiated": "trying",
    "call.ringing": "ringing",
    "call.early-media": "early-media",
    "call.answered": "in-progress",
    "call.completed": "",
}
"""Events that are sent, with the status of the call; empty for the one at its end."""

_STATUSES: Final[Mapping[CallStatus, str]] = {
    CallStatus.QUEUED: "queued",
    CallStatus.INITIATED: "trying",
    CallStatus.CANCELED: "no-answer",
}
_SIP_STATUSES: Final = {
    "queued": (100, "Trying"),
    "trying": (100, "Trying"),
    "ringing": (180, "Ringing"),
    "early-media": (183, "Session Progress"),
    "in-progress": (200, "OK"),
    "completed": (200, "OK"),
}
_CANCELLED: Final = (487, "Request Terminated")


def call_info(record: CallRecord, status: str | None = None) -> dict[str, Any]:
    """Return what every request and event says of a call; ``status`` is in jambonz's words."""
    # A waiting caller hears ringing while its server is asked, and is new to that server.
    waits = record.direction == "inbound" and record.answered_at is None and not record.status.ended
    shown = status or ("trying" if waits else status_name(record.status))
    sip_status, sip_reason = _sip_status(record, shown)
    details = record.details or {}
    tag = {"customerData": details[CUSTOMER_DATA]} if details.get(CUSTOMER_DATA) else {}
    return {
        "call_sid": record.call_sid,
        "direction": record.direction,
        "from": record.from_,
        "to": record.to,
        "call_id": record.sip_call_id,
        "call_status": shown,
        "sip_status": sip_status,
        "sip_reason": sip_reason,
        "account_sid": record.account_sid,
        "application_sid": record.app_sid,
        **tag,
    }


def request_info(
    record: CallRecord, facts: Sequence[tuple[str, Fact]], *, caller_name: str | None, is_new: bool
) -> dict[str, Any]:
    """Return the body of a request for verbs; ``is_new`` tells the first request of a call."""
    headers = dict((record.sip or {}).get("headers") or {})
    first = {"caller_name": caller_name or "", "sip": {"headers": headers}} if is_new else {}
    return {**call_info(record), **first, **_results(dict(facts))}


def event_info(record: CallRecord, event: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of one of ``STATUS_EVENTS``; ``shown`` is the JSON form of the call at the event."""
    if event != "call.completed":
        return call_info(record, STATUS_EVENTS[event])
    by_party = shown["hangup_source"] in ("caller", "callee", "carrier")
    return {
        **call_info(record, status_name(CallStatus(shown["status"]))),
        "duration": shown["duration_sec"] or 0,
        "call_termination_by": "caller" if by_party else "jambonz",
    }


def transcript_info(record: CallRecord, sentence: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a sentence for ``transcriptionHook``; channel 1 is the first party."""
    alternative = {"confidence": sentence["confidence"], "transcript": sentence["text"]}
    speech = {
        "language_code": sentence["language"],
        "channel_tag": 1 if sentence["speaker"] == "a" else 2,
        "is_final": True,
        "alternatives": [alternative],
    }
    return {**call_info(record), "speech": speech}


def info_body(info: Mapping[str, Any]) -> bytes:
    """Return JSON as JavaScript writes it: receivers sign what they have parsed and written again."""
    text = json.dumps(_plain(info), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")


def status_name(status: CallStatus) -> str:
    """Return a status in jambonz's words."""
    return _STATUSES.get(status, status.value)


def _sip_status(record: CallRecord, shown: str) -> tuple[int, str]:
    known = _SIP_STATUSES.get(shown)
    if known is not None:
        return known
    if record.status is CallStatus.CANCELED or record.sip_status is None:
        return _CANCELLED
    reason = record.sip_reason
    if reason is None and record.sip_status in set(HTTPStatus):
        reason = HTTPStatus(record.sip_status).phrase
    return record.sip_status, reason or ""


def _plain(value: Any) -> Any:
    """Whole numbers without a fraction, as JavaScript has them."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _results(facts: Mapping[str, Fact]) -> dict[str, Any]:
    """The results of the last verb."""
    told = {name: read(facts[name]) for name, read in _FACTS.items() if facts.get(name) is not None}
    if "digits" in facts:
        return {**_gathered(facts), **told}
    return {**_messaged(facts), **told} if MESSAGE_STATUS in facts else told


def _gathered(facts: Mapping[str, Fact]) -> dict[str, Any]:
    # Keys that were pressed before the words have not ended the step: the words have.
    if facts.get("speech"):
        return {"reason": "speechDetected", "speech": _speech(facts)}
    digits = str(facts["digits"] or "")
    enough = len(digits) >= int(facts.get(MIN_DIGITS) or 1) or facts.get("finished_on_key") is not None
    return {"reason": "dtmfDetected", "digits": digits} if digits and enough else {"reason": "timeout"}


def _messaged(facts: Mapping[str, Fact]) -> dict[str, Any]:
    """The result of a message, whose identifier jambonz always sends."""
    told = {"message_sid": facts.get("message_id") or ""}
    if facts[MESSAGE_STATUS] == "accepted":
        return {**told, "message_status": "success"}
    status = _FAILED_MESSAGES.get(str(facts.get("message_error_code")), "failure")
    return {**told, "message_status": status, "message_failure_reason": facts.get("message_error") or ""}


def _speech(facts: Mapping[str, Fact]) -> dict[str, Any]:
    confidence = float(facts.get("speech_confidence") or 0.0)
    return {
        "language_code": facts.get(HEARD_LANGUAGE),
        "channel_tag": 1,
        "is_final": True,
        "alternatives": [{"confidence": confidence, "transcript": facts["speech"]}],
    }


_FAILED_MESSAGES: Final = {
    "CHANNEL_NOT_CONFIGURED": "no carriers",
    **dict.fromkeys(("SERVICE_UNAVAILABLE", "TOOL_TIMED_OUT", "NETWORK_UNAVAILABLE"), "system error"),
}
"""By the code of an error, jambonz's status of the message; that of others is ``failure``."""
_FACTS: Final[Mapping[str, Callable[[Fact], Fact]]] = {
    "dial_call_status": lambda status: "no-answer" if status == "canceled" else status,
    "dial_sip_status": lambda status: status,
    COMPLETION_REASON: lambda reason: reason,
    "refer_status": lambda status: status,
    "final_referred_call_status": lambda status: status,
    "failed_url": lambda url: url,
    "error_reason": lambda reason: reason,
    "error_message": lambda message: message,
}
"""Facts that are sent, and the function that words each."""
