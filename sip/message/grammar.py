"""
The small grammar that header fields share: tokens, quoted strings, lists, parameters.

Reading is tolerant of white space and of characters RFC 3261 would have escaped
where no second reading exists; writing follows the grammar.

Source: RFC 3261 25.1.
"""

from __future__ import annotations

import ipaddress
import re

from sip.errors import InvalidValue, ParseError

__all__ = [
    "Params",
    "check_params",
    "find_param",
    "format_params",
    "is_host",
    "is_token",
    "parse_params",
    "quote",
    "split_list",
    "unquote",
    "without_controls",
]

Params = tuple[tuple[str, str | None], ...]
"""Parameters in order: lower-case name and value, None where only a name was given."""

WHITE_SPACE = " \t"

_TOKEN = re.compile(r"[A-Za-z0-9\-.!%*_+`'~]+")
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
_VALUE = re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"|[^\x00-\x20\x7f;,"<>]*')
# Parameters as nearly all peers write them, checked in one go.
_PLAIN_PARAMS = re.compile(r"(?:;[A-Za-z0-9\-.!%*_+`'~]+(?:=[^\x00-\x20\x7f;,\"<>]*)?)+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Pieces of a list: a quoted string, an address in brackets, a separator, or anything else. A quote or bracket
# that is never closed takes all the rest: to look for its end from each of many would take for ever.
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|<[^>]*(?:>|\Z)|[,;]|[^,;"<]+', re.DOTALL)


def is_token(text: str) -> bool:
    """Whether the text is a token, as method, header field and parameter names must be."""
    return _TOKEN.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """
    Whether the text is a host name or an IP address, the latter without brackets.

    Underscores are let through: they are common in the names of private exchanges.
    """
    if ":" not in text:
        return _HOST_NAME.fullmatch(text) is not None
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text  # A zone has no meaning on another machine.


def quote(text: str) -> str:
    """The text as a quoted string; control characters, which no peer needs, are left out."""
    return '"' + without_controls(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquote(text: str) -> str:
    """The content of a quoted string, without its escapes and without control characters."""
    content = text[1:-1]
    if "\\" in content:
        content = re.sub(r"\\(.)", r"\1", content, flags=re.DOTALL)
    return without_controls(content)


def without_controls(text: str) -> str:
    """The text without control characters, which peers may send but nobody wants stored."""
    return _CONTROL.sub("", text)


def split_list(text: str, separator: str = ",") -> list[str]:
    """
    The elements of a list, trimmed; empty ones are dropped.

    Separators inside quoted strings and angle brackets do not count.
    """
    if '"' not in text and "<" not in text:
        return [element for part in text.split(separator) if (element := part.strip(WHITE_SPACE))]
    elements: list[str] = []
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        if piece == separator:
            elements.append("".join(pieces).strip(WHITE_SPACE))
            pieces.clear()
        else:
            pieces.append(piece)
    elements.append("".join(pieces).strip(WHITE_SPACE))
    return [element for element in elements if element]


def parse_params(text: str) -> Params:
    """
    Read ``;name=value;name`` with its leading semicolon; empty text gives no parameters.

    Names come back in lower case, values as they were sent, quotes included.

    Raises:
        ParseError: A name is not a token, a value holds a character that would
            end it elsewhere, or the text does not begin with a semicolon.
    """
    if not text:
        return ()
    if _PLAIN_PARAMS.fullmatch(text):
        pairs = [part.partition("=") for part in text[1:].split(";")]
        return tuple([(name.lower(), value if equals else None) for name, equals, value in pairs])
    if text[0] != ";":
        raise ParseError("Unexpected text")
    parts = text.split(";") if '"' not in text else split_list(text, ";")
    params: list[tuple[str, str | None]] = []
    for part in parts:
        name, equals, value = part.partition("=")
        name = name.strip(WHITE_SPACE).lower()
        if not name and not equals:
            continue  # Two semicolons in a row, or the one that leads.
        value = value.strip(WHITE_SPACE)
        if not is_token(name) or not _VALUE.fullmatch(value):
            raise ParseError("Malformed parameter")
        params.append((name, value if equals else None))
    return tuple(params)


def format_params(params: Params) -> str:
    """The parameters as ``;name=value;name``."""
    return "".join([f";{name}" if value is None else f";{name}={value}" for name, value in params])


def find_param(params: Params, name: str) -> str | None:
    """The value of the first parameter of that lower-case name; "" for a bare name, None for none."""
    for key, value in params:
        if key == name:
            return "" if value is None else value
    return None


def check_params(params: Params) -> None:
    """
    Refuse parameters that would read back as something else.

    Raises:
        InvalidValue: A name is not a token, or a value is neither a quoted
            string nor free of separators.
    """
    for name, value in params:
        if not is_token(name) or (value is not None and not _VALUE.fullmatch(value)):
            raise InvalidValue("A parameter needs a token as name and a token or quoted string as value")
