"""Example bodies of endpoints by operationId, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["EXAMPLES"]

# Numbers of the demo account and the sandbox carrier, so that the examples work on a fresh installation.
_OWN, _ECHO, _OTHER = "+918047000001", "+919800000001", "+919800000009"
_SID = "01a1ffc4-5cc9-78fc-b133-f304aea58966"
_AGENT = "wss://agent.example.com/calls"
_OFFER = "\r\n".join(
    (
        "v=0",
        "o=- 4611733 2 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0",
        "m=audio 9 UDP/TLS/RTP/SAVPF 111 110",
        "c=IN IP4 0.0.0.0",
        "a=mid:0",
        "a=rtpmap:111 opus/48000/2",
        "a=rtpmap:110 telephone-event/48000",
        "a=sendrecv",
        "a=rtcp-mux",
        "a=ice-ufrag:Yx3q",
        "a=ice-pwd:nEr5bQ0pT2mKc8vWsLz4hUaJ",
        f"a=fingerprint:sha-256 {':'.join(f'{byte:02X}' for byte in range(32))}",
        "a=setup:actpass",
        "",
    )
)
# Base64, as libraries for Standard Webhooks need it.
_SECRET = "whsec_WW91ciBvd24gMzIgcmFuZG9tIGJ5dGVzLCBwbGVhc2U="

EXAMPLES: Mapping[str, Any] = {
    "create_template": {
        "name": "order_update",
        "category": "UTILITY",
        "language": "en_US",
        "body": "Hello {{1}}, your order {{2}} is on its way.",
    },
    "update_channel": {"displayName": "Acme", "messagesPerSecond": 40},
    "create_call": {
        "from": _OWN,
        "to": _ECHO,
        "verbs": [{"verb": "play", "url": "prompt:en/welcome"}, {"verb": "hangup"}],
        "status_webhook_url": "https://app.example.com/calls",
    },
    "create_stream_call": {"from": _OWN, "to": _ECHO, "stream_url": _AGENT, "sample_rate": 16000},
    "update_live_call": {"mute_status": "mute", "party": "a"},
    "call_from_sandbox": {"from": _ECHO, "to": _OWN, "hangup_after_seconds": 5},
    "create_phone_token": {"identity": "asha", "from": _OWN, "may_call": [_OWN], "ttl_seconds": 3600},
    "create_browser_call": {"sdp": _OFFER, "to": _OWN, "from": "asha", "parameters": {"Order": "17"}},
    "restart_browser_call": {"sdp": _OFFER},
    "listen_to_call": {"sdp": _OFFER.replace("a=sendrecv", "a=recvonly")},
    "answer_browser_call": {"sdp": _OFFER},
    "create_twilio_call": {
        "From": _OWN,
        "To": _ECHO,
        "Twiml": "<Response><Say>Your order is on its way.</Say></Response>",
        "StatusCallback": "https://app.example.com/calls",
        "StatusCallbackEvent": ["answered", "completed"],
    },
    "update_twilio_call": {"Status": "completed"},
    "end_twilio_conference": {"Status": "completed"},
    "update_twilio_participant": {"Muted": True},
    "create_twilio_message": {
        "To": "+919800100000",
        "From": "+918001100000",
        "Body": "Your parcel is here.",
    },
    "create_jambonz_call": {
        "from": _OWN,
        "to": {"type": "phone", "number": _ECHO},
        "call_hook": "https://app.example.com/hello",
        "call_status_hook": "https://app.example.com/status",
        "tag": {"order": "7"},
    },
    "update_jambonz_call": {"call_status": "completed"},
    "change_jambonz_call": {"mute_status": "mute"},
    "create_jambonz_application": {"name": "Hello", "call_hook": "https://app.example.com/hello"},
    "bind_number": {"target": "media_stream", "stream_url": _AGENT, "sample_rate": 16000, "force": True},
    "change_number": {"friendly_name": "Front desk"},
    "purchase_did": {
        "live_ref": "did_8f2c1e0a9b",
        "friendly_name": "Front desk",
        "months": 3,
        "acknowledged_total": 897.0,
    },
    "send_campaign": {
        "templateName": "order_update",
        "campaignName": "Orders of Monday",
        "phoneNumbers": ["+919800200011", "+919800200012"],
        "variables": {"1": "Asha", "2": "A-1042"},
    },
    "send_otp": {"to": _ECHO, "language": "hi-IN", "repeat": 2, "reference": "login-7"},
    "verify_otp": {"otp": "271828"},
    "start_masked_call": {"party_a": _ECHO[3:], "party_b": _OTHER[3:], "max_duration_sec": 600},
    "create_masking_session": {
        "party_a": "9800000001",
        "party_b": "9800000004",
        "expires_in_sec": 3600,
        "call_time_limit_sec": 600,
    },
    "change_masking_session": {"expires_in_sec": 7200},
    "enrol_masked_number": {"number": _OWN, "language": "hi-IN", "force": True},
    "update_masking_settings": {
        "webhook_url": "https://app.example.com/masking",
        "webhook_secret": _SECRET,
        "record_calls": False,
    },
    "update_stream_settings": {"default_stream_protocol": "twilio"},
    "rotate_stream_secret": {"overlap_sec": 86400},
    "create_key": {"service": "platform", "name": "Reports", "scopes": ["calls.read", "otp.read"]},
    "rotate_key": {"overlap_seconds": 3600},
    "rotate_webhook_secret": {"overlap_seconds": 86400},
    "create_carrier": {
        "name": "My trunk",
        "trunk_type": "auth",
        "register_username": "acme",
        "register_password": "a long password",
        "codecs": ["PCMA", "PCMU"],
    },
    "update_carrier": {"name": "My trunk", "max_concurrent_calls": 30},
    "create_gateway": {"host": "sip.carrier.example", "protocol": "udp", "priority": 1, "weight": 10},
    "update_gateway": {"priority": 2, "send_options_ping": True},
    "register_trunk_number": {
        "number": "+918047491899",
        "carrier_sid": _SID,
        "friendly_name": "Front desk",
    },
    "update_trunk_number": {"friendly_name": "Reception"},
    "create_agent": {
        "name": "Front desk",
        "language": "hi-IN",
        "greeting": "Namaste",
        "script": {
            "nodes": {
                "start": {
                    "say": "For the sales department press 1, or say what you need after the question.",
                    "gather": {"num_digits": 1, "timeout_s": 6},
                    "on": {"1": "sales", "speech": "noted", "failed": "bye"},
                },
                "sales": {
                    "say": "One moment.",
                    "transfer": {"to": _ECHO, "timeout_s": 30},
                    "on": {"failed": "bye"},
                },
                "noted": {"say": "Thank you, {{name|dear caller}}.", "next": "bye"},
                "bye": {"say": "Goodbye.", "hangup": True},
            }
        },
    },
    "update_agent": {"voice": "calm"},
    "start_assistant_call": {
        "phone_number": _ECHO,
        "agent_id": _SID,
        "context": {"customer_name": "Asha", "order": "4711"},
    },
    "create_assistant_webhook": {
        "url": "https://app.example.com/assistant",
        "events": ["call.completed", "transcript.ready"],
        "description": "CRM",
    },
    "update_assistant_webhook": {"is_active": False},
    "replay_failed_assistant_deliveries": {"status": "failed", "since": "2026-01-31T00:00:00Z"},
    "create_assistant_key": {"name": "staging", "environment": "sandbox"},
    "create_webhook_endpoint": {
        "url": "https://app.example.com/messaging",
        "events": ["message.delivered", "message.failed", "message.received"],
        "description": "CRM",
    },
    "update_webhook_endpoint": {"isActive": False},
    "replay_failed_endpoint_deliveries": {"status": "failed", "since": "2026-01-31T00:00:00Z"},
    "rotate_assistant_key": {"overlap_seconds": 3600},
    "create_application": {"name": "Front desk", "target": "media_stream", "stream_url": _AGENT},
    "update_application": {"name": "Reception", "record_all_calls": True},
    "create_subscription": {
        "url": "https://app.example.com/missed-calls",
        "secret": _SECRET,
        "event_types": ["call.missed"],
    },
    "update_subscription": {"is_active": False},
    "replay_failed": {"status": "failed", "since": "2026-01-31T00:00:00Z"},
    "execute_tool": {"arguments": {"to": _ECHO, "message": "Your table is ready."}},
    "register_tool": {
        "name": "find_order",
        "title": "Find an order",
        "description": "Tells what has become of an order of the customer.",
        "url": "https://shop.example.com/tools/find-order",
        "input_schema": {
            "type": "object",
            "properties": {"number": {"type": "string", "description": "As on the receipt."}},
            "required": ["number"],
            "additionalProperties": False,
        },
        "annotations": {"read_only": True, "destructive": False},
        "headers": {"X-Shop": "4711"},
    },
    "update_tool": {"timeout_sec": 5},
    "create_model_key": {"name": "front-desk", "provider": "openai", "api_key": "sk-proj-4711"},
    "create_app_key": {"name": "Front desk agent", "tools": ["place_call", "call_status"]},
    "replay_failed_masking_deliveries": {"status": "failed", "since": "2026-01-31T00:00:00Z"},
    "send_mcp_message": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "curl", "version": "8"},
        },
    },
    "create_contact": {
        "phoneNumber": "+919876543210",
        "firstName": "Asha",
        "lastName": "Rao",
        "email": "asha@example.com",
        "customFields": {"city": "Pune", "orders": 3},
    },
    "update_contact": {"notes": "Writes in Marathi.", "customFields": {"city": "Pune", "orders": 4}},
    "create_contact_list": {"name": "Diwali 2026", "description": "Who asked to hear of the sale."},
    "update_contact_list": {"name": "Diwali sale"},
    "add_contacts": {"contactIds": [1]},
    "remove_contacts": {"contactIds": [1]},
    "send_message": {
        "to": "+919800100000",
        "type": "buttons",
        "interactive": {
            "body": "Your table for four at 19:30?",
            "buttons": [{"id": "yes", "title": "We shall be there"}, {"id": "no", "title": "Cancel it"}],
        },
    },
    "simulate_inbound": {"from": "+919800100000", "text": "Which floor?"},
}
