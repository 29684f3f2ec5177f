"""
Requests and responses: their header fields, with typed views, and their wire form.

Header fields are ordered, and found by name in any case or compact form.

Source: RFC 3261 7, 8.2.6, 20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from sip.errors import InvalidValue, ParseError
from sip.message.encoding import to_bytes
from sip.message.fields import CSeq, NameAddr, Via, stamp_via
from sip.message.grammar import WHITE_SPACE, is_call_id, is_token, parse_number, split_list
from sip.message.native import wire
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri

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


class Headers:
    """
    Header fields in order.

    Names are case-insensitive, and compact forms equal their long ones.
    Values are text without line ends that keeps every byte received
    (`sip.message.encoding`). Typed views are parsed on first access and cached
    until the field changes; those that every message needs are attributes: the
    top Via, From, To, Call-ID and CSeq.
    """

    __slots__ = ("call_id", "cseq", "entries", "from_", "to", "via", "views")

    via: Via
    from_: NameAddr
    to: NameAddr
    call_id: str
    cseq: CSeq

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self.entries: list[Entry] = []
        """Key, name as written and value of each; changing the list bypasses checks and cached views."""
        self.views: dict[str, Any] = {}
        """Cached typed views by key; written by this class only."""
        self.extend(fields)

    @classmethod
    def from_entries(cls, entries: list[Entry]) -> Headers:
        """Build from checked entries."""
        headers = cls.__new__(cls)
        headers.entries = entries
        headers.views = {}
        return headers

    def __getattr__(self, name: str) -> Any:
        """Parse an attribute that has not been read since its field changed."""
        known = _ATTRIBUTES.get(name)
        if known is None:
            raise AttributeError(name)
        key, parse = known
        value = parse(self, key)
        setattr(self, name, value)
        return value

    # Reading.

    def get(self, name: str) -> str | None:
        """Return the value of the first field of a name, as written."""
        return self.first(identify(name)[0])

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name in order, with comma-separated lists split."""
        key = identify(name)[0]
        values = self.all_of(key)
        if key not in _LISTS:
            return values
        if len(values) == 1 and "," not in values[0]:
            return [element] if (element := values[0].strip(WHITE_SPACE)) else []
        return [element for value in values for element in split_list(value)]

    def typed(self, key: str, parse: Callable[[Headers, str], T]) -> T:
        """
        Return ``parse(self, key)``, cached until the field changes.

        ``key`` is the field's lower-case long name and is not normalised. A
        field has one typed view: always pass the same ``parse`` for a key.
        """
        value: T | None = self.views.get(key)
        if value is None:
            value = self.views[key] = parse(self, key)
        return value

    def first(self, key: str) -> str | None:
        """As `get`, for a key in lower-case long form: the fast path of the typed views."""
        return wire.first(self.entries, key)

    def all_of(self, key: str) -> list[str]:
        """Return all values of a key, as written."""
        return wire.all_of(self.entries, key)

    def count(self, key: str) -> int:
        """Return the number of entries of a key."""
        return sum([entry[0] == key for entry in self.entries])

    def items(self) -> Iterator[tuple[str, str]]:
        """Iterate over (name as written, value) in order, one pair per entry."""
        return ((name, value) for _, name, value in self.entries)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

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

    # Changing.

    def add(self, name: str, value: str) -> None:
        """
        Append a field.

        Raises:
            InvalidValue: The name is not a token, or the value holds a line
                end or cannot be encoded.
        """
        self.entries.append(self._entry(name, value))

    def extend(self, fields: Iterable[tuple[str, str]]) -> None:
        """Append fields in order; raises as `add`."""
        for name, value in fields:
            self.entries.append(self._entry(name, value))

    def add_custom(self, fields: Iterable[tuple[str, str]]) -> None:
        """
        Add the header fields of an application; its Allow, Content-Type, Server and User-Agent replace ours.

        Raises:
            InvalidValue: A field is malformed, or set by the session only.
        """
        for name, value in fields:
            key = identify(name)[0]
            if key in _OWNED:
                raise InvalidValue(f"The session itself sets the header field {name}")
            if key in _REPLACEABLE:
                self.set(name, value)
            else:
                self.add(name, value)

    def set(self, name: str, value: str) -> None:
        """Replace all fields of a name by one, in the place of the first; raises as `add`."""
        entry = self._entry(name, value)
        place = self._find(entry[0])
        if place is None:
            self.entries.append(entry)
            return
        self.entries[place] = entry
        self.entries[place + 1 :] = [old for old in self.entries[place + 1 :] if old[0] != entry[0]]

    def stamp_via(self, host: str, port: int) -> None:
        """Add the source address of a request to its top Via; see `Via.with_source`."""
        via = self.via
        stamped = via.with_source(host, port)
        place = None if stamped is via else self._find("via")
        if place is None:
            return
        key, name, text = self.entries[place]  # One value: the parser stores each Via in an entry of its own.
        self.entries[place] = (key, name, stamp_via(text, stamped))
        self.via = stamped

    def push_via(self, value: str) -> None:
        """Insert our Via before all other fields; its value is not checked."""
        self.entries.insert(0, ("via", "Via", value))
        self._forget("via")

    def remove(self, name: str) -> None:
        """Remove all fields of a name, if any."""
        key = identify(name)[0]
        self._forget(key)
        self.entries = [entry for entry in self.entries if entry[0] != key]

    def copy_keys(self, other: Headers, keys: Set[str]) -> None:
        """Append the fields of these keys, in lower-case long form, from another message, in its order."""
        if self.entries:  # A view is of an entry: an empty message, as of a reply, has none to drop.
            for key in keys:
                self._forget(key)
        self.entries += [entry for entry in other.entries if entry[0] in keys]

    def copy(self) -> Headers:
        """Return an independent copy."""
        headers = Headers.from_entries(self.entries.copy())
        headers.views = self.views.copy()
        return headers

    def _find(self, key: str) -> int | None:
        for place, entry in enumerate(self.entries):
            if entry[0] == key:
                return place
        return None

    def _entry(self, name: str, value: str) -> Entry:
        key, written = identify(name)
        if key not in KNOWN_NAMES and not is_token(name):
            raise InvalidValue("A header field name must be a token")
        if "\r" in value or "\n" in value:
            raise InvalidValue("A header field value must not hold a line end")
        if not value.isascii():
            check_encodable(value)
        self._forget(key)
        return key, written, value

    def _forget(self, key: str) -> None:
        """Drop the typed view of a field that changes."""
        self.views.pop(key, None)
        name = _ATTRIBUTE_OF.get(key)
        if name is not None:
            try:
                delattr(self, name)
            except AttributeError:
                return  # It was not read.


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
    entries = message.headers.entries
    start = _request_line(message) if isinstance(message, Request) else _status_line(message)
    try:
        return wire.write(start, entries, message.body)
    except UnicodeEncodeError:  # Bytes that are not UTF-8, which the native module leaves to Python.
        return write_in_python(start, entries, message.body)


def write_in_python(start: str, entries: list[Entry], body: bytes) -> bytes:
    """Write a message as `sip._wire.write` does, with any bytes."""
    lines = [f"{name}: {value}\r\n" for key, name, value in entries if key != "content-length"]
    return to_bytes(f"{start}\r\n{''.join(lines)}Content-Length: {len(body)}\r\n\r\n") + body


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
_ATTRIBUTE_OF = {key: name for name, (key, _) in _ATTRIBUTES.items()}


def _max_forwards(headers: Headers, key: str) -> int | None:
    value = headers.first(key)
    if value is None:
        return None
    hops = parse_number(value, 10)
    if hops is None or hops > MAX_MAX_FORWARDS:
        raise ParseError("Malformed Max-Forwards", near=value)
    return hops
