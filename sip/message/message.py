"""
Requests and responses: their header fields, with typed views, and their wire form.

Header fields are ordered, and found by name in any case or compact form.

Source: RFC 3261 7, 8.2.6, 20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from sip.errors import InvalidValue, ParseError
from sip.message.encoding import to_bytes
from sip.message.fields import CSeq, NameAddr, Via, stamp_via
from sip.message.grammar import is_call_id, parse_number, split_list
from sip.message.native import wire
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri
from sip.values import constructed_natively

T = TypeVar("T")
Entry = tuple[str, str, str]
"""Key for comparison, name as written, value."""
MAX_MAX_FORWARDS = 255
"""RFC 3261 20.22."""

_LONG_NAMES = """
    Accept Accept-Contact Accept-Encoding Accept-Language Alert-Info Allow Allow-Events
    Authentication-Info Authorization Call-ID Call-Info Contact Content-Disposition
    Content-Encoding Content-Language Content-Length Content-Type CSeq Date Diversion
    Error-Info Event Expires From Geolocation History-Info Identity In-Reply-To Info-Package Join
    Max-Forwards MIME-Version Min-Expires Min-SE Organization P-Asserted-Identity
    P-Access-Network-Info P-Asserted-Service P-Called-Party-ID P-Charging-Vector P-Early-Media
    P-Preferred-Identity Path Priority Privacy Proxy-Authenticate Proxy-Authorization
    Proxy-Require RAck Reason Record-Route Recv-Info Refer-Sub Refer-To Referred-By
    Reject-Contact Remote-Party-ID Replaces Reply-To Request-Disposition Require Retry-After
    Route RSeq Server Service-Route Session-Expires Session-ID SIP-ETag SIP-If-Match Subject
    Subscription-State Supported Target-Dialog Timestamp To Unsupported User-Agent Via Warning
    WWW-Authenticate
""".split()

_COMPACT_NAMES = {
    "a": "Accept-Contact",
    "b": "Referred-By",
    "c": "Content-Type",
    "d": "Request-Disposition",
    "e": "Content-Encoding",
    "f": "From",
    "i": "Call-ID",
    "j": "Reject-Contact",
    "k": "Supported",
    "l": "Content-Length",
    "m": "Contact",
    "o": "Event",
    "r": "Refer-To",
    "s": "Subject",
    "t": "To",
    "u": "Allow-Events",
    "v": "Via",
    "x": "Session-Expires",
    "y": "Identity",
}

_CREDENTIALS = frozenset({"authorization", "proxy-authorization"})
_LISTS = frozenset(
    """
    accept accept-contact accept-encoding accept-language alert-info allow allow-events call-info
    contact content-encoding content-language diversion error-info history-info in-reply-to
    p-asserted-identity p-preferred-identity path proxy-require reason record-route recv-info
    reject-contact require route service-route supported unsupported via warning
    """.split()
)
"""Header fields whose value is a list; every other value is one element."""


_OWNED = frozenset(
    ("via", "from", "to", "call-id", "cseq", "max-forwards", "contact", "record-route", "content-length")
)
_REPLACEABLE = frozenset(("allow", "content-type", "server", "user-agent"))
"""Header fields that only the session sets, and those of ours that an application may replace."""


def _spellings() -> dict[str, tuple[str, str]]:
    table: dict[str, tuple[str, str]] = {}
    for name in _LONG_NAMES:
        for spelling in (name, name.lower(), name.upper(), name.title()):
            table[spelling] = (name.lower(), name)
    for compact, name in _COMPACT_NAMES.items():
        table[compact] = table[compact.upper()] = (name.lower(), name)
    return table


KNOWN_NAMES = _spellings()
"""Usual spellings of known names, each with its key and the form we write."""


def identify(name: str) -> tuple[str, str]:
    """Return the key (lower-case long form) and the written form of a header field name in any spelling."""
    known = KNOWN_NAMES.get(name)
    if known is None:
        key = name.lower()
        known = KNOWN_NAMES.get(key) or (key, name)
    return known


class Headers(wire.HeaderFields):
    """
    Header fields in order.

    Names are case-insensitive, and compact forms equal their long ones.
    Values are text without line ends that keeps every byte received
    (`sip.message.encoding`). Typed views are parsed on first access and cached
    until the field changes; those that every message needs are attributes: the
    top Via, From, To, Call-ID and CSeq.
    """

    __slots__ = ()

    def count(self, key: str) -> int:
        """Return the number of entries of a key."""
        return sum([entry[0] == key for entry in self.entries])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Headers):
            return NotImplemented  # Python then asks the other operand, and compares by identity at last.
        return [(key, value) for key, _, value in self.entries] == [
            (key, value) for key, _, value in other.entries
        ]

    # Headers change, so they are no keys; stated, since a reader expects a hash beside `__eq__`.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name and value of each field; credentials are masked, since passwords can be guessed from them."""
        shown = [(name, "***" if key in _CREDENTIALS else value) for key, name, value in self.entries]
        return f"Headers({shown!r})"

    def stamp_via(self, host: str, port: int) -> None:
        """Add the source address of a request to its top Via; see `Via.with_source`."""
        via = self.via
        stamped = via.with_source(host, port)
        if stamped is via:
            return
        # One value: the parser stores each Via in an entry of its own.
        place = [entry[0] for entry in self.entries].index("via")
        key, name, text = self.entries[place]
        self.entries[place] = (key, name, stamp_via(text, stamped))
        self.via = stamped


def check_encodable(text: str) -> None:
    """
    Reject text that has no bytes, for example half of a surrogate pair from JSON.

    Raises:
        InvalidValue: The text cannot be encoded.
    """
    try:
        to_bytes(text)
    except UnicodeEncodeError:
        raise InvalidValue("A header field value must be encodable as UTF-8") from None


def _field(name: str) -> Any:
    """
    Return a property that reads an attribute of the header fields without a call of Python.

    Each is read several times for every message. The class states the type: a property has none of its own.
    """
    return property(attrgetter(f"headers.{name}"))


class _TypedFields:
    """
    Typed views of the header fields, parsed on first access.

    In a message from `parse_message`, top Via, From, To, Call-ID and CSeq are
    valid, and in a request Max-Forwards. Every other view raises `ParseError`
    when the peer sent a malformed value.
    """

    __slots__ = ()

    headers: Headers

    via: Via = _field("via")
    """The top Via."""
    from_: NameAddr = _field("from_")
    """The From address."""
    to: NameAddr = _field("to")
    """The To address."""
    call_id: str = _field("call_id")
    """The Call-ID."""
    cseq: CSeq = _field("cseq")
    """The CSeq."""

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


@constructed_natively
@dataclass(slots=True)
class Request(_TypedFields):
    """A SIP request. The method is case-sensitive; the body is opaque."""

    method: str
    uri: SipUri
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""


@constructed_natively
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
        UnicodeEncodeError: A part has a surrogate that stands for no byte.
    """
    return wire.write(message)


_WRITING: dict[str, Callable[..., object]] = {
    "reason": reason_phrase,
    "encodable": check_encodable,
    "error": InvalidValue,
}
wire.set_message_classes(Request, Response, _WRITING)


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
    if not is_call_id(value):
        raise ParseError("Malformed Call-ID", near=value)
    return value


def _cseq(headers: Headers, key: str) -> CSeq:
    return _parsed(CSeq.parse, key, _required(headers, key))


_ATTRIBUTES: dict[str, tuple[str, Callable[[Headers, str], Any]]] = {
    "via": ("via", _top_via),
    "from_": ("from", _address),
    "to": ("to", _address),
    "call_id": ("call-id", _call_id),
    "cseq": ("cseq", _cseq),
}
"""Typed views that are attributes: the key of their field, and its parser."""
_KEYS = {"list": _LISTS, "owned": _OWNED, "replaceable": _REPLACEABLE}
_HELPERS: dict[str, Callable[..., object]] = {
    "list": split_list,
    "encodable": check_encodable,
    "error": InvalidValue,
}
wire.set_header_rules(KNOWN_NAMES, _KEYS, _HELPERS, _ATTRIBUTES)


def _max_forwards(headers: Headers, key: str) -> int | None:
    value = headers.first(key)
    if value is None:
        return None
    hops = parse_number(value, 10)
    if hops is None or hops > MAX_MAX_FORWARDS:
        raise ParseError("Malformed Max-Forwards", near=value)
    return hops
