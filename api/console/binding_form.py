"""
Form that binds the inbound calls of a number, on the page of the number.

It has every target of the API and the fields of each. The description of a vendor's model is an object there,
and a field for each part of it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from api.console.operations import typed
from api.schemas.model import ModelFields
from api.schemas.numbers import InboundBinding
from callcontrol.errors import BindFailed, DomainError, FieldError, ValidationFailed
from callcontrol.numbers.binding import (
    ENCODINGS,
    PROMPT_LANGUAGES,
    SAMPLE_RATES,
    STREAM_PROTOCOLS,
    TARGETS,
    fields_of,
)
from media.streams.speech_models import PROVIDERS

__all__ = ["AREAS", "FIELDS", "beside_fields", "binding_of", "choices", "targets_by_field"]

_MODEL: Final = "model"
_PREFIX: Final = f"{_MODEL}_"

FIELDS: Final = (
    *("target", "stream_url", "stream_protocol", "encoding", "sample_rate", "stream_track"),
    *("stream_max_retries", "custom_parameters", "stream_auth"),
    *(f"{_PREFIX}{name}" for name in ModelFields.model_fields),
    *("agent_id", "workspace_id", "webhook_url", "webhook_method", "webhook_format"),
    *("forward_to", "identity", "caller_id", "timeout", "language", "fallback_url"),
    *("record", "transcribe", "transcription_language"),
    *("status_webhook_url", "status_webhook_events", "force"),
)
"""Fields of the form, in order."""
AREAS: Final = ("custom_parameters", "stream_auth", f"{_PREFIX}instructions")
"""Fields of several lines."""


def targets_by_field() -> Mapping[str, str]:
    """Targets that take a field, as words; the fields of every target are not there."""
    found: dict[str, list[str]] = {}
    for target in TARGETS:
        for name in fields_of(target):
            parts = ModelFields.model_fields if name == _MODEL else ()
            for field in [f"{_PREFIX}{part}" for part in parts] or [name]:
                found.setdefault(field, []).append(target)
    return {name: " ".join(targets) for name, targets in found.items() if len(targets) < len(TARGETS)}


def choices(
    texts: Mapping[str, Any], agents: Sequence[tuple[str, str]], yes: str, no: str
) -> dict[str, Sequence[tuple[str, str]]]:
    """Values of fields to choose from, with their labels; `agents` are those of the account, if any."""
    none = ("", "\N{EN DASH}")
    optional = [none, ("true", yes), ("false", no)]
    named = {
        "stream_protocol": STREAM_PROTOCOLS,
        "encoding": ENCODINGS,
        "sample_rate": [str(rate) for rate in SAMPLE_RATES],
        "stream_track": ("inbound", "both"),
        f"{_PREFIX}provider": PROVIDERS,
        "webhook_method": ("POST", "GET"),
        "webhook_format": ("json", "form", "jambonz"),
        "language": PROMPT_LANGUAGES,
    }
    found: dict[str, Sequence[tuple[str, str]]] = {
        "target": [(target, texts["targets"][target]) for target in TARGETS],
        "record": optional,
        "transcribe": optional,
        "force": [("", no), ("true", yes)],
        **{name: [none, *((value, value) for value in values)] for name, values in named.items()},
    }
    return {**found, "agent_id": [none, *agents]} if agents else found


def binding_of(form: Mapping[str, str], account_sid: str) -> dict[str, Any]:
    """Body of the request that a form makes."""
    body = typed(InboundBinding, {name: value for name, value in form.items() if name != _MODEL})
    if body.get("target") == "voice_agent":
        # An agent is in the workspace of its account, unless it says another.
        body.setdefault("workspace_id", account_sid)
    named = {name.removeprefix(_PREFIX): form[name] for name in form if name.startswith(_PREFIX)}
    model = typed(ModelFields, named)
    return {**body, _MODEL: model} if model else body


def beside_fields(refusal: DomainError) -> DomainError:
    """Return the refusal with the fields that the form has for the parts of a model."""
    if not isinstance(refusal, (BindFailed, ValidationFailed)):
        return refusal
    # Without any part of it there is no model; the first part says so.
    renamed = [replace(error, field=_field_of(error)) for error in refusal.errors]
    return type(refusal)(renamed, refusal.message)


def _field_of(error: FieldError) -> str:
    if error.field == _MODEL:
        return f"{_PREFIX}provider"
    return (
        error.field.replace(f"{_MODEL}.", _PREFIX, 1) if error.field.startswith(f"{_MODEL}.") else error.field
    )
