"""Ends for records without a running call: its process was killed, or an internal error ended the call."""

from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.masking.progress import cut_off
from callcontrol.models import CallRecord, CallStatus
from callcontrol.wallet.meter import Rates


def close_record(record: CallRecord, cause: HangupCause, rates: Rates) -> int:
    """
    Write an end to a record without one, and return the charge of the call, in paise.

    The real end of the call is unknown, so it counts as ended at the last time written: an answered call
    costs the pulse that its answer began, and a masked one that of its second party too; any other costs
    nothing.
    """
    answered = record.answered_at is not None
    record.status = CallStatus.COMPLETED if answered else CallStatus.FAILED
    record.ended_at = record.answered_at or record.ringing_at or record.created_at
    record.duration_sec = 0
    record.bill_duration_sec = round(rates.pulse_s) if answered else 0
    record.hangup_cause, record.hangup_cause_code = cause.name, cause.code
    record.hangup_source = "system"
    if record.stream is not None and record.stream.state not in ("stopped", "failed"):
        record.stream.state = "stopped"
    bridged = record.product == MASKING and cut_off(record, cause, rates.pulse_s)
    if not answered:
        return 0
    first_paise = rates.inbound_paise if record.direction == "inbound" else rates.outbound_paise
    return first_paise + (rates.outbound_paise if bridged else 0)
