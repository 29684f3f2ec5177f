"""
Session description within a multipart body.

PSTN gateways send ISUP, location or other parts beside SDP. A user agent has to find the session description
among them.

Source: RFC 5621 4 to 8, RFC 2046 5.1.
"""

from sip.errors import ParseError
from sip.message.grammar import find_param, parse_params
from sip.message.message import Message

MAX_PARTS = 16
SDP = "application/sdp"

_KINDS = ("multipart/mixed", "multipart/alternative", "multipart/related")
_METHODS = frozenset(("INVITE", "UPDATE", "PRACK", "ACK"))


def unwrap(message: Message) -> None:
    """
    Replace a multipart body by its session description.

    A multipart body without one becomes empty, as does a body of another type with handling=optional. A body
    that is malformed, has two session descriptions, or has another part with handling=required stays
    unchanged, so that `refusal` answers an INVITE, UPDATE or PRACK with 415.

    Source: RFC 5621 4 to 8, RFC 3261 20.11.
    """
    kind = message.content_type
    if kind == SDP or message.cseq.method not in _METHODS:
        return
    if kind not in _KINDS:
        if _is_optional(message):
            _leave_out(message)
        return
    try:
        parts = _split(message.headers.get("Content-Type") or "", message.body)
    except ParseError:
        return
    found = [body for kind, required, body in parts if kind == SDP]
    if len(found) > 1 or any(required for kind, required, _ in parts if kind != SDP):
        return
    if found:
        message.headers.set("Content-Type", SDP)
        message.body = found[0]
    else:
        _leave_out(message)


def _is_optional(message: Message) -> bool:
    try:
        return _param(message.headers.get("Content-Disposition") or "", "handling").lower() == "optional"
    except ParseError:
        return False


def _leave_out(message: Message) -> None:
    message.headers.remove("Content-Type")
    message.body = b""


def _split(content_type: str, body: bytes) -> list[tuple[str, bool, bytes]]:
    """Return media type, required handling and content of each part."""
    boundary = _param(content_type, "boundary").strip('"')
    if not 1 <= len(boundary) <= 70 or not boundary.isascii():
        raise ParseError("Malformed boundary of a multipart body")
    mark = b"--" + boundary.encode()
    chunks = (b"\r\n" + body).split(b"\r\n" + mark)
    if not 3 <= len(chunks) <= MAX_PARTS + 2 or not chunks[-1].startswith(b"--"):
        raise ParseError("Multipart body without its boundaries")
    return [_part(chunk) for chunk in chunks[1:-1]]


def _part(chunk: bytes) -> tuple[str, bool, bytes]:
    # A boundary is followed by optional white space, a line end, header fields, an empty line, the content.
    padding, line_end, rest = chunk.partition(b"\r\n")
    if padding.strip(b" \t") or not line_end:
        raise ParseError("Malformed boundary line in a multipart body")
    head, content = (b"", rest[2:]) if rest.startswith(b"\r\n") else _halves(rest)
    fields: dict[str, str] = {}
    for line in head.decode("latin-1").split("\r\n") if head else ():
        name, colon, value = line.partition(":")
        if colon and not name[:1].isspace():
            fields[name.strip().lower()] = value.strip()
    kind = fields.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if fields.get("content-transfer-encoding", "8bit").lower() not in ("7bit", "8bit", "binary"):
        kind = "encoded"
    disposition = fields.get("content-disposition", "")
    return kind, _param(disposition, "handling").lower() == "required", content


def _param(value: str, name: str) -> str:
    _, semicolon, params = value.partition(";")
    return find_param(parse_params(semicolon + params), name) or ""


def _halves(rest: bytes) -> tuple[bytes, bytes]:
    head, blank, content = rest.partition(b"\r\n\r\n")
    if not blank:
        raise ParseError("A part of a multipart body has no empty line")
    return head, content
