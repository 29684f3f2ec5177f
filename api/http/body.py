"""Request bodies: limits while reading, and strict parsers of JSON and of forms."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

from aiohttp import web

from api.http.errors import ApiError
from callcontrol.errors import FieldError, ValidationFailed

__all__ = [
    "FORM",
    "JSON",
    "MAX_BODY_BYTES",
    "SERVER_OPTIONS",
    "UNSTORABLE",
    "TextForm",
    "parse_form",
    "parse_json",
    "read_body",
    "too_large",
]

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
MAX_BODY_BYTES = 1024 * 1024
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that a database cannot store: PostgreSQL has no NUL, and UTF-8 no surrogates."""

SERVER_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({"auto_decompress": False})
"""Options of every connection's protocol: it leaves bodies encoded, as `read_body` decodes them."""

_BODY = "body"
_CODINGS: Final = ("gzip", "deflate")
_BODY_TIMEOUT_S = 15.0
_MAX_DEPTH = 32
_MAX_FIELDS = 100
_MAX_NAME_CHARS = 100
_MOST_NAMED: Final = 100
_NO_NUL: Final = "must not contain NUL or lone surrogate characters"


async def read_body(request: web.Request, media_types: Collection[str], *, expected: bool = True) -> bytes:
    """
    Read the body of a request; empty for GET and HEAD.

    A body of another type is refused, unless there are no types; an empty one may be of any. It may be
    encoded with gzip or deflate. Without `expected` the refusal says that no body is taken.

    Raises:
        ApiError: It is too large, arrives too slowly or incompletely, or is of another type or encoding.
        ValidationFailed: It is not encoded as its header says.
    """
    if request.method in ("GET", "HEAD") or not request.can_read_body:
        return b""
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise too_large()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            raw = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large() from None
    except TimeoutError:
        raise ApiError(408, "REQUEST_TIMEOUT", "The body did not arrive in time; send it again.") from None
    except ConnectionError:
        # The client disconnected: not a server fault to log, and nobody reads the response.
        message = "The body did not arrive whole; send it again."
        raise ApiError(408, "REQUEST_TIMEOUT", message) from None
    except web.RequestPayloadError:
        raise ValidationFailed.of(_BODY, "must be sent as its Transfer-Encoding says") from None
    raw = _decoded(raw, ",".join(request.headers.getall("Content-Encoding", [])).strip().lower())
    if raw and media_types and request.content_type not in media_types:
        if not expected:
            raise ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "This request takes no body; send it without one.")
        kind, first = ("a form or JSON", FORM) if FORM in media_types else ("JSON", JSON)
        others = "".join(f" or {one}" for one in media_types if one not in (FORM, JSON))
        message = f"The body must be {kind}{others}; send the header Content-Type: {first}{others}."
        raise ApiError(415, "UNSUPPORTED_MEDIA_TYPE", message)
    return raw


def _decoded(raw: bytes, coding: str) -> bytes:
    """
    Undo the content coding of a body (RFC 9110 8.4).

    The library would do this before anybody asks for the body, so that a stranger's garbage costs time and a
    traceback, and takes a truncated body for a whole one.
    """
    if coding in ("", "identity") or not raw:
        return raw
    if coding.removeprefix("x-") not in _CODINGS:
        offered = ", ".join(_CODINGS)
        message = f"The Content-Encoding must be one of {offered}, or absent."
        raise ApiError(415, "UNSUPPORTED_MEDIA_TYPE", message, headers={"Accept-Encoding": offered})
    if coding == "deflate":
        # Some clients send deflate without the header of zlib.
        window = zlib.MAX_WBITS if raw[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS
    else:
        window = zlib.MAX_WBITS | 16
    decoder = zlib.decompressobj(window)
    try:
        plain = decoder.decompress(raw, MAX_BODY_BYTES + 1)
    except zlib.error:
        raise _not_as_encoded() from None
    if len(plain) > MAX_BODY_BYTES:
        raise too_large()
    if not decoder.eof or decoder.unused_data:
        raise _not_as_encoded()
    return plain


def _not_as_encoded() -> ValidationFailed:
    return ValidationFailed.of(_BODY, "must be encoded as its Content-Encoding says")


@dataclass(frozen=True, slots=True)
class TextForm:
    """
    Second form of a body: a text as one of its fields, with the other fields in the query.

    Query parameters that begin with `prefix`, in any case, are the entries of the field `table`; without a
    prefix there is no such field. The response is the same field of ``data``, as text of the same type.
    """

    media_type: str
    field: str
    table: str = ""
    prefix: str = ""

    def parse(self, raw: bytes, query: Iterable[tuple[str, str]], known: Collection[str]) -> dict[str, Any]:
        """
        Return the fields of a request; of the query, those that are `known` or entries of the table.

        Raises:
            ValidationFailed: The text is not UTF-8, something holds NUL, or an entry is given more than once.
        """
        fields: dict[str, Any] = {}
        table: dict[str, str] = {}
        for name, value in query:
            is_entry = bool(self.prefix) and name[: len(self.prefix)].lower() == self.prefix.lower()
            if not is_entry and name not in known:
                continue
            if UNSTORABLE.search(name + value):
                field = "query" if UNSTORABLE.search(name) else name[:_MAX_NAME_CHARS]
                raise ValidationFailed.of(field, "must not contain NUL")
            into, key = (table, name[len(self.prefix) :]) if is_entry else (fields, name)
            if key in into:
                raise ValidationFailed.of(name[:_MAX_NAME_CHARS], "is given more than once")
            into[key] = value
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ValidationFailed.of(self.field, "must be text in UTF-8") from None
        if "\0" in text:
            raise ValidationFailed.of(self.field, "must not contain NUL")
        return fields | ({self.field: text} if text else {}) | ({self.table: table} if table else {})

    def named(self, refusal: ValidationFailed) -> ValidationFailed:
        """Return a refusal that names entries of the table as the query does."""
        if not self.prefix:
            return refusal
        inside = f"{self.table}."
        return ValidationFailed(
            [
                FieldError(self.prefix + error.field.removeprefix(inside), error.message)
                if error.field.startswith(inside)
                else error
                for error in refusal.errors
            ]
        )


def too_large() -> ApiError:
    """Make the response to a body above the limit."""
    return ApiError(413, "PAYLOAD_TOO_LARGE", f"The body must not exceed {MAX_BODY_BYTES} bytes.")


def parse_json(data: bytes) -> Any:
    """
    Parse a JSON body; input that two parsers could read differently is refused.

    Raises:
        ValidationFailed: It is not JSON in UTF-8, repeats a key, is nested more than 32 deep, or holds a
            number or a character that JSON text cannot carry safely (NaN, a lone surrogate, NUL).
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_number)
    except UnicodeDecodeError:
        raise ValidationFailed.of(_BODY, "must be JSON in UTF-8") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        # json's own message has line and column; our messages are complete already.
        raise ValidationFailed.of(_BODY, f"must be JSON: {error}") from None
    _check(value)
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


def _check(value: Any) -> None:
    """Refuse values that would fail later, in the database or while writing the response."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if UNSTORABLE.search(item):
                    named = islice(_unstorable(value, _MAX_DEPTH), _MOST_NAMED)
                    raise ValidationFailed([FieldError(field, _NO_NUL) for field in named])
            elif isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise _too_deep()


def _unstorable(value: Any, depth: int, path: str = "") -> Iterator[str]:
    """Fields that hold what a database cannot store; an object stands for an entry with such a name."""
    if depth < 0:
        return
    if isinstance(value, str) and UNSTORABLE.search(value):
        yield path or _BODY
    elif isinstance(value, list):
        for number, item in enumerate(value):
            # Numbers, of which a body may have half a million, have no path made.
            if isinstance(item, (str, list, dict)):
                yield from _unstorable(item, depth - 1, f"{path or _BODY}[{number}]")
    elif isinstance(value, dict):
        if any(map(UNSTORABLE.search, value)):
            yield path or _BODY
        for name, item in value.items():
            if not UNSTORABLE.search(name):
                shown = name if len(name) <= _MAX_NAME_CHARS else name[:_MAX_NAME_CHARS] + "..."
                yield from _unstorable(item, depth - 1, f"{path}.{shown}" if path else shown)


def _too_deep() -> ValidationFailed:
    return ValidationFailed.of(_BODY, f"must not be nested more than {_MAX_DEPTH} deep")


def parse_form(data: bytes, repeatable: Collection[str] = ()) -> dict[str, str | list[str]]:
    """
    Parse a form body, for clients of interfaces without JSON; a `repeatable` field has a list of values.

    Raises:
        ValidationFailed: It is not a form in UTF-8, has more than 100 fields, repeats one, or holds NUL.
    """
    try:
        text = data.decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        message = f"must be a form in UTF-8 of at most {_MAX_FIELDS} fields, such as Status=completed"
        raise ValidationFailed.of(_BODY, message) from None
    names = [name for name, _ in pairs]
    repeated = [name for name in dict.fromkeys(names) if name not in repeatable and names.count(name) > 1]
    if repeated:
        raise ValidationFailed([FieldError(name[:100], "is given more than once") for name in repeated])
    unstorable = dict.fromkeys(
        _BODY if "\0" in name else name for name, value in pairs if "\0" in name + value
    )
    if unstorable:
        raise ValidationFailed([FieldError(name[:100], "must not contain NUL") for name in unstorable])
    fields: dict[str, str | list[str]] = {name: value for name, value in pairs if name not in repeatable}
    several = {name: [value for of, value in pairs if of == name] for name in names if name in repeatable}
    return {**fields, **several}
