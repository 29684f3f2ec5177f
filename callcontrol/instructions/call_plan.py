"""
Plans of API requests to place a call.

Every wrong value is named by its path in the request (``verbs[0].url``).
"""

from callcontrol.calls.plan import USUAL_LANGUAGE, Plan, Step, fallback_of
from callcontrol.calls.requests import CreateCall
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import RequestErrors
from callcontrol.instructions.verbs import (
    MAX_VERBS,
    VerbRules,
    VerbValues,
    WebhookDefaults,
    digit_steps,
    read_verbs,
)
from callcontrol.models.parties import Party

__all__ = ["plan_of"]


def plan_of(request: CreateCall, rules: VerbRules) -> Plan:
    """
    Return the plan of a request.

    Raises:
        ValidationFailed: Values are wrong; all of them are named.
        Forbidden: A number may not be dialled.
    """
    # The caller-ID is needed to read the verbs; its errors are listed first.
    numbers = VerbValues(rules, None)
    caller_id = numbers.number("from", request.from_)
    target = numbers.target("to", request.to)
    fallback = fallback_of(request.fallback_url, request.webhook_method, request.webhook_format)
    values = VerbValues(rules, caller_id, webhooks=WebhookDefaults(request.webhook_format, fallback))
    steps = _steps(request, values)
    if request.send_digits is not None:
        steps = [*digit_steps(values, "send_digits", request.send_digits), *steps]
    if request.status_webhook_url is not None:
        values.check_url("status_webhook_url", request.status_webhook_url, WEB_SCHEMES)
    if request.fallback_url is not None:
        values.check_url("fallback_url", request.fallback_url, WEB_SCHEMES)
    forbidden = numbers.forbidden or values.forbidden
    RequestErrors(errors=numbers.errors + values.errors, forbidden=forbidden).raise_found()
    assert caller_id is not None and target is not None, "their errors were raised"
    party = Party(
        target,
        caller_id,
        caller_name=request.caller_name,
        ring_timeout_s=request.timeout_s,
        carrier_sid=request.carrier_sid,
        headers=tuple(request.headers.items()),
    )
    return Plan(
        tuple(steps),
        dial=party,
        record=request.record,
        recording_channels=1 if request.recording_channels == "mono" else 2,
        time_limit_s=request.time_limit_s,
        machine_detection=request.machine_detection,
        transcribe=(request.transcription_language or USUAL_LANGUAGE) if request.transcribe else None,
    )


def _steps(request: CreateCall, values: VerbValues) -> list[Step]:
    ways = (request.stream, request.verbs, request.webhook_url, request.step, request.model)
    if sum(way is not None for way in ways) != 1:
        values.wrong("stream_url", "exactly one of stream_url, webhook_url, model and verbs must be given")
        return []
    if request.step is not None:
        return [request.step]
    if request.model is not None:
        return [*values.model("model", request.model)]
    if request.stream is not None:
        return [*values.stream("stream_url", request.stream.url, request.stream.fields)]
    if request.webhook_url is not None:
        asked = ("webhook_url", request.webhook_url, "webhook_method", request.webhook_method)
        return [*values.request_instructions(*asked, "call.answered")]
    if not request.verbs:
        values.wrong("verbs", f"must have 1 to {MAX_VERBS} verbs")
        return []
    return read_verbs(values, "verbs", request.verbs)
