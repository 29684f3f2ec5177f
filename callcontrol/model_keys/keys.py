"""A stored key of a vendor: its fields, and their validation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from callcontrol.errors import FieldError, ValidationFailed
from media.streams.speech_models import KEY_NAME, MAX_KEY_CHARS, PROVIDERS

MAX_MODEL_KEYS: Final = 50
"""Keys that an account may store."""

_KEY: Final = re.compile(r"[!-~]+")
_FIELDS: Final = ("name", "provider", "api_key")


@dataclass(frozen=True, slots=True)
class ModelKey:
    """A vendor's key; ``name`` is unique in the account, ``secret`` the key itself."""

    key_id: str
    account_sid: str
    name: str
    provider: str
    created_at: datetime
    secret: str = field(repr=False)


def new_key(key_id: str, account_sid: str, values: Mapping[str, Any], now: datetime) -> ModelKey:
    """
    A key with the given fields.

    Raises:
        ValidationFailed: Names every wrong, missing or unknown field.
    """
    errors = [FieldError(name, "is not a field") for name in values if name not in _FIELDS]
    errors += [FieldError(name, "is required") for name in _FIELDS if values.get(name) is None]
    errors += value_errors(values)
    if errors:
        raise ValidationFailed(errors)
    return ModelKey(key_id, account_sid, values["name"], values["provider"], now, values["api_key"])


def value_errors(values: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the given fields, each by itself; None has none."""
    errors = []
    name, provider, api_key = (values.get(field) for field in _FIELDS)
    if name is not None and (not isinstance(name, str) or KEY_NAME.fullmatch(name) is None):
        errors.append(FieldError("name", "must have 1 to 64 letters, digits and . _ -"))
    if provider is not None and provider not in PROVIDERS:
        errors.append(FieldError("provider", f"must be one of {', '.join(PROVIDERS)}"))
    fits = isinstance(api_key, str) and len(api_key) <= MAX_KEY_CHARS and _KEY.fullmatch(api_key) is not None
    if api_key is not None and not fits:
        errors.append(FieldError("api_key", f"must be 1 to {MAX_KEY_CHARS} visible ASCII characters"))
    return errors
