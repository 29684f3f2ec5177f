"""
The Replaces header field: identifies the dialog that a new one replaces.

Source: RFC 3891.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from sip.errors import ParseError
from sip.message.encoding import to_bytes, to_text
from sip.message.grammar import WHITE_SPACE, find_param, is_call_id, is_token, parse_params
from sip.message.message import Request
from sip.session.model import State

MAX_URI_HEADERS = 32
"""Limit of header fields in a URI; a URI with more is not meant to be called."""

_HVALUE_SAFE = "-_.!~*'()[]/?:+$"  # beside letters and digits (RFC 3261 25.1, hvalue)


@dataclass(frozen=True, slots=True)
class Replaces:
    """
    Identity of a dialog, from the view of the peer that replaces it.

    ``to_tag`` is the tag of the user agent that receives the INVITE with this value, ``from_tag`` that of the
    other side of the dialog. With ``early_only`` an answered dialog is not replaced.

    Source: RFC 3891 6.1.
    """

    call_id: str
    to_tag: str
    from_tag: str
    early_only: bool = False

    @classmethod
    def parse(cls, text: str) -> Replaces:
        """
        Parse a Replaces value.

        Raises:
            ParseError: It is malformed, or does not have exactly one tag of each side.
        """
        call_id, semicolon, rest = text.strip(WHITE_SPACE).partition(";")
        call_id = call_id.strip(WHITE_SPACE)
        if not is_call_id(call_id) or "," in call_id:
            raise ParseError("Malformed Call-ID in Replaces")
        params = parse_params(semicolon + rest)
        names = [name for name, _ in params]
        to_tag, from_tag = find_param(params, "to-tag"), find_param(params, "from-tag")
        if not to_tag or not from_tag or names.count("to-tag") > 1 or names.count("from-tag") > 1:
            raise ParseError("Replaces needs one to-tag and one from-tag")
        if not is_token(to_tag) or not is_token(from_tag):
            raise ParseError("Malformed tag in Replaces")
        return cls(call_id, to_tag, from_tag, "early-only" in names)

    def __str__(self) -> str:
        early = ";early-only" if self.early_only else ""
        return f"{self.call_id};to-tag={self.to_tag};from-tag={self.from_tag}{early}"

    def in_uri(self) -> str:
        """Return the value as an escaped header field of a URI."""
        return "Replaces=" + quote(to_bytes(str(self)), safe=_HVALUE_SAFE)


def uri_headers(text: str | None) -> Sequence[tuple[str, str]]:
    """
    Parse the header fields of a URI, the text after its question mark, and undo their escapes.

    Raises:
        ParseError: There are too many, a name is no token, or a value holds control characters.

    Source: RFC 3261 19.1.1.
    """
    if not text:
        return ()
    parts = text.split("&")
    if len(parts) > MAX_URI_HEADERS:
        raise ParseError("Too many header fields in a URI")
    fields: list[tuple[str, str]] = []
    for part in parts:
        name, _, value = part.partition("=")
        field = (_unescaped(name), _unescaped(value))
        # An escaped line end would inject a header field of the peer into our message.
        if not is_token(field[0]) or any(character < " " or character == "\x7f" for character in field[1]):
            raise ParseError("Malformed header field in a URI")
        fields.append(field)
    return fields


def _unescaped(text: str) -> str:
    return to_text(unquote_to_bytes(to_bytes(text)))


def replaces_of(request: Request) -> Replaces:
    """
    Return the dialog that an INVITE with a Replaces header field asks to replace.

    Raises:
        ParseError: The value is malformed, or there is more than one.

    Source: RFC 3891 3.
    """
    values = request.headers.get_all("Replaces")
    if len(values) > 1:
        raise ParseError("More than one Replaces header field")
    return Replaces.parse(values[0] if values else "")


def reject_status(wanted: Replaces, state: State, *, called_by_us: bool) -> int | None:
    """
    Return the status that refuses to replace a matching dialog, None when it may be replaced.

    A dialog that has ended or is cancelled gets 603, an early one that we did not initiate 481, and an
    answered one with early-only 486.

    Source: RFC 3891 3.
    """
    if state >= State.BYE_PENDING_ACK or state is State.CANCELLING:
        return 603
    if state <= State.EARLY:
        return None if called_by_us else 481
    return 486 if wanted.early_only else None
