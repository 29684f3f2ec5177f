"""Conversion of request bodies to domain requests for calls."""

from __future__ import annotations

from typing import Any

from api.schemas.calls import CallFields, CreateCall, CreateStreamCall
from api.schemas.live import LiveTransfer, UpdateLiveCall
from api.schemas.streams import StreamFields
from api.schemas.verbs import CallTarget
from callcontrol.calls import requests as domain
from callcontrol.calls.live.requests import LiveUpdate, TransferRequest

__all__ = ["call_request", "live_update"]

_STREAM_FIELDS = frozenset(StreamFields.model_fields)


def call_request(body: CreateCall | CreateStreamCall) -> domain.CreateCall:
    """Convert a body; the domain checks its values, and uses the same field names."""
    verbs = body.verbs if isinstance(body, CreateCall) else None
    asked = body if isinstance(body, CreateCall) else None
    return domain.CreateCall(
        from_=body.from_,
        to=body.to.address if isinstance(body.to, CallTarget) else body.to,
        stream=domain.StreamRequest(body.stream_url, _stream_fields(body)) if body.stream_url else None,
        verbs=None if verbs is None else [verb.model_dump(exclude_none=True) for verb in verbs],
        webhook_url=asked.webhook_url if asked is not None else None,
        webhook_method=asked.webhook_method if asked is not None else "POST",
        webhook_format=asked.webhook_format if asked is not None else "json",
        fallback_url=body.fallback_url,
        agent_id=body.agent_id,
        timeout_s=float(body.timeout),
        time_limit_s=float(body.time_limit),
        record=body.record,
        recording_channels=body.recording_channels,
        machine_detection=body.machine_detection,
        send_digits=body.send_digits,
        caller_name=body.caller_name,
        headers=body.headers,
        tag=body.tag,
        carrier_sid=body.carrier_sid,
        app_sid=body.app_sid,
        stream_fields=_stream_fields(body),
        needs_stream=isinstance(body, CreateStreamCall),
        status_webhook_url=body.status_webhook_url,
        status_webhook_events=tuple(body.status_webhook_events),
    )


def _stream_fields(body: CallFields) -> dict[str, Any]:
    return body.model_dump(include=set(_STREAM_FIELDS), exclude_none=True)


def live_update(body: UpdateLiveCall) -> LiveUpdate:
    """Convert the body of a change to an active call."""
    transfer = body.transfer
    return LiveUpdate(
        call_status=body.call_status,
        mute_status=body.mute_status,
        mute_direction=body.mute_direction or "says",
        party=body.party or "a",
        listen_status=body.listen_status,
        recording=body.record.action if body.record else None,
        recording_channels=body.record.channels if body.record else "dual",
        digits=body.dtmf.digits if body.dtmf else None,
        digits_party=body.dtmf.party if body.dtmf else "a",
        transfer=_transfer(transfer) if transfer is not None else None,
        time_limit_s=float(body.time_limit) if body.time_limit is not None else None,
        webhook_url=body.webhook_url,
        webhook_method=body.webhook_method or "POST",
    )


def _transfer(body: LiveTransfer) -> TransferRequest:
    return TransferRequest(
        to=body.to.address if isinstance(body.to, CallTarget) else body.to,
        party=body.party,
        caller_id=body.caller_id,
        timeout_s=float(body.timeout),
        headers=tuple(body.headers.items()),
    )
