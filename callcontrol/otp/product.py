"""Calls that speak one-time passwords, in records, answers and webhooks, without the password."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from callcontrol.calls.events.commands import (
    DubRequested,
    ListenRequested,
    RecordingRequested,
    RedirectRequested,
    StepsRequested,
    TranscriptionRequested,
    TransferCommand,
)
from callcontrol.calls.product import ProductPolicy
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, CallStatus
from callcontrol.wallet.money import rupees

PRODUCT: Final = "otp"
"""``CallRecord.product`` of these calls."""

_SHOWN_DIGITS: Final = 4
_MASK: Final = "*" * 6


def masked(number: str) -> str:
    """A telephone number masked up to its last digits: ``******3210``."""
    return _MASK + number[-_SHOWN_DIGITS:]


def otp_details(
    otp_id: str, *, language: str, repeat: int, reference: str | None, expires_at: datetime
) -> dict[str, Any]:
    """The ``details`` of the record of a password's call."""
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
    # Between its record and its INVITE a call is queued, for a time too short to show.
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
    """The name of a password call's event; None for ringing and pressed keys, which are not published."""
    if event == "call.completed":
        return "otp.completed" if record.status is CallStatus.COMPLETED else "otp.failed"
    return _EVENTS.get(event)


OTP: Final = ProductPolicy(
    name=PRODUCT,
    refused_commands=(
        RecordingRequested,
        TranscriptionRequested,
        ListenRequested,
        DubRequested,
        TransferCommand,
        RedirectRequested,
        StepsRequested,
    ),
    refused_because="the call speaks a one-time password, which nobody else may hear",
    event_name=otp_event,
    shape=otp_object,
)
"""Policy of calls that speak one-time passwords."""
