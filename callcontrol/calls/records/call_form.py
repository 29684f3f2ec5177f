"""Form fields of a call, as servers written for Twilio expect them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Final

from callcontrol.calls.recording import PENDING, recording_url
from callcontrol.models import CallRecord, CallStatus

Fact = str | int | None

FORM_EVENTS: Final = {
    "call.initiated": "initiated",
    "call.ringing": "ringing",
    "call.answered": "in-progress",
    "call.completed": "",
}
"""Events that are sent as a form, with the status of the call; empty for the one at its end."""

STATUS_FORMAT: Final = "status_webhook_format"
"""Name of the detail of a call whose status webhook gets forms, or jambonz's events."""

_API_VERSION: Final = "2010-04-01"
_STATUSES: Final = {CallStatus.INITIATED: "ringing"}


def form_fields(record: CallRecord, facts: Sequence[tuple[str, Fact]]) -> dict[str, str]:
    """The fields of a call: its own, then the results of the last verb."""
    direction = "inbound" if record.direction == "inbound" else "outbound-api"
    fields = {
        "CallSid": record.call_sid,
        "AccountSid": record.account_sid,
        "From": record.from_,
        "To": record.to,
        "Caller": record.from_,
        "Called": record.to,
        "CallStatus": _STATUSES.get(record.status, record.status.value),
        "Direction": direction,
        "ApiVersion": _API_VERSION,
    }
    if record.answered_by is not None:
        fields["AnsweredBy"] = _ANSWERED_BY.get(record.answered_by, "unknown")
    headers = (record.sip or {}).get("headers")
    if isinstance(headers, Mapping):
        fields.update({f"SipHeader_{name}": str(value) for name, value in headers.items()})
    for name, value in facts:
        known = _FACTS.get(name)
        if known is not None and value is not None:
            fields[known[0]] = known[1](value)
    return fields


def event_fields(record: CallRecord, event: str, shown: Mapping[str, Any], at: datetime) -> dict[str, str]:
    """The fields of one of ``FORM_EVENTS``; ``shown`` is the JSON form of the call at the event."""
    fields = {
        **form_fields(record, ()),
        "CallStatus": FORM_EVENTS[event] or str(shown["status"]),
        "CallbackSource": "call-progress-events",
        "SequenceNumber": str(record.sequence - 1),
        "Timestamp": format_datetime(at),
    }
    # A recording is complete some seconds after its call: its address is known before.
    recorded = recording_url(record.call_sid) if shown["recording_status"] in PENDING else None
    late = {
        "CallDuration": shown["duration_sec"],
        "SipResponseCode": shown["sip_status"],
        "RecordingUrl": shown["recording_url"] or recorded,
    }
    if event == "call.completed":
        fields |= {name: str(value) for name, value in late.items() if value is not None}
    return fields


def _seconds(milliseconds: Fact) -> str:
    return str(round(int(milliseconds or 0) / 1000))


_ANSWERED_BY: Final = {"human": "human", "machine": "machine_start"}
_FACTS: Final[Mapping[str, tuple[str, Callable[[Fact], str]]]] = {
    "digits": ("Digits", str),
    "finished_on_key": ("FinishedOnKey", str),
    "speech": ("SpeechResult", str),
    "speech_confidence": ("Confidence", str),
    "recording_url": ("RecordingUrl", str),
    "recording_duration_ms": ("RecordingDuration", _seconds),
    "dial_call_status": ("DialCallStatus", str),
    "dial_call_duration": ("DialCallDuration", str),
    "failed_url": ("ErrorUrl", str),
    "error_message": ("ErrorMessage", str),
}
"""By the name of a fact: the name of the form field, and the function that formats its value."""
