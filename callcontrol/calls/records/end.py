"""End of a call in its record."""

from datetime import datetime

from callcontrol.calls.dialer import Ending
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, outcome_of
from callcontrol.calls.plan import Hangup, Reject
from callcontrol.models import CallRecord, CallStatus
from sip import reason_phrase


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
    if not answered and ending.sip_status is not None:
        record.sip_status = ending.sip_status
        record.sip_reason = ending.sip_reason or reason_phrase(ending.sip_status)
    record.duration_sec = int(answered_for_s + 0.5) if answered_for_s is not None else 0
