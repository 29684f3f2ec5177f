"""
Applications: named instructions for calls, shared by any number of numbers and calls.

An application is a binding that belongs to no number. Inbound calls to a number use the number's own binding;
without one the number's application, and without that the application of the number's carrier. Outbound calls
name one by ``app_sid``.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final

from callcontrol.errors import BindFailed, FieldError, ValidationFailed
from callcontrol.models import Application, Binding
from callcontrol.numbers.binding import check_binding

MAX_NAME_CHARACTERS: Final = 128

_OWN_FIELDS: Final = frozenset({"name", "record_all_calls"})
_BINDING_FIELDS: Final = frozenset(item.name for item in fields(Binding)) - {"record"}
# Fields that do not depend on the target, and so outlive a change of it.
_KEPT_FIELDS: Final = (
    *("status_webhook_url", "status_webhook_events"),
    *("transcribe", "transcription_language"),
)


def new_application(app_sid: str, account_sid: str, values: Mapping[str, Any], now: datetime) -> Application:
    """
    An application with the given fields: its own and those of a ``Binding``.

    Raises:
        ValidationFailed: Names every wrong, missing or unknown field.
    """
    missing = [FieldError(name, "is needed") for name in ("name", "target") if not values.get(name)]
    if missing:
        raise ValidationFailed(missing + _unknown(values))
    return _checked(
        Application(
            app_sid=app_sid,
            account_sid=account_sid,
            name=values["name"],
            binding=_with(Binding(values["target"]), values),
            created_at=now,
            updated_at=now,
            record_all_calls=bool(values.get("record_all_calls", False)),
        ),
        values,
    )


def changed_application(application: Application, values: Mapping[str, Any], now: datetime) -> Application:
    """
    An application with the given fields changed; None removes a field.

    A new target drops the fields of the previous one.

    Raises:
        ValidationFailed: Names every wrong or unknown field.
    """
    binding = application.binding
    target = values.get("target", binding.target)
    if target != binding.target:
        binding = Binding(target, **{name: getattr(binding, name) for name in _KEPT_FIELDS})
    changed = replace(
        application,
        name=values.get("name", application.name),
        binding=_with(binding, values),
        record_all_calls=values.get("record_all_calls", application.record_all_calls),
        updated_at=now,
    )
    return _checked(changed, values)


def name_errors(name: object) -> list[FieldError]:
    """The error of a name that is none."""
    if isinstance(name, str) and 0 < len(name.strip()) <= MAX_NAME_CHARACTERS:
        return []
    return [FieldError("name", f"must be text of 1 to {MAX_NAME_CHARACTERS} characters")]


def _with(binding: Binding, values: Mapping[str, Any]) -> Binding:
    return replace(binding, **{name: values[name] for name in values if name in _BINDING_FIELDS})


def _checked(application: Application, values: Mapping[str, Any]) -> Application:
    errors = _unknown(values) + name_errors(application.name)
    try:
        binding = check_binding(application.binding)
    except BindFailed as refusal:
        errors += refusal.errors
    if errors:
        raise ValidationFailed(errors)
    # Recording is a setting of the application, so the binding must not have its own.
    return replace(application, binding=replace(binding, record=None))


def _unknown(values: Mapping[str, Any]) -> list[FieldError]:
    known = _OWN_FIELDS | _BINDING_FIELDS
    return [FieldError(name, "is not a field") for name in values if name not in known]
