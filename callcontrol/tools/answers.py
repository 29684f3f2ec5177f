"""Reading of answers of tool servers: JSON or text, without values that could do harm further on."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn
from urllib.parse import urlencode, urlsplit, urlunsplit

from callcontrol.database.statements import clean

MAX_ANSWER_BYTES: Final = 256 * 1024
MAX_SHOWN_CHARS: Final = 1000
"""Characters of a refusal's body that are passed on to the user of the tool."""

_MAX_DEPTH: Final = 32
_JSON: Final = "application/json"


class AnswerUnreadable(Exception):
    """The answer is no result; the message is for people and models."""


def read_answer(media_type: str, body: bytes) -> Any:
    """
    The result in an answer: a JSON value, a text, or None for an empty one.

    Raises:
        AnswerUnreadable: It is neither JSON nor text, or its body does not match its media type.
    """
    if not body.strip():
        return None
    kind = media_type.lower()
    if kind == _JSON or kind.endswith("+json"):
        return _read_json(body)
    if kind.startswith("text/"):
        return clean(body.decode("utf-8", "replace"))
    raise AnswerUnreadable(f"the tool answered {kind[:100] or 'without a Content-Type'}, not JSON or text")


def shown(media_type: str, body: bytes) -> str | None:
    """The beginning of a refusal's body, if it is JSON or text; None otherwise."""
    kind = media_type.lower()
    if not body or not (kind == _JSON or kind.endswith("+json") or kind.startswith("text/")):
        return None
    return (clean(body.decode("utf-8", "replace")) or "")[:MAX_SHOWN_CHARS]


def queried(url: str, arguments: Mapping[str, Any]) -> str:
    """The URL with arguments added to its query: lists repeat their name, objects are JSON."""
    parts = urlsplit(url)
    pairs: list[tuple[str, str]] = []
    for name, value in arguments.items():
        pairs += [(name, _plain(item)) for item in (value if isinstance(value, list) else [value])]
    query = "&".join(part for part in (parts.query, urlencode(pairs)) if part)
    return urlunsplit(parts._replace(query=query, fragment=""))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_json(body: bytes) -> Any:
    try:
        answer = json.loads(body, parse_constant=_no_constant)
        return _stored(answer, 1)
    except (ValueError, RecursionError):
        raise AnswerUnreadable("the tool answered what is not JSON, though it says so") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _stored(value: Any, depth: int) -> Any:
    """The value with its text cleaned for storage; raises ValueError if it is nested too deep."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        # 1e999 is valid JSON, but not a number that could be passed on as JSON.
        raise ValueError("a number is too large")
    if isinstance(value, list):
        return [_stored(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(key): _stored(item, depth + 1) for key, item in value.items()}
    return value
