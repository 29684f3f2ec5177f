"""Defaults of an application for calls placed with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from callcontrol.calls.requests import CreateCall, StreamRequest
from callcontrol.errors import ValidationFailed
from callcontrol.models import Application, Binding
from callcontrol.numbers.binding import stream_fields_of

_STREAMS = ("media_stream", "voice_agent")


def applied(request: CreateCall, application: Application) -> CreateCall:
    """
    Fill in the missing fields of a request from its application.

    The request takes precedence, also in each field of a stream; a call is recorded, or transcribed, when
    either asks for it.

    Raises:
        ValidationFailed: The request is for an agent's stream, and the application has none.
    """
    binding = application.call_binding
    says = request.says_what_to_do
    if request.needs_stream and not says and binding.target not in _STREAMS:
        message = f"is required: the application {application.name} has none"
        raise ValidationFailed.of("stream_url", message)
    events = request.status_webhook_events
    filled = replace(
        request,
        record=request.record or application.record_all_calls,
        transcribe=request.transcribe or bool(binding.transcribe),
        transcription_language=request.transcription_language or binding.transcription_language,
        status_webhook_url=request.status_webhook_url or binding.status_webhook_url,
        status_webhook_events=binding.status_webhook_events if events is None else events,
        fallback_url=request.fallback_url or binding.fallback_url,
    )
    return filled if says else replace(filled, **_task(request, binding))


def _task(request: CreateCall, binding: Binding) -> Mapping[str, Any]:
    if binding.target == "media_stream":
        fields = {**stream_fields_of(binding), **request.stream_fields}
        given = request.stream_fields.get("custom_parameters")
        if isinstance(given, Mapping):
            fields["custom_parameters"] = {**(binding.custom_parameters or {}), **given}
        return {"stream": StreamRequest(binding.stream_url or "", fields)}
    if binding.target == "model":
        return {"model": binding.model}
    if binding.target == "voice_agent":
        return {"agent_id": binding.agent_id}
    if binding.target == "webhook":
        return {
            "webhook_url": binding.webhook_url,
            "webhook_method": binding.webhook_method or "POST",
            "webhook_format": binding.webhook_format or "json",
        }
    return {"verbs": _dial(binding)}


def _dial(binding: Binding) -> Sequence[Mapping[str, Any]]:
    """
    The dial verb for a forwarding target.

    A placed call has no caller ID to pass through: both parties see the same number.
    """
    forward_to = binding.forward_to or ""
    is_sip = forward_to.lower().startswith(("sip", "browser:"))
    target = {"type": "sip", "sip_uri": forward_to} if is_sip else {"type": "phone", "number": forward_to}
    dial: dict[str, Any] = {"verb": "dial", "target": [target], "timeout": binding.timeout_s}
    if binding.caller_id not in (None, "passthrough"):
        dial["caller_id"] = binding.caller_id
    return [dial]
