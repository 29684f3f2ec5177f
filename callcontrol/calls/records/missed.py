"""Missed calls: inbound calls that ended before they were answered, and their event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal
from uuid import UUID, uuid5

from callcontrol.calls.hangup_cause import (
    ALLOTTED_TIMEOUT,
    BALANCE_EXHAUSTED,
    CALL_REJECTED,
    NO_ANSWER,
    NO_USER_RESPONSE,
    NORMAL_CLEARING,
    ORIGINATOR_CANCEL,
    USER_BUSY,
)
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, SubscribedEvent

__all__ = ["CALL_MISSED", "MissedReason", "missed_call", "missed_reason"]

MissedReason = Literal["no-answer", "busy", "caller_hangup", "rejected", "unreachable"]

CALL_MISSED: Final = "call.missed"
"""Name of the event."""

_EVENTS: Final = UUID("0f5d9c0e-1c3b-4a53-8d0c-6c1f0a3b9e21")
"""UUID namespace of event ids: a call always gets the same id, however often its event is written."""

_REASONS: Final[Mapping[str, MissedReason]] = {
    USER_BUSY.name: "busy",
    NO_ANSWER.name: "no-answer",
    NO_USER_RESPONSE.name: "no-answer",
    ALLOTTED_TIMEOUT.name: "no-answer",
    # Rejected by the called party, its server, the API, or the wallet.
    CALL_REJECTED.name: "rejected",
    ORIGINATOR_CANCEL.name: "rejected",
    NORMAL_CLEARING.name: "rejected",
    BALANCE_EXHAUSTED.name: "rejected",
}


def missed_call(record: CallRecord, now: datetime) -> SubscribedEvent | None:
    """Return the event of a missed call for its subscribers; None for any other call."""
    if record.direction != "inbound" or record.answered_at is not None or not record.status.ended:
        return None
    data = {
        "call_sid": record.call_sid,
        "from": record.from_,
        "to": record.to,
        "direction": record.direction,
        "status": record.status.value,
        "reason": missed_reason(record),
        "ring_duration_sec": _rang_s(record),
        "phone_number_id": record.phone_number_id,
        "started_at": timestamp(record.created_at),
        "ended_at": timestamp(record.ended_at),
    }
    return SubscribedEvent(
        event_id=str(uuid5(_EVENTS, record.call_sid)),
        account_sid=record.account_sid,
        service="calls",
        event=CALL_MISSED,
        fields={"event": CALL_MISSED, "created_at": timestamp(now), "data": data},
        created_at=now,
        call_sid=record.call_sid,
    )


def missed_reason(record: CallRecord) -> MissedReason:
    """
    Return the reason why a call was not answered.

    ``unreachable`` covers everything that prevented the ringing, or interrupted it: a number without a
    target, an agent or a carrier that failed, a restart of the server.
    """
    if record.hangup_source == "caller":
        return "caller_hangup"
    reason = _REASONS.get(record.hangup_cause or "", "unreachable")
    if reason == "no-answer" and record.ringing_at is None:
        return "unreachable"
    return reason


def _rang_s(record: CallRecord) -> int:
    if record.ringing_at is None or record.ended_at is None:
        return 0
    return max(0, int((record.ended_at - record.ringing_at).total_seconds() + 0.5))
