"""
Configuration of phone numbers: registration on the carrier and inbound binding, as pure state changes.

==========================  ===========  =========================  ==========================================
state                       request      condition                  next state
==========================  ===========  =========================  ==========================================
any                         register     carrier configured         registered; repeating it changes nothing
registered, not bound       deregister   carrier configured         not registered
bound                       deregister   force                      not registered and not bound
any                         bind         target fields valid        bound, and registered
bound                       bind         same target, other fields  bound with the new fields
bound elsewhere             bind         force                      bound to the new target
bound                       unbind       none                       not bound; outbound stays registered
==========================  ===========  =========================  ==========================================

Elsewhere is another target, another agent, or another party that is forwarded to.

Source: the telephony interface, "States and transitions".
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from callcontrol.e164 import NOT_A_NUMBER, read_number
from callcontrol.egress.url_policy import HOOK_SCHEMES, STREAM_SCHEMES, WEB_SCHEMES, syntax_errors
from callcontrol.errors import (
    BindFailed,
    DomainError,
    FieldError,
    InboundBound,
    InboundConflict,
    NotConfigured,
    NumberNotOwned,
    ValidationFailed,
)
from callcontrol.models import HOW_TO_REGISTER, Binding, PhoneNumber
from callcontrol.models.parties import IDENTITY, SipTarget
from callcontrol.routing.targets import parse_target
from media.audio.recognition import LANGUAGE_TAG
from media.streams import DIALECTS, StreamChoice, StreamSetupError, choose_model, choose_stream

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_SIP_HOST: Final = r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
_SIP_URI: Final = re.compile(rf"sips?:[^@\s<>;?]{{1,128}}@{_SIP_HOST}(?::[0-9]{{1,5}})?", re.ASCII)

_BROWSER: Final = re.compile(f"browser:{IDENTITY.pattern}")

SAMPLE_RATES: Final = (8000, 16000)
STREAM_PROTOCOLS: Final = tuple(DIALECTS)
ENCODINGS: Final = ("l16", "mulaw", "alaw")
MAX_URL_CHARACTERS: Final = 2048
MAX_MISSED_CALL_S: Final = 60
_MAX_PARAMETERS: Final = 32
_MAX_PARAMETER_CHARACTERS: Final = 512

_REQUEST_NAMES: Final = {"timeout_s": "timeout"}
_FIELD_NAMES: Final = {given: name for name, given in _REQUEST_NAMES.items()}
_STREAM_FIELDS: Final = (
    "stream_protocol",
    "encoding",
    "sample_rate",
    "custom_parameters",
    "stream_auth",
    "stream_track",
    "stream_max_retries",
)
STATUS_EVENTS: Final = ("initiated", "ringing", "early-media", "answered", "completed")
"""Call events that a status webhook gets only on request; all others are always sent."""

BINDING_URLS: Final[Mapping[str, tuple[str, ...]]] = {
    "stream_url": STREAM_SCHEMES,
    "webhook_url": WEB_SCHEMES,
    "fallback_url": WEB_SCHEMES,
    "status_webhook_url": WEB_SCHEMES,
}
"""Fields with the URLs of a binding, and the schemes of each; applications for jambonz have more."""

_STATUS: Final = frozenset({"status_webhook_url", "status_webhook_events"})
_ANY_TARGET: Final = _STATUS | {"target", "record", "transcribe", "transcription_language"}
_TARGET_FIELDS: Final = {
    "media_stream": _ANY_TARGET | {"stream_url", "fallback_url", *_STREAM_FIELDS},
    "model": _ANY_TARGET | {"model", "fallback_url"},
    "forward": _ANY_TARGET | {"forward_to", "caller_id", "timeout_s"},
    "browser": _ANY_TARGET | {"identity", "caller_id", "timeout_s", "fallback_url"},
    "webhook": _ANY_TARGET | {"webhook_url", "webhook_method", "webhook_format", "fallback_url", "timeout_s"},
    "voice_agent": _ANY_TARGET | {"agent_id", "workspace_id"},
    # These calls are never connected, so there is nothing to record or to transcribe.
    "missed_call": _STATUS | {"target", "timeout_s"},
    # The account's masking settings decide webhooks and recording of these calls.
    "masking": frozenset({"target", "language"}),
}
_PARTY: Final = {"forward": "forward_to", "browser": "identity", "voice_agent": "agent_id"}
"""Field that names who gets the calls, of targets with several such parties."""

TARGETS: Final = tuple(_TARGET_FIELDS)
"""Targets that a number may be bound to."""


def fields_of(target: str) -> frozenset[str]:
    """Fields that a binding to a target may have, by their names in a request."""
    return frozenset(_REQUEST_NAMES.get(name, name) for name in _TARGET_FIELDS[target]) - {"target"}


PROMPT_LANGUAGES: Final = ("en", "hi", "bn", "gu", "kn", "ml", "mr", "pa", "ta", "te")
"""Languages of the platform's own prompts."""


def register(number: PhoneNumber, *, configured: bool, now: datetime) -> PhoneNumber:
    """
    Register a number on its carrier, so that it may be used as caller-ID.

    Raises:
        NotConfigured: There is no platform carrier to register it on.
    """
    _require_carrier(number, configured)
    return number if number.registered else replace(number, registered=True, updated_at=now)


def deregister(number: PhoneNumber, *, configured: bool, force: bool, now: datetime) -> PhoneNumber:
    """
    Deregister a number; with ``force`` its inbound binding is removed too.

    A bound number is always registered, so deregistering a bound number must unbind it.

    Raises:
        NotConfigured: There is no platform carrier.
        InboundBound: The number is still bound, and ``force`` was not given.
    """
    _require_carrier(number, configured)
    if number.binding is not None and not force:
        raise InboundBound("Inbound calls of this number are still bound; unbind first or pass force=true.")
    if not number.registered and number.binding is None:
        return number
    return replace(number, registered=False, binding=None, updated_at=now)


def no_registered_number(purpose: str) -> NumberNotOwned:
    """Refusal of a call that names no number, on an account without a registered one."""
    return NumberNotOwned(
        f"The account has no registered number {purpose}; register one of its numbers: {HOW_TO_REGISTER}."
    )


def bind(
    number: PhoneNumber, binding: Binding, *, configured: bool, force: bool, now: datetime
) -> PhoneNumber:
    """
    Bind inbound calls of a number to a target, registering the number if needed.

    Repeating the same binding changes nothing. A stream or a webhook may move to another address, and every
    binding may change its options.

    Raises:
        NotConfigured: There is no platform carrier.
        BindFailed: Its calls would be forwarded to itself.
        InboundConflict: It is bound elsewhere, and ``force`` was not given.
    """
    _require_carrier(number, configured)
    if binding.forward_to == number.number:
        raise BindFailed([FieldError("forward_to", "is the number itself; its calls would come back to it")])
    if not force and _is_elsewhere(number.binding, binding):
        raise InboundConflict(
            "Inbound calls of this number are bound elsewhere; pass force true to take over."
        )
    if number.binding == binding and number.registered:
        return number
    return replace(number, registered=True, binding=binding, updated_at=now)


def _is_elsewhere(present: Binding | None, wanted: Binding) -> bool:
    """True if calls go to somebody else at present."""
    if present is None:
        return False
    party = _PARTY.get(wanted.target, "target")
    return present.target != wanted.target or getattr(present, party) != getattr(wanted, party)


def unbind(number: PhoneNumber, *, now: datetime) -> PhoneNumber:
    """Remove the binding of inbound calls; the number stays registered for outbound calls."""
    return number if number.binding is None else replace(number, binding=None, updated_at=now)


def _require_carrier(number: PhoneNumber, configured: bool) -> None:
    if number.carrier_sid is None and not configured:
        raise NotConfigured(
            "This server has no carrier to register the number on; ask its operator to add one (trunkline"
            " carriers add), or use a number on a carrier of your own (POST /v1/trunk-portal/numbers)."
        )


def check_binding(binding: Binding) -> Binding:
    """
    Return the binding with its defaults if its target's fields are valid.

    Raises:
        BindFailed: With every wrong field.
    """
    if binding.target not in _TARGET_FIELDS:
        message = (
            "must be voice_agent, webhook, media_stream, model, forward, browser, masking or missed_call"
        )
        given = {_REQUEST_NAMES.get(name, name): value for name, value in binding.to_json().items()}
        del given["target"]
        raise BindFailed([FieldError("target", message), *value_errors(given)])
    errors = _foreign_fields(binding) + _url_errors("status_webhook_url", binding.status_webhook_url)
    errors += _url_errors("fallback_url", binding.fallback_url) + _event_errors(binding)
    errors += _transcription_errors(binding)
    if binding.status_webhook_events is not None:
        binding = replace(binding, status_webhook_events=tuple(binding.status_webhook_events))
    filled = _FILLED[binding.target](binding, errors)
    if errors:
        raise BindFailed(errors)
    return filled


def target_errors(target: Any, values: Mapping[str, Any]) -> list[FieldError]:
    """Errors of a binding to a target, given by the names of its fields in a request."""
    try:
        check_binding(Binding(target, **{_FIELD_NAMES.get(name, name): values[name] for name in values}))
    except BindFailed as refusal:
        return list(refusal.errors)
    return []


def value_errors(values: Mapping[str, Any]) -> list[FieldError]:
    """Errors of values that no target takes, by the names of their fields in a request."""
    found = {target: target_errors(target, values) for target in _TARGET_FIELDS}
    wrong = set.intersection(*({error.field for error in errors} for errors in found.values()))
    # An error of the value says more than that a target lacks the field.
    own = {
        error.field: error
        for target, errors in found.items()
        for error in errors
        if _FIELD_NAMES.get(error.field, error.field) in _TARGET_FIELDS[target]
    }
    return [own[name] for name in values if name in wrong]


def _filled_stream(binding: Binding, errors: list[FieldError]) -> Binding:
    simple = _stream_errors(binding)
    errors += simple
    try:
        choice = choice_of(binding)
    except StreamSetupError as error:
        named = {error.field for error in simple}
        errors += [FieldError(name, why) for name, why in error.faults.items() if name not in named]
        return binding
    # What is chosen agrees with what the URL says.
    return replace(
        binding, sample_rate=choice.sample_rate, stream_protocol=choice.protocol, encoding=choice.encoding
    )


def _filled_model(binding: Binding, errors: list[FieldError]) -> Binding:
    try:
        choice_of(binding)
    except StreamSetupError as error:
        errors += [
            FieldError(f"model.{name}" if name else "model", why) for name, why in error.faults.items()
        ]
    return replace(binding, record=bool(binding.record))


def _filled_forward(binding: Binding, errors: list[FieldError]) -> Binding:
    forward_to = _forward_target(binding, errors)
    caller_id = _shown_caller(binding, errors)
    errors += _timeout_errors(binding)
    return replace(
        binding,
        forward_to=forward_to,
        caller_id=caller_id,
        timeout_s=60 if binding.timeout_s is None else binding.timeout_s,
        record=bool(binding.record),
    )


def _filled_browser(binding: Binding, errors: list[FieldError]) -> Binding:
    if IDENTITY.fullmatch(binding.identity or "") is None:
        how = "must be 1 to 64 letters, digits and . _ -, the first a letter"
        errors.append(FieldError("identity", how if binding.identity else "is required"))
    caller_id = _shown_caller(binding, errors)
    errors += _timeout_errors(binding)
    return replace(
        binding,
        caller_id=caller_id,
        timeout_s=60 if binding.timeout_s is None else binding.timeout_s,
        record=bool(binding.record),
    )


def _filled_webhook(binding: Binding, errors: list[FieldError]) -> Binding:
    method = (binding.webhook_method or "POST").upper()
    if not binding.webhook_url:
        errors.append(FieldError("webhook_url", "is required"))
    # Applications for jambonz may be reached over a WebSocket.
    schemes = HOOK_SCHEMES if binding.webhook_format == "jambonz" else WEB_SCHEMES
    errors += _url_errors("webhook_url", binding.webhook_url, schemes)
    if method not in ("POST", "GET"):
        errors.append(FieldError("webhook_method", "must be POST or GET"))
    if binding.webhook_format not in (None, "json", "form", "jambonz"):
        errors.append(FieldError("webhook_format", "must be json, form or jambonz"))
    errors += _timeout_errors(binding)
    return replace(
        binding,
        webhook_method=method,
        webhook_format=binding.webhook_format or "json",
        timeout_s=60 if binding.timeout_s is None else binding.timeout_s,
        record=bool(binding.record),
    )


def _filled_missed(binding: Binding, errors: list[FieldError]) -> Binding:
    if binding.timeout_s is not None and not 5 <= binding.timeout_s <= MAX_MISSED_CALL_S:
        errors.append(FieldError("timeout", f"must be 5 to {MAX_MISSED_CALL_S} seconds"))
    return replace(binding, timeout_s=30 if binding.timeout_s is None else binding.timeout_s)


def _filled_agent(binding: Binding, errors: list[FieldError]) -> Binding:
    for name in ("agent_id", "workspace_id"):
        given = getattr(binding, name)
        if UUID.fullmatch(given or "") is None:
            errors.append(FieldError(name, "must be a UUID" if given else "is required: a UUID"))
    return replace(
        binding,
        agent_id=(binding.agent_id or "").lower(),
        workspace_id=(binding.workspace_id or "").lower(),
        record=bool(binding.record),
    )


def _filled_masking(binding: Binding, errors: list[FieldError]) -> Binding:
    language = (binding.language or PROMPT_LANGUAGES[0]).lower().partition("-")[0]
    if language not in PROMPT_LANGUAGES:
        spoken = ", ".join(PROMPT_LANGUAGES)
        errors.append(FieldError("language", f"is not spoken; these are, with any region: {spoken}"))
    return replace(binding, language=language)


_FILLED: Final[Mapping[str, Callable[[Binding, list[FieldError]], Binding]]] = {
    "media_stream": _filled_stream,
    "model": _filled_model,
    "forward": _filled_forward,
    "browser": _filled_browser,
    "webhook": _filled_webhook,
    "voice_agent": _filled_agent,
    "masking": _filled_masking,
    "missed_call": _filled_missed,
}


def choice_of(binding: Binding) -> StreamChoice:
    """
    Stream parameters for the agent of a ``media_stream`` binding, or the model of a ``model`` one.

    Raises:
        StreamSetupError: The binding describes no possible stream.
    """
    if binding.target == "model":
        return choose_model(binding.model)
    return choose_stream(binding.stream_url, stream_fields_of(binding))


def stream_fields_of(binding: Binding) -> dict[str, Any]:
    """Stream fields of a binding that are set, without the URL."""
    values = {name: getattr(binding, name) for name in _STREAM_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


def _foreign_fields(binding: Binding) -> list[FieldError]:
    """Errors for fields of another target; accepted silently, they would seem to have an effect."""
    return [
        FieldError(_REQUEST_NAMES.get(name, name), f"is not a field of target {binding.target}")
        for name in binding.to_json()
        if name not in _TARGET_FIELDS[binding.target]
    ]


def _stream_errors(binding: Binding) -> list[FieldError]:
    errors = _url_errors("stream_url", binding.stream_url, STREAM_SCHEMES)
    if not binding.stream_url:
        errors.append(FieldError("stream_url", "is required"))
    if binding.sample_rate not in (None, *SAMPLE_RATES):
        errors.append(FieldError("sample_rate", "must be 8000 or 16000"))
    if binding.stream_protocol not in (None, *STREAM_PROTOCOLS):
        errors.append(FieldError("stream_protocol", f"must be one of {', '.join(STREAM_PROTOCOLS)}"))
    if binding.encoding not in (None, *ENCODINGS):
        errors.append(FieldError("encoding", f"must be one of {', '.join(ENCODINGS)}"))
    return errors + _parameter_errors(binding.custom_parameters or {})


def _parameter_errors(parameters: Mapping[str, str]) -> list[FieldError]:
    if len(parameters) > _MAX_PARAMETERS:
        return [FieldError("custom_parameters", f"must have at most {_MAX_PARAMETERS} entries")]
    too_long = any(len(key) + len(value) > _MAX_PARAMETER_CHARACTERS for key, value in parameters.items())
    if too_long:
        message = f"must have at most {_MAX_PARAMETER_CHARACTERS} characters in each entry"
        return [FieldError("custom_parameters", message)]
    return []


def _forward_target(binding: Binding, errors: list[FieldError]) -> str:
    """The number in E.164, or the address, that calls are forwarded to."""
    target = binding.forward_to or ""
    if not target:
        errors.append(FieldError("forward_to", "is required"))
        return target
    if _SIP_URI.fullmatch(target) or _BROWSER.fullmatch(target):
        return target
    try:
        return read_number(target)
    except ValueError:
        errors.append(FieldError("forward_to", f"{NOT_A_NUMBER}, or sip:user@host:port"))
        return target


def forward_to_errors(
    forward_to: str, allowed_countries: Collection[str], has_gateway: Callable[[str, int | None], bool]
) -> list[FieldError]:
    """
    Errors of a party to forward to: in a country that may not be called, or at a foreign host.

    ``has_gateway`` tells by host and port if a gateway of the account or of the platform is there.
    """
    try:
        target = parse_target(forward_to, allowed_countries, field="forward_to")
    except ValidationFailed as refusal:
        return list(refusal.errors)
    except DomainError as refusal:
        return [FieldError("forward_to", refusal.message)]
    if not isinstance(target, SipTarget) or has_gateway(target.host, target.port):
        return []
    message = f"{target.host} is not a gateway of your carriers; add it as a gateway first"
    return [FieldError("forward_to", message)]


def _shown_caller(binding: Binding, errors: list[FieldError]) -> str:
    """The caller-ID of a forwarded call: a number in E.164, or ``passthrough``."""
    given = binding.caller_id or "passthrough"
    if given == "passthrough":
        return given
    try:
        return read_number(given)
    except ValueError:
        errors.append(FieldError("caller_id", "must be passthrough or a number of the account"))
        return given


def schemes_of(field: str, webhook_format: object, url: str) -> tuple[str, ...]:
    """
    Schemes that a field with a URL of a binding takes.

    An application for jambonz may be at a WebSocket; a change of one need not give its format again.
    """
    if field == "webhook_url" and (webhook_format == "jambonz" or url.lower().startswith(("ws:", "wss:"))):
        return HOOK_SCHEMES
    return BINDING_URLS[field]


def _url_errors(field: str, url: str | None, schemes: tuple[str, ...] = WEB_SCHEMES) -> list[FieldError]:
    return syntax_errors(field, url, schemes=schemes) if url else []


def _event_errors(binding: Binding) -> list[FieldError]:
    if binding.status_webhook_events is None or set(binding.status_webhook_events) <= set(STATUS_EVENTS):
        return []
    return [FieldError("status_webhook_events", f"may have {', '.join(STATUS_EVENTS)}")]


def _transcription_errors(binding: Binding) -> list[FieldError]:
    language = binding.transcription_language
    if language is None or "transcription_language" not in _TARGET_FIELDS[binding.target]:
        return []
    if LANGUAGE_TAG.fullmatch(language) is None:
        return [FieldError("transcription_language", "must be a language such as en-IN or hi")]
    return []


def _timeout_errors(binding: Binding) -> list[FieldError]:
    if binding.timeout_s is None or 5 <= binding.timeout_s <= 120:
        return []
    return [FieldError("timeout", "must be 5 to 120 seconds")]
