"""Strict parser of JSON request bodies: input that two parsers could read differently is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from callcontrol.errors import ValidationFailed

__all__ = ["parse_json"]

BODY = "body"
_MAX_DEPTH = 32


def parse_json(data: bytes) -> Any:
    """
    Parse a request body.

    Raises:
        ValidationFailed: It is not JSON in UTF-8, repeats a key, is nested more than 32 deep, or holds a
            number or a character that JSON text cannot carry safely (NaN, a lone surrogate, NUL).
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_number)
    except UnicodeDecodeError:
        raise ValidationFailed.of(BODY, "must be JSON in UTF-8") from None
    except RecursionError:
        raise ValidationFailed.of(BODY, f"must not be nested more than {_MAX_DEPTH} deep") from None
    except ValueError as error:
        # json's own message has line and column; our messages are complete already.
        raise ValidationFailed.of(BODY, f"must be JSON: {error}") from None
    _check(value, 1)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("an object repeats a key")
    return table


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _number(text: str) -> float | int:
    """Parse a number; 5.0 and 5e2 become integers (JSON Schema 6.1.1)."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    # Beyond 2**53 a float stands for many integers, so the intended one is unknown.
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number


def _check(value: Any, depth: int) -> None:
    """Refuse values that would fail later, in the database or while writing the response."""
    if depth > _MAX_DEPTH:
        raise ValidationFailed.of(BODY, f"must not be nested more than {_MAX_DEPTH} deep")
    if isinstance(value, str):
        # PostgreSQL stores no NUL, and UTF-8 has no surrogates.
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise ValidationFailed.of(BODY, "must not contain NUL or lone surrogate characters")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check(key, depth)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
