"""
Common grammar of header fields: tokens, quoted strings, lists, parameters.

Parsing tolerates white space and characters that RFC 3261 wants escaped, where
the text has one reading only; writing follows the grammar.

Source: RFC 3261 25.1.
"""

from __future__ import annotations

import re

from sip.errors import InvalidValue, ParseError

Params = tuple[tuple[str, str | None], ...]
"""Parameters in order: lower-case name and value, None where only a name was given."""

WHITE_SPACE = " \t"

_TOKEN = re.compile(r"[A-Za-z0-9\-.!%*_+`'~]+")
_VALUE = re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"|[^\x00-\x20\x7f;,"<>]*')
# Parameters in the form of nearly all peers, checked in one match.
_PLAIN_PARAMS = re.compile(r"(?:;[A-Za-z0-9\-.!%*_+`'~]+(?:=[^\x00-\x20\x7f;,\"<>]*)?)+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CALL_ID = re.compile(r"[^\x00-\x20\x7f]+")
# Pieces of a list: a quoted string, an address in brackets, a separator, or other text. An unclosed quote or
# bracket takes the remaining text: searching for the end of each of many would take quadratic time.
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|<[^>]*(?:>|\Z)|[,;]|[^,;"<]+', re.DOTALL)


def is_token(text: str) -> bool:
    """Return True for a token, as method, header field and parameter names must be."""
    return _TOKEN.fullmatch(text) is not None


def is_call_id(text: str) -> bool:
    """Return True for any text without spaces and control characters: peers use more than RFC 3261 allows."""
    return _CALL_ID.fullmatch(text) is not None


def quote(text: str) -> str:
    """Return the text as a quoted string, without control characters, which no peer needs."""
    return '"' + without_controls(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquote(text: str) -> str:
    """Return the content of a quoted string, unescaped and without control characters."""
    content = text[1:-1]
    if "\\" in content:
        content = re.sub(r"\\(.)", r"\1", content, flags=re.DOTALL)
    return without_controls(content)


def without_controls(text: str) -> str:
    """Return the text without control characters, which peers may send but must not be stored."""
    return _CONTROL.sub("", text)


def parse_number(text: str, most_digits: int = 9) -> int | None:
    """Return the value of a text of decimal digits; None for any other text and for too many digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None


def split_list(text: str, separator: str = ",") -> list[str]:
    """
    Split a list into its elements, trimmed and without empty ones.

    Separators inside quoted strings and angle brackets do not count.
    """
    parts = split_verbatim(text, separator)
    return [element for part in parts if (element := part.strip(WHITE_SPACE))]


def split_verbatim(text: str, separator: str) -> list[str]:
    """Split as `split_list` does, into parts as written, also empty ones: joined they are the text again."""
    if '"' not in text and "<" not in text:
        return text.split(separator)
    parts: list[str] = []
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        if piece == separator:
            parts.append("".join(pieces))
            pieces.clear()
        else:
            pieces.append(piece)
    parts.append("".join(pieces))
    return parts


def parse_params(text: str) -> Params:
    """
    Parse ``;name=value;name`` with its leading semicolon; empty text gives no parameters.

    Names are returned in lower case, values as sent, quotes included.

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
            continue  # Two semicolons in a row, or the leading one.
        value = value.strip(WHITE_SPACE)
        if not is_token(name) or not _VALUE.fullmatch(value):
            raise ParseError("Malformed parameter")
        params.append((name, value if equals else None))
    return tuple(params)


def format_params(params: Params) -> str:
    """Format the parameters as ``;name=value;name``."""
    return "".join([f";{name}" if value is None else f";{name}={value}" for name, value in params])


def find_param(params: Params, name: str) -> str | None:
    """Return the value of the first parameter of a lower-case name; "" when bare, None when absent."""
    for key, value in params:
        if key == name:
            return "" if value is None else value
    return None


def check_params(params: Params) -> None:
    """
    Reject parameters that would parse back differently.

    Raises:
        InvalidValue: A name is not a token, or a value is neither a quoted
            string nor free of separators.
    """
    for name, value in params:
        if not is_token(name) or (value is not None and not _VALUE.fullmatch(value)):
            raise InvalidValue("A parameter needs a token as name and a token or quoted string as value")
