"""
Names and types of documented fields.

A shape is a type, one of the checks below, a literal value, a tuple of alternatives, a list with the shape of
its items, or a dictionary of required fields: further fields may be there.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

from tests.acceptance.clients.http import Reply

__all__ = [
    "assert_fits",
    "assert_masking_error",
    "assert_messaging_error",
    "assert_plain_error",
    "assert_platform_error",
    "count",
    "e164",
    "moment",
    "named_fields",
    "number",
    "uuid_text",
]

_E164: Final = re.compile(r"\+[1-9]\d{7,14}")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def uuid_text(value: object) -> bool:
    """A UUID."""
    try:
        return isinstance(value, str) and str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


def e164(value: object) -> bool:
    """A number in E.164, with its plus."""
    return isinstance(value, str) and _E164.fullmatch(value) is not None


def moment(value: object) -> bool:
    """A time: RFC 3339 in UTC."""
    return isinstance(value, str) and _MOMENT.fullmatch(value) is not None


def number(value: object) -> bool:
    """An integer or a fraction."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def count(value: object) -> bool:
    """An integer from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def assert_fits(value: Any, shape: Any, at: str = "body") -> None:
    """Require that a value has a shape; the message names the place where it has not."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), f"{at} is no object: {value!r}"
        for name, inner in shape.items():
            assert name in value, f"{at} lacks {name}: {sorted(value)}"
            assert_fits(value[name], inner, f"{at}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{at} is no list: {value!r}"
        for index, item in enumerate(value):
            assert_fits(item, shape[0], f"{at}[{index}]")
    else:
        assert _is(value, shape), f"{at} is {value!r}, not {_name(shape)}"


def _is(value: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_is(value, one) for one in shape)
    if isinstance(shape, dict | list):
        try:
            assert_fits(value, shape)
        except AssertionError:
            return False
        return True
    if isinstance(shape, type):
        return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
    if callable(shape):
        return bool(shape(value))
    return bool(value == shape) and isinstance(value, bool) == isinstance(shape, bool)


def _name(shape: Any) -> str:
    if isinstance(shape, tuple):
        return " or ".join(map(_name, shape))
    return str(getattr(shape, "__name__", repr(shape)))


def assert_platform_error(reply: Reply, status: int, code: str, *fields: str) -> dict[str, Any]:
    """Require an error of the platform: `error` with `code` and `message`, and every wrong field by name."""
    error = reply.expect(status).body["error"]
    assert_fits(error, {"code": code, "message": str}, "error")
    assert error["message"]
    if fields:
        assert_fits(error, {"details": {"errors": [{"field": str, "message": str}]}}, "error")
        assert set(fields) == set(named_fields(error)), error
    found: dict[str, Any] = error
    return found


def named_fields(error: dict[str, Any]) -> list[str]:
    """Fields that an error names."""
    return [str(found["field"]) for found in error["details"]["errors"]]


def assert_masking_error(reply: Reply, status: int, code: str, *fields: str) -> dict[str, Any]:
    """Require an error of number masking: the same, with codes in lower case."""
    assert code == code.lower()
    return assert_platform_error(reply, status, code, *fields)


def assert_plain_error(reply: Reply, status: int) -> str:
    """Require an error of webhook subscriptions: a text."""
    body = reply.expect(status).body
    assert_fits(body, {"error": str})
    assert body["error"]
    return str(body["error"])


def assert_messaging_error(
    reply: Reply, status: int, code: str | None = None, *fields: str
) -> dict[str, Any]:
    """Require an error of messaging: `success` false, and three texts."""
    body = reply.expect(status).body
    assert_fits(
        body, {"success": False, "error": str, "code": code if code is not None else str, "message": str}
    )
    if fields:
        assert set(fields) == set(named_fields(body)), body
    found: dict[str, Any] = body
    return found
