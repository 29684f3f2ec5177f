"""End of a call: in its record, and as the event of a missed call."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal
from uuid import UUID, uuid5

from callcontrol.calls.charges import Rates
from callcontrol.calls.dialer import Ending
from callcontrol.calls.hangup_cause import (
    ALLOTTED_TIMEOUT,
    BALANCE_EXHAUSTED,
    CALL_REJECTED,
    NO_ANSWER,
    NO_USER_RESPONSE,
    NORMAL_CLEARING,
    ORIGINATOR_CANCEL,
    USER_BUSY,
    HangupCause,
    outcome_of,
)
from callcontrol.calls.plan import Hangup, Reject
from callcontrol.calls.product import ProductPolicy
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, CallStatus, SubscribedEvent
from sip import reason_phrase

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


def ending_of(step: Hangup | Reject) -> Ending:
    """Return the ending for a step that ends the call."""
    if isinstance(step, Reject):
        outcome = outcome_of(step.status)
        return Ending(outcome.status, outcome.cause, "api", step.status)
    return Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "api")


def write_end(record: CallRecord, ending: Ending, at: datetime, *, answered_for_s: float | None) -> None:
    """Write the end of a call; ``answered_for_s`` is the time since its answer, None without an answer."""
    answered = answered_for_s is not None
    record.status = CallStatus.COMPLETED if answered else ending.status
    if record.status is CallStatus.COMPLETED and not answered:
        record.status = CallStatus.NO_ANSWER  # a plan may end a call that it never answered
    record.ended_at = at
    record.hangup_cause, record.hangup_cause_code = ending.cause.name, ending.cause.code
    record.hangup_source = ending.source
    _stop_stream(record)
    if not answered and ending.sip_status is not None:
        record.sip_status = ending.sip_status
        record.sip_reason = ending.sip_reason or reason_phrase(ending.sip_status)
    elif ending.sip_reason is not None and ending.sip_status is None:
        # Of an end that no response brought, such as that of a silent leg.
        record.sip_reason = ending.sip_reason
    record.duration_sec = int(answered_for_s + 0.5) if answered_for_s is not None else 0


def close_record(record: CallRecord, cause: HangupCause, rates: Rates, policy: ProductPolicy) -> int:
    """
    Write an end to a record without one, and return the charge of the call, in paise.

    The real end of the call is unknown, so it counts as ended at the last time written: an answered call
    costs the pulse that its answer began, at the rates of its product, and that of a second party which the
    product records; any other costs nothing.
    """
    rates = policy.rates(record, rates)
    answered = record.answered_at is not None
    record.status = CallStatus.COMPLETED if answered else CallStatus.FAILED
    record.ended_at = record.answered_at or record.ringing_at or record.created_at
    record.duration_sec = 0
    record.bill_duration_sec = round(rates.pulse_s) if answered else 0
    record.hangup_cause, record.hangup_cause_code = cause.name, cause.code
    record.hangup_source = "system"
    _stop_stream(record)
    bridged = policy.cut_off(record, cause, rates.pulse_s)
    if not answered:
        return 0
    first_paise = rates.inbound_paise if record.direction == "inbound" else rates.outbound_paise
    return first_paise + (rates.outbound_paise if bridged else 0)


def _stop_stream(record: CallRecord) -> None:
    """Mark the stream stopped that the call had, or that it was to have."""
    if record.stream is not None and record.stream.state not in ("stopped", "failed"):
        record.stream.state = "stopped"


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
