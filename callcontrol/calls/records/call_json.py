"""JSON form of a call, the same in REST responses and webhooks."""

from dataclasses import asdict
from typing import Any

from callcontrol.calls.records.quality import quality_fields
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, StreamInfo
from callcontrol.wallet.money import rupees

__all__ = ["call_object"]


def call_object(record: CallRecord) -> dict[str, Any]:
    """
    Return the call as a JSON object.

    ``sid`` repeats ``call_sid`` for clients that expect that name; ``price`` is in rupees.
    """
    return {
        "call_sid": record.call_sid,
        "sid": record.call_sid,
        "account_sid": record.account_sid,
        "parent_call_sid": record.parent_call_sid,
        "direction": record.direction,
        "from": record.from_,
        "to": record.to,
        "status": record.status.value,
        "answered_by": record.answered_by,
        "carrier_sid": record.carrier_sid,
        "phone_number_id": record.phone_number_id,
        "app_sid": record.app_sid,
        "stream": _stream(record.stream) if record.stream else None,
        "created_at": timestamp(record.created_at),
        "ringing_at": timestamp(record.ringing_at),
        "answered_at": timestamp(record.answered_at),
        "ended_at": timestamp(record.ended_at),
        "duration_sec": record.duration_sec,
        "bill_duration_sec": record.bill_duration_sec,
        "hangup_cause": record.hangup_cause,
        "hangup_cause_code": record.hangup_cause_code,
        "hangup_source": record.hangup_source,
        "sip_status": record.sip_status,
        "sip_reason": record.sip_reason,
        "sip_call_id": record.sip_call_id,
        "sip": dict(record.sip) if record.sip else None,
        "price": rupees(record.price_paise) if record.price_paise is not None else None,
        "currency": record.currency,
        "recording_url": record.recording_url,
        "recording_status": record.recording_status,
        "quality": quality_fields(record.quality) if record.quality else None,
        "tag": record.tag,
    }


def _stream(stream: StreamInfo) -> dict[str, Any]:
    """Return the stream; the fields of speech models are left out of others."""
    fields = asdict(stream)
    if stream.model is None:
        del fields["model"], fields["usage"]
    return fields
