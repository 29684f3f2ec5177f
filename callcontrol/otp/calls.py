"""The calls that speak one-time passwords, as records, answers and webhooks have them: without it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, CallStatus
from callcontrol.wallet.money import rupees

PRODUCT: Final = "otp"
"""What ``CallRecord.product`` says of these calls."""

_SHOWN_DIGITS: Final = 4
_MASK: Final = "*" * 6


def masked(number: str) -> str:
    """A telephone number with nothing but its last digits: ``******3210``."""
    return _MASK + number[-_SHOWN_DIGITS:]


def otp_details(
    otp_id: str, *, language: str, repeat: int, reference: str | None, expires_at: datetime
) -> dict[str, Any]:
    """What the record of a call keeps of the password that it speaks."""
    return {
        "otp_id": otp_id,
        "language": language,
        "repeat": repeat,
        "played_count": 0,
        "reference": reference,
        "expires_at": timestamp(expires_at),
    }


def otp_object(record: CallRecord) -> dict[str, Any]:
    """The call as a JSON object; ``price`` is in rupees."""
    details: Mapping[str, Any] = record.details or {}
    # Between its record and its INVITE a call is queued, for a moment that is of no interest here.
    status = CallStatus.INITIATED if record.status is CallStatus.QUEUED else record.status
    return {
        "id": details.get("otp_id"),
        "call_sid": record.call_sid,
        "to": masked(record.to),
        "from": record.from_,
        "status": status.value,
        "language": details.get("language"),
        "repeat": details.get("repeat"),
        "played_count": details.get("played_count"),
        "reference": details.get("reference"),
        "created_at": timestamp(record.created_at),
        "expires_at": details.get("expires_at"),
        "answered_at": timestamp(record.answered_at),
        "ended_at": timestamp(record.ended_at),
        "duration_sec": record.duration_sec,
        "hangup_cause": record.hangup_cause,
        "price": rupees(record.price_paise) if record.price_paise is not None else None,
        "currency": record.currency,
    }


_EVENTS: Final = {"call.initiated": "otp.initiated", "call.answered": "otp.answered"}


def otp_event(record: CallRecord, event: str) -> str | None:
    """What an event of such a call is called; keys that are pressed, and ringing, are nobody's business."""
    if event == "call.completed":
        return "otp.completed" if record.status is CallStatus.COMPLETED else "otp.failed"
    return _EVENTS.get(event)
