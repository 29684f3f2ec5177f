"""
Parser of one message from the bytes of a datagram, or of a frame from a stream.

Strict where two readings are possible (lengths, repeated fields, bare CR),
tolerant where carriers are sloppy and the meaning is clear (bare LF, folded
lines, white space, compact names, unknown fields and parameters).

`sip._wire` parses messages in the common form and gives up at anything unusual;
this module parses those. Both return the same result for what both can parse.

Source: RFC 3261 7, 18.3, 25; RFC 4475 for the test cases.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sip.errors import ParseError
from sip.message.encoding import readable, to_bytes, to_text
from sip.message.fields import CSeq, NameAddr, Via
from sip.message.grammar import WHITE_SPACE, is_token, parse_number, split_list
from sip.message.message import KNOWN_NAMES, Entry, Headers, Message, Request, Response, identify
from sip.message.native import wire
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Size limits of one message; a larger message is refused.

    ``line_chars`` bounds a line as sent, ``value_chars`` a header field after
    joining its folded lines.
    """

    message_bytes: int = 65536
    header_count: int = 256
    line_chars: int = 4096
    value_chars: int = 8192


DEFAULT_LIMITS = Limits()

# Never starts within white space, so that a long run of it is scanned once, not from each position.
_FOLD = re.compile(r"(?<![ \t])[ \t]*(?:\n[ \t]+)+")
_STATUS = re.compile(r"[1-6][0-9]{2}")

SINGLE = frozenset(
    """
    call-id content-length content-type cseq event expires from max-forwards min-se rack refer-to
    replaces rseq session-expires to
    """.split()
)
"""Fields of which a second one would let two elements on the path read two different messages."""
# Address lists are stored one element per entry, since elements are added and removed singly.
_SPLIT = frozenset(("via", "route", "record-route", "contact", "path", "service-route"))


def parse_message(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Message:
    """
    Parse one message.

    Leading line ends are skipped; bytes after the declared body are dropped.

    Raises:
        ParseError: The message is not acceptable; ``error.answer`` is the
            response to send, if any.
    """
    return read_plain(data, limits) or parse_carefully(data, limits)


def parse_carefully(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Message:
    """Parse one message, also an unusual one; as `parse_message`, without the native parser."""
    if len(data) > limits.message_bytes:
        raise ParseError("Message too large", limits.message_bytes, status=513)
    start = len(data) - len(data.lstrip(b"\r\n"))
    body = find_body(data, start)
    head = to_text(data[start : len(data) if body is None else body])
    try:
        if body is None:
            raise ParseError("No empty line after the header fields", len(data))
        lines = _split_lines(head, limits)
        headers = _parse_headers(lines)
        message = _parse_start_line(lines[0], headers)
        _check_mandatory(message)
        message.body = _cut_body(data, body, headers)
    except ParseError as error:
        if error.near:
            error.offset = max(0, data.find(to_bytes(error.near), start))
        error.answer = _answer(head, error)
        raise
    return message


def find_body(data: bytes | bytearray, start: int = 0) -> int | None:
    """Return the offset after the empty line that ends the header fields, None without one."""
    with_cr = data.find(b"\n\r\n", start)
    # The earliest empty line counts, otherwise a body could pass for header fields.
    without_cr = data.find(b"\n\n", start, with_cr + 1 if with_cr >= 0 else len(data))
    if without_cr >= 0:
        return without_cr + 2
    return with_cr + 3 if with_cr >= 0 else None


def _split_lines(head: str, limits: Limits) -> list[str]:
    """Return the start line and the unfolded header lines, after checking their length."""
    head = head.replace("\r\n", "\n")
    if "\r" in head:
        raise ParseError("Bare CR in the header fields", near="\r")
    if len(head) > limits.line_chars and max(map(len, head.split("\n"))) > limits.line_chars:
        raise ParseError("Line too long", limits.line_chars)
    if "\n " in head or "\n\t" in head:
        head = _FOLD.sub(" ", head)
    lines = head.rstrip("\n").split("\n")
    if len(lines) > limits.header_count + 1:
        raise ParseError("Too many header fields")
    if len(head) > limits.value_chars and max(map(len, lines)) > limits.value_chars:
        raise ParseError("Header field too long", limits.value_chars)
    return lines


def _parse_headers(lines: list[str]) -> Headers:
    entries: list[Entry] = []
    seen: set[str] = set()
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        key, written = KNOWN_NAMES.get(name) or _unusual_name(name)
        if not colon:
            raise ParseError("Header line without a colon", near=line)
        value = value.strip(WHITE_SPACE)
        if "," in value and key in _SPLIT:
            entries += [(key, written, element) for element in split_list(value)]
            continue
        if key in SINGLE:
            if key in seen:
                raise ParseError(f"More than one {written} header field", near=line)
            seen.add(key)
        entries.append((key, written, value))
    return Headers.from_entries(entries)


def _unusual_name(name: str) -> tuple[str, str]:
    bare = name.rstrip(WHITE_SPACE)  # White space before the colon is allowed, RFC 3261 25.1 HCOLON.
    if not is_token(bare):
        raise ParseError("Malformed header field name", near=name)
    return identify(bare)


def _parse_start_line(line: str, headers: Headers) -> Message:
    if line[:4].upper() == "SIP/":
        version, _, rest = line.partition(" ")
        status, _, reason = rest.partition(" ")
        if version.upper() != "SIP/2.0" or not _STATUS.fullmatch(status):
            raise ParseError("Malformed status line")
        return Response(int(status), readable(reason.strip(WHITE_SPACE)), headers)
    # More than one space between the three parts is harmless; space inside one makes a fourth.
    parts = [part for part in line.split(" ") if part]
    if len(parts) != 3 or not is_token(parts[0]):
        raise ParseError("Malformed request line")
    method, uri_text, version = parts
    if version.upper() != "SIP/2.0":
        code = 505 if version[:4].upper() == "SIP/" else 400
        raise ParseError("Unsupported version", status=code, near=version)
    return Request(method, _parse_request_uri(uri_text), headers)


def _parse_request_uri(text: str) -> SipUri:
    try:
        uri = SipUri.parse(text)
    except ParseError as error:
        error.near = text
        raise
    if uri.headers is not None:
        raise ParseError("Header fields in the request URI", near=text)  # RFC 3261 19.1.1
    return uri


def _check_mandatory(message: Message) -> None:
    """Parse the fields every transaction needs, so that reading them later cannot fail (RFC 3261 8.1.1)."""
    for view in (message.via, message.from_, message.to, message.call_id):
        assert view
    cseq = message.cseq
    if isinstance(message, Request):
        if cseq.method != message.method:
            raise ParseError("CSeq names another method", near=message.headers.first("cseq") or "")
        message.max_forwards  # noqa: B018


def _cut_body(data: bytes, start: int, headers: Headers) -> bytes:
    """Return the body by its declared length, or all remaining bytes when a datagram declares none."""
    declared = headers.first("content-length")
    if declared is None:
        return bytes(data[start:])
    length = content_length(declared)
    if length > len(data) - start:
        raise ParseError("Body shorter than its Content-Length", len(data))
    return bytes(data[start : start + length])


def content_length(text: str) -> int:
    """
    Parse the value of a Content-Length field.

    Raises:
        ParseError: It is not a decimal number of at most 10 digits.
    """
    length = parse_number(text, 10)
    if length is None:
        raise ParseError("Malformed Content-Length", near=text)
    return length


def answer_to(head: bytes, error: ParseError) -> Response | None:
    """Return the response to a rejected request, from its header fields; None when it gets none."""
    return _answer(to_text(head), error)


def _answer(head: str, error: ParseError) -> Response | None:
    """
    Build the response to a malformed request from its readable fields.

    Fields are repeated as received: the peer recognises its own text even
    where it is malformed. Only the top Via must be valid, since it determines
    the destination of the response.
    """
    head = head.replace("\r\n", "\n")
    if "\r" in head:
        return None  # A field with a bare CR could not be repeated as received.
    lines = _FOLD.sub(" ", head).split("\n")
    method = lines[0].partition(" ")[0]
    if method == "ACK" or not is_token(method):
        return None  # A status line fails here too: its version holds a slash.
    entries = list(_answerable(lines))
    headers = Headers.from_entries(entries)
    via, call_id = headers.first("via"), headers.first("call-id")
    if via is None or call_id is None or not all(name in headers for name in ("From", "To", "CSeq")):
        return None
    try:
        Via.parse(via)
    except ParseError:
        return None
    to = headers.first("to") or ""
    if ";tag=" not in to.replace(" ", "").lower():
        # A repetition of the request gets the same tag, although no state is kept.
        tag = hashlib.blake2s(to_bytes(f"{via}\n{call_id}"), digest_size=6).hexdigest()
        headers.set("To", f"{to};tag={tag}")
    phrase = reason_phrase(error.status)
    return Response(error.status, phrase if error.status != 400 else error.reason, headers)


def _answerable(lines: list[str]) -> Iterator[Entry]:
    """Yield the fields a response repeats: every Via, and the first of each other field."""
    seen: set[str] = set()
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        key, written = identify(name.rstrip(WHITE_SPACE))
        value = value.strip(WHITE_SPACE)
        if not colon or not value:
            continue
        if key == "via":
            for element in split_list(value):
                yield key, written, element
        elif key in ("from", "to", "call-id", "cseq") and key not in seen:
            seen.add(key)
            yield key, written, value


READER = wire.Reader(
    {kind.__name__: kind for kind in (Request, Response, Headers, Via, CSeq, NameAddr, SipUri)},
    KNOWN_NAMES,
    _SPLIT,
    {"uri": SipUri.parse, "address": NameAddr.parse, "list": split_list, "error": ParseError},
)
"""Makes the objects of messages that are read natively."""

read_plain = READER.read
"""Parses a message natively; None when it cannot, even if the message is valid."""
