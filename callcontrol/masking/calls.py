"""Masked calls in records, answers and webhooks: two parties who see a number that is neither's."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from callcontrol.clock import timestamp
from callcontrol.models import CallRecord
from callcontrol.wallet.money import rupees

PRODUCT: Final = "masking"
"""``CallRecord.product`` of these calls."""

MaskedStatus = Literal[
    "initiated",
    "a_ringing",
    "a_answered",
    "b_ringing",
    "in-progress",
    "completed",
    "failed",
    "no-answer",
]

ENDED: Final = frozenset({"completed", "failed", "no-answer"})
"""The final statuses of a masked call."""

RINGING_EVENT: Final = "masked.b_ringing"
"""Name of the call machine's event when the second party rings."""

BRIDGED_EVENT: Final = "masked.bridged"
"""Name of the call machine's event when the two parties are joined."""

_COUNTRY: Final = "+91"


def masked_details(
    *,
    direction: str,
    caller_number: str,
    target_number: str | None,
    masked_number: str,
    session_id: str | None = None,
    max_duration_s: int | None = None,
) -> dict[str, Any]:
    """
    The ``details`` of a masked call's record; numbers are in E.164.

    ``caller_number`` is the party that is dialled or calls first, ``target_number`` the other; ``bridged_at``
    is the time the second party answered, as text. ``legs`` are of the parties ``a`` and ``b``.
    """
    return {
        "direction": direction,
        "caller_number": caller_number,
        "target_number": target_number,
        "masked_number": masked_number,
        "session_id": session_id,
        "max_duration_sec": max_duration_s,
        "status": "initiated",
        "bridged_at": None,
        "duration_sec": None,
        "bill_duration_sec": None,
        "legs": [
            {"party": party, "status": "queued", "answered_at": None, "hangup_cause": None} for party in "ab"
        ],
    }


def local_number(number: str | None) -> str | None:
    """A number in the form used by customers of masking: without the country code if it is Indian."""
    return number.removeprefix(_COUNTRY) if number is not None else None


def started_object(record: CallRecord) -> dict[str, Any]:
    """The answer to a request for a masked call, independent of the call's progress since."""
    details: Mapping[str, Any] = record.details or {}
    return {
        "call_sid": record.call_sid,
        "status": "initiated",
        "party_a": local_number(details.get("caller_number")),
        "party_b": local_number(details.get("target_number")),
        "masked_number": details.get("masked_number"),
    }


def masked_object(record: CallRecord) -> dict[str, Any]:
    """A masked call as a JSON object; ``price`` is in rupees."""
    details: Mapping[str, Any] = record.details or {}
    return {
        "id": record.call_sid,
        "platform_call_sid": record.call_sid,
        "session_id": details.get("session_id"),
        "caller_number": details.get("caller_number"),
        "target_number": local_number(details.get("target_number")),
        "masked_number": details.get("masked_number"),
        "direction": details.get("direction"),
        "status": details.get("status"),
        "legs": details.get("legs"),
        "max_duration_sec": details.get("max_duration_sec"),
        "started_at": timestamp(record.created_at),
        "answered_at": details.get("bridged_at"),
        "ended_at": timestamp(record.ended_at),
        "duration_sec": details.get("duration_sec"),
        "bill_duration_sec": details.get("bill_duration_sec"),
        "hangup_cause": record.hangup_cause,
        "price": rupees(record.price_paise) if record.price_paise is not None else None,
        "currency": record.currency,
        "recording_url": record.recording_url,
    }


_OF_A_PLACED_CALL: Final = {"call.ringing": "a_ringing", "call.answered": "a_answered"}
_OF_ANY_CALL: Final = {
    "call.initiated": "initiated",
    RINGING_EVENT: "b_ringing",
    BRIDGED_EVENT: "in-progress",
}


def masked_event(record: CallRecord, event: str) -> str | None:
    """
    The name of a masked call's event: one for each status, None for other events.

    A party that called us has no ringing or answer status of its own.
    """
    if event == "call.completed":
        status = (record.details or {}).get("status")
    else:
        status = _OF_ANY_CALL.get(event)
        if status is None and record.direction == "outbound":
            status = _OF_A_PLACED_CALL.get(event)
    return f"masking.call.{status}" if status is not None else None
