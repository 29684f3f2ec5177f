"""Rules of every text, which no schema can say once for all, for the requests that schemathesis generates."""

from __future__ import annotations

import re
from typing import Any

import schemathesis

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _is_printable(value: Any) -> bool:
    if isinstance(value, str):
        return _CONTROLS.search(value) is None
    if isinstance(value, dict):
        return all(_is_printable(part) for pair in value.items() for part in pair)
    return not isinstance(value, list) or all(map(_is_printable, value))


@schemathesis.hook
def filter_body(_: schemathesis.HookContext, body: Any) -> bool:
    """Leave out bodies with control characters, which are refused."""
    return _is_printable(body)


@schemathesis.hook
def filter_query(_: schemathesis.HookContext, query: Any) -> bool:
    """Leave out queries with control characters, which are refused."""
    return _is_printable(query)
