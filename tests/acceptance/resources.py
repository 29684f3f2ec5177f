"""Documented fields of every resource, by name and type (`shapes`)."""

from __future__ import annotations

from typing import Any, Final

from tests.acceptance.shapes import count, e164, moment, number, uuid_text

Shape = dict[str, Any]

_ID_OR_NONE: Final = (uuid_text, None)
_MOMENT_OR_NONE: Final = (moment, None)
_TEXT_OR_NONE: Final = (str, None)
_COUNT_OR_NONE: Final = (count, None)
_MONEY_OR_NONE: Final = (number, None)

META: Final[Shape] = {"request_id": str, "timestamp": moment}
PAGE: Final[Shape] = {"total": count, "page": count, "per_page": count, "total_pages": count}

# The telephony platform

PURCHASE: Final[Shape] = {
    "phone_number_id": uuid_text,
    "number": e164,
    "total_charged": number,
    "currency": "INR",
    "new_wallet_balance": number,
    "next_billing_at": moment,
}
NUMBER: Final[Shape] = {
    "id": uuid_text,
    "number": e164,
    "friendly_name": _TEXT_OR_NONE,
    "status": ("active", "suspended", "pending", "released"),
    "number_type": ("mobile", "local", "toll_free", "140_series", "160_series"),
    "voice_enabled": bool,
    "sms_enabled": bool,
    "monthly_cost": number,
    "inbound_target_type": str,
    "created_at": moment,
    "updated_at": moment,
}
WIRING: Final[Shape] = {
    "phone_number_id": uuid_text,
    "number": e164,
    "carrier_registered": bool,
    "outbound_capable": bool,
    "inbound_bound": bool,
    "inbound_target": _TEXT_OR_NONE,
}
STREAM: Final[Shape] = {
    "stream_sid": _ID_OR_NONE,
    "stream_url": str,
    "protocol": str,
    "encoding": str,
    "sample_rate": int,
    "state": _TEXT_OR_NONE,
}
CALL: Final[Shape] = {
    "call_sid": uuid_text,
    "sid": uuid_text,
    "account_sid": uuid_text,
    "parent_call_sid": _ID_OR_NONE,
    "direction": ("inbound", "outbound"),
    "from": str,
    "to": str,
    "status": (
        *("queued", "initiated", "ringing", "in-progress"),
        *("completed", "busy", "no-answer", "failed", "canceled"),
    ),
    "answered_by": ("human", "machine", "unknown", None),
    "carrier_sid": _ID_OR_NONE,
    "phone_number_id": _ID_OR_NONE,
    "app_sid": _ID_OR_NONE,
    "stream": (STREAM, None),
    "created_at": moment,
    "ringing_at": _MOMENT_OR_NONE,
    "answered_at": _MOMENT_OR_NONE,
    "ended_at": _MOMENT_OR_NONE,
    "duration_sec": _COUNT_OR_NONE,
    "bill_duration_sec": _COUNT_OR_NONE,
    "hangup_cause": _TEXT_OR_NONE,
    "hangup_cause_code": _COUNT_OR_NONE,
    "hangup_source": ("caller", "callee", "carrier", "api", "stream", "system", None),
    "sip_status": _COUNT_OR_NONE,
    "sip_reason": _TEXT_OR_NONE,
    "sip_call_id": _TEXT_OR_NONE,
    "price": _MONEY_OR_NONE,
    "currency": "INR",
    "recording_url": _TEXT_OR_NONE,
    "quality": (
        {
            "mos": _MONEY_OR_NONE,
            "jitter_ms": _MONEY_OR_NONE,
            "packet_loss_pct": _MONEY_OR_NONE,
            "codec": _TEXT_OR_NONE,
        },
        None,
    ),
    "tag": _TEXT_OR_NONE,
}

# The trunk portal

CARRIER: Final[Shape] = {
    "carrier_sid": uuid_text,
    "name": str,
    "description": _TEXT_OR_NONE,
    "is_active": bool,
    "trunk_type": ("static_ip", "auth", "reg"),
    "e164_leading_plus": bool,
    "tech_prefix": _TEXT_OR_NONE,
    "requires_register": bool,
    "register_username": _TEXT_OR_NONE,
    "register_sip_realm": _TEXT_OR_NONE,
    "register_from_user": _TEXT_OR_NONE,
    "register_from_domain": _TEXT_OR_NONE,
    "register_transport": _TEXT_OR_NONE,
    "register_status": {"state": _TEXT_OR_NONE, "reason": _TEXT_OR_NONE, "expires_at": _MOMENT_OR_NONE},
    "inbound_auth_username": _TEXT_OR_NONE,
    "outbound_proxy": _TEXT_OR_NONE,
    "diversion": _TEXT_OR_NONE,
    "dtmf_type": ("rfc2833", "info", "tones"),
    "codecs": [str],
    "srtp": ("off", "sdes", "require"),
    "max_concurrent_calls": _COUNT_OR_NONE,
    "max_cps": _COUNT_OR_NONE,
    "app_sid": _ID_OR_NONE,
    "created_at": moment,
    "updated_at": moment,
}
GATEWAY: Final[Shape] = {
    "gateway_sid": uuid_text,
    "carrier_sid": uuid_text,
    "host": str,
    "port": _COUNT_OR_NONE,
    "netmask": count,
    "protocol": str,
    "inbound": bool,
    "outbound": bool,
    "priority": count,
    "weight": count,
    "send_options_ping": bool,
    "is_active": bool,
    "health": {"state": str, "last_ok_at": _MOMENT_OR_NONE, "rtt_ms": _MONEY_OR_NONE},
}
TRUNK_NUMBER: Final[Shape] = {
    "number_sid": uuid_text,
    "number": e164,
    "carrier_sid": uuid_text,
    "app_sid": _ID_OR_NONE,
    "friendly_name": _TEXT_OR_NONE,
    "created_at": moment,
}
APPLICATION: Final[Shape] = {
    "app_sid": uuid_text,
    "name": str,
    "target": ("voice_agent", "webhook", "media_stream", "forward"),
    "webhook_url": _TEXT_OR_NONE,
    "webhook_method": _TEXT_OR_NONE,
    "status_webhook_url": _TEXT_OR_NONE,
    "stream_url": _TEXT_OR_NONE,
    "sample_rate": _COUNT_OR_NONE,
    "stream_protocol": _TEXT_OR_NONE,
    "agent_id": _ID_OR_NONE,
    "record_all_calls": bool,
}
CALL_LOG: Final[Shape] = {
    "call_sid": uuid_text,
    "from": str,
    "to": str,
    "answered": bool,
    "direction": ("inbound", "outbound"),
    "sip_status": _COUNT_OR_NONE,
    "sip_call_id": _TEXT_OR_NONE,
    "duration": _COUNT_OR_NONE,
    "attempted_at": moment,
    "answered_at": _MOMENT_OR_NONE,
    "terminated_at": _MOMENT_OR_NONE,
    "termination_reason": _TEXT_OR_NONE,
    "host": str,
    "remote_host": _TEXT_OR_NONE,
    "trunk": _TEXT_OR_NONE,
    "codec": _TEXT_OR_NONE,
    "mos": _MONEY_OR_NONE,
}

# Voice OTP

OTP_CALL: Final[Shape] = {
    "id": uuid_text,
    "call_sid": uuid_text,
    "to": str,
    "status": str,
    "language": str,
    "repeat": count,
    "played_count": count,
    "answered_at": _MOMENT_OR_NONE,
    "ended_at": _MOMENT_OR_NONE,
    "duration_sec": _COUNT_OR_NONE,
    "hangup_cause": _TEXT_OR_NONE,
    "price": _MONEY_OR_NONE,
    "reference": _TEXT_OR_NONE,
}
OTP_STATS: Final[Shape] = {
    "period": {"start": str, "end": str},
    "total_calls": count,
    "answered_calls": count,
    "completed_calls": count,
    "failed_calls": count,
    "no_answer_calls": count,
    "total_duration_sec": count,
    "total_cost": number,
    "currency": "INR",
}

# The voice assistant

AGENT: Final[Shape] = {
    "id": uuid_text,
    "name": str,
    "language": str,
    "voice": _TEXT_OR_NONE,
    "greeting": _TEXT_OR_NONE,
    "instructions": _TEXT_OR_NONE,
    "created_at": moment,
}
SPOKEN: Final[Shape] = {"role": ("agent", "user"), "text": str, "start_ms": count}
ASSISTANT_CALL: Final[Shape] = {
    "id": uuid_text,
    "agent_id": uuid_text,
    "phone_number": e164,
    "direction": ("inbound", "outbound"),
    "status": (
        *("queued", "ringing", "in-progress", "completed"),
        *("failed", "no-answer", "busy", "voicemail"),
    ),
    "context": dict,
    "started_at": _MOMENT_OR_NONE,
    "ended_at": _MOMENT_OR_NONE,
    "duration_seconds": _COUNT_OR_NONE,
    "recording_url": _TEXT_OR_NONE,
    "transcript": [SPOKEN],
    "cost": _MONEY_OR_NONE,
}
TRANSCRIPT: Final[Shape] = {
    "call_id": uuid_text,
    "language": _TEXT_OR_NONE,
    "segments": [{**SPOKEN, "end_ms": _COUNT_OR_NONE}],
}
ANALYTICS: Final[Shape] = {
    "period": {"start": moment, "end": moment},
    "total_calls": count,
    "completed_calls": count,
    "failed_calls": count,
    "avg_duration_seconds": number,
    "total_minutes": number,
    "success_rate": number,
    "by_day": list,
}
ASSISTANT_EVENT: Final[Shape] = {
    "event": str,
    "timestamp": moment,
    "data": {
        "call_id": _ID_OR_NONE,
        "agent_id": uuid_text,
        "phone_number": (e164, None),
        "duration_seconds": _COUNT_OR_NONE,
        "status": _TEXT_OR_NONE,
        "transcript_url": _TEXT_OR_NONE,
    },
}

# Number masking, and subscriptions

MASKED_CALL: Final[Shape] = {
    "id": uuid_text,
    "platform_call_sid": uuid_text,
    "caller_number": e164,
    "target_number": str,
    "masked_number": e164,
    "direction": ("click_to_call", "inbound"),
    "status": str,
    "started_at": moment,
    "answered_at": _MOMENT_OR_NONE,
    "ended_at": _MOMENT_OR_NONE,
    "duration_sec": _COUNT_OR_NONE,
    "bill_duration_sec": _COUNT_OR_NONE,
    "hangup_cause": _TEXT_OR_NONE,
    "price": _MONEY_OR_NONE,
    "recording_url": _TEXT_OR_NONE,
}
MASKING_STATS: Final[Shape] = {
    "total_sessions": count,
    "active_sessions": count,
    "total_mappings": count,
    "total_calls": count,
    "total_minutes": number,
    "total_cost": number,
    "answered_calls": count,
    "failed_calls": count,
}
SUBSCRIPTION: Final[Shape] = {
    "id": uuid_text,
    "url": str,
    "event_types": [str],
    "has_secret": bool,
    "is_active": bool,
    "created_at": moment,
    "updated_at": moment,
}
DELIVERY: Final[Shape] = {
    "id": uuid_text,
    "subscription_id": uuid_text,
    "event_type": str,
    "call_sid": str,
    "status": str,
    "attempts": count,
    "max_attempts": count,
    "response_code": count,
    "error": str,
    "created_at": moment,
}
MISSED_CALL: Final[Shape] = {
    "id": uuid_text,
    "event": "call.missed",
    "created_at": moment,
    "data": {
        "call_sid": uuid_text,
        "from": str,
        "to": e164,
        "direction": "inbound",
        "status": str,
        "reason": ("no-answer", "busy", "caller_hangup", "rejected", "unreachable"),
        "ring_duration_sec": count,
        "phone_number_id": uuid_text,
        "started_at": moment,
        "ended_at": moment,
    },
}

# Messaging

SENT_MESSAGE: Final[Shape] = {"success": True, "messageId": str, "to": e164, "type": str, "timestamp": moment}
TEMPLATE: Final[Shape] = {
    "id": int,
    "name": str,
    "category": ("MARKETING", "UTILITY", "AUTHENTICATION"),
    "language": str,
    "body": str,
    "status": ("PENDING", "APPROVED", "REJECTED", "PAUSED"),
}
CAMPAIGN: Final[Shape] = {
    "campaignId": int,
    "campaignName": str,
    "templateName": str,
    "status": ("draft", "scheduled", "running", "completed", "failed", "cancelled"),
    "total": count,
    "counts": {"queued": count, "sent": count, "delivered": count, "read": count, "failed": count},
}
CONTACT: Final[Shape] = {
    "id": int,
    "phoneNumber": e164,
    "firstName": _TEXT_OR_NONE,
    "lastName": _TEXT_OR_NONE,
    "email": _TEXT_OR_NONE,
    "customFields": dict,
    "notes": _TEXT_OR_NONE,
    "optedOut": bool,
}
CONTACT_LIST: Final[Shape] = {"id": int, "name": str, "description": _TEXT_OR_NONE}
PAGINATION: Final[Shape] = {"page": count, "pageSize": count, "total": count, "totalPages": count}
ENDPOINT: Final[Shape] = {
    "id": int,
    "url": str,
    "events": [str],
    "isActive": bool,
    "createdAt": moment,
}

# Tools

TOOL: Final[Shape] = {"name": str, "description": str, "input_schema": dict}
