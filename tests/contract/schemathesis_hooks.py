"""Rules of every text, which no schema can say once for all, for the requests that schemathesis generates."""

from __future__ import annotations

import re
from typing import Any

import schemathesis

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _printable(value: Any) -> Any:
    # One for one, as a text may have a shortest length.
    if isinstance(value, str):
        return _CONTROLS.sub("x", value)
    if isinstance(value, dict):
        return {_printable(name): _printable(part) for name, part in value.items()}
    return [_printable(part) for part in value] if isinstance(value, list) else value


@schemathesis.hook
def map_body(_: schemathesis.HookContext, body: Any) -> Any:
    """Replace control characters, which are refused."""
    return _printable(body)


@schemathesis.hook
def map_query(_: schemathesis.HookContext, query: Any) -> Any:
    """Replace control characters, which are refused."""
    return _printable(query)
