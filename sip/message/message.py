"""
Requests and responses, and their wire form.

Source: RFC 3261 7, 8.2.6, 20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from sip.errors import InvalidValue, ParseError
from sip.message import native as acceleration
from sip.message.fields import CSeq, NameAddr, Via
from sip.message.grammar import is_token, parse_number
from sip.message.headers import Entry, Headers, check_encodable, identify
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri

MAX_MAX_FORWARDS = 255
"""RFC 3261 20.22."""


class _TypedFields:
    """
    Typed views of the header fields, parsed on first access.

    In a message from `parse_message`, top Via, From, To, Call-ID and CSeq are
    valid, and in a request Max-Forwards. Every other view raises `ParseError`
    when the peer sent a malformed value.
    """

    __slots__ = ()

    headers: Headers

    # Views used often read the cache directly; `typed` is only called to fill it.

    @property
    def via(self) -> Via:
        """The top Via."""
        headers = self.headers
        return headers.views.get("via") or headers.typed("via", _top_via)

    @property
    def from_(self) -> NameAddr:
        """The From address."""
        headers = self.headers
        return headers.views.get("from") or headers.typed("from", _address)

    @property
    def to(self) -> NameAddr:
        """The To address."""
        headers = self.headers
        return headers.views.get("to") or headers.typed("to", _address)

    @property
    def call_id(self) -> str:
        """The Call-ID."""
        headers = self.headers
        return headers.views.get("call-id") or headers.typed("call-id", _call_id)

    @property
    def cseq(self) -> CSeq:
        """The CSeq."""
        headers = self.headers
        return headers.views.get("cseq") or headers.typed("cseq", _cseq)

    @property
    def max_forwards(self) -> int | None:
        """Remaining hops, None when the peer (older than RFC 3261) does not count them."""
        return self.headers.typed("max-forwards", _max_forwards)

    @property
    def contacts(self) -> list[NameAddr]:
        """All Contact addresses. The lone ``*`` of a REGISTER is no address and raises `ParseError`."""
        return self.headers.typed("contact", _addresses)

    @property
    def contact(self) -> NameAddr | None:
        """The first Contact address, None when there is none."""
        contacts = self.contacts
        return contacts[0] if contacts else None

    @property
    def routes(self) -> list[NameAddr]:
        """The Route set, topmost first."""
        return self.headers.typed("route", _addresses)

    @property
    def record_routes(self) -> list[NameAddr]:
        """The Record-Route entries, topmost first."""
        return self.headers.typed("record-route", _addresses)

    @property
    def content_type(self) -> str | None:
        """Media type of the body in lower case and without parameters, None when absent."""
        value = self.headers.first("content-type")
        return None if value is None else value.partition(";")[0].strip().lower()

    @property
    def retry_after_s(self) -> int | None:
        """Retry-After in seconds, without its comment and parameters; None when absent or malformed."""
        value = (self.headers.first("retry-after") or "").partition(";")[0].partition("(")[0].strip()
        return parse_number(value)

    def option_tags(self, name: str) -> list[str]:
        """Return the option tags of Require, Proxy-Require or Supported, in lower case."""
        return [tag.lower() for tag in self.headers.get_all(name)]


@dataclass(slots=True)
class Request(_TypedFields):
    """A SIP request. The method is case-sensitive; the body is opaque."""

    method: str
    uri: SipUri
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""


@dataclass(slots=True)
class Response(_TypedFields):
    """A SIP response; an empty reason is written as the default phrase of its status."""

    status: int
    reason: str = ""
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""


Message = Request | Response

_REPEATED = frozenset(("via", "from", "to", "call-id", "cseq"))
_REPEATED_BY_TRYING = _REPEATED | {"timestamp"}


def reply(
    request: Request,
    status: int,
    reason: str = "",
    *,
    to_tag: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> Response:
    """
    Build the response to a request, with the fields every response repeats, and `headers`.

    `to_tag` is added to a To without a tag.

    Source: RFC 3261 8.2.6.
    """
    fields = Headers()
    fields.copy_keys(request.headers, _REPEATED_BY_TRYING if status == 100 else _REPEATED)
    if to_tag is not None and request.to.tag is None:
        fields.set("To", f"{fields.first('to')};tag={to_tag}")
    fields.extend(headers)
    return Response(status, reason or reason_phrase(status), fields)


def serialise(message: Message) -> bytes:
    """
    Return the wire form of a message, with the correct Content-Length.

    Raises:
        InvalidValue: The method is not a token, or status or reason does not
            fit a status line. Header fields were checked when added.
    """
    start = _request_line(message) if isinstance(message, Request) else _status_line(message)
    return _write(start, message.headers.entries(), message.body)


def write_in_python(start: str, entries: list[Entry], body: bytes) -> bytes:
    """Write a message as `sip._wire.write` does, for installations without the native module."""
    lines = [f"{name}: {value}\r\n" for key, name, value in entries if key != "content-length"]
    return f"{start}\r\n{''.join(lines)}Content-Length: {len(body)}\r\n\r\n".encode() + body


_write = write_in_python if acceleration.wire is None else acceleration.wire.write


_USUAL_METHODS = frozenset(("INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "UPDATE", "PRACK", "INFO"))


def _request_line(request: Request) -> str:
    if request.method not in _USUAL_METHODS and not is_token(request.method):
        raise InvalidValue("A method must be a token")
    return f"{request.method} {request.uri} SIP/2.0"


def _status_line(response: Response) -> str:
    reason = response.reason or reason_phrase(response.status)
    if not 100 <= response.status <= 699:
        raise InvalidValue("A status code must be between 100 and 699")
    if "\r" in reason or "\n" in reason:
        raise InvalidValue("A reason phrase must not hold a line end")
    if not reason.isascii():
        check_encodable(reason)
    return f"SIP/2.0 {response.status} {reason}"


T = TypeVar("T")


def _required(headers: Headers, key: str) -> str:
    value = headers.first(key)
    if value is None:
        raise ParseError(f"Missing {identify(key)[1]} header field")
    return value


def _parsed(parse: Callable[[str], T], key: str, value: str) -> T:
    try:
        return parse(value)
    except ParseError as error:  # The field's name, and the text that locates it.
        raise ParseError(f"{error.reason} in {identify(key)[1]}", near=value) from None


def _top_via(headers: Headers, key: str) -> Via:
    return _parsed(Via.parse, key, _required(headers, key))


def _address(headers: Headers, key: str) -> NameAddr:
    return _parsed(NameAddr.parse, key, _required(headers, key))


def _addresses(headers: Headers, key: str) -> list[NameAddr]:
    return [_parsed(NameAddr.parse, key, value) for value in headers.get_all(key)]


def _call_id(headers: Headers, key: str) -> str:
    value = _required(headers, key)
    if not value or not value.isprintable() or " " in value:
        raise ParseError("Malformed Call-ID", near=value)
    return value


def _cseq(headers: Headers, key: str) -> CSeq:
    return _parsed(CSeq.parse, key, _required(headers, key))


def _max_forwards(headers: Headers, key: str) -> int | None:
    value = headers.first(key)
    if value is None:
        return None
    hops = parse_number(value, 10)
    if hops is None or hops > MAX_MAX_FORWARDS:
        raise ParseError("Malformed Max-Forwards", near=value)
    return hops
