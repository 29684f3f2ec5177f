"""
Header fields of a message: ordered, found by name in any case or compact form.

Source: RFC 3261 7.3, 20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, TypeVar

from sip.errors import InvalidValue
from sip.message.fields import Via
from sip.message.grammar import WHITE_SPACE, is_token, split_list

T = TypeVar("T")
Entry = tuple[str, str, str]
"""Key for comparison, name as written, value."""

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
    Values are text without line ends. Typed views are parsed on first access
    and cached until the field changes.
    """

    __slots__ = ("_entries", "views")

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._entries: list[Entry] = []
        self.views: dict[str, Any] = {}
        """Cached typed views by key; written by this class only."""
        self.extend(fields)

    @classmethod
    def from_entries(cls, entries: list[Entry], views: dict[str, Any] | None = None) -> Headers:
        """Build from checked entries, and from their typed views as far as known."""
        headers = cls.__new__(cls)
        headers._entries = entries
        headers.views = {} if views is None else views
        return headers

    # Reading.

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return the value of the first field of a name, as written."""
        value = self.first(identify(name)[0])
        return default if value is None else value

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name in order, with comma-separated lists split."""
        key = identify(name)[0]
        values = [entry[2] for entry in self._entries if entry[0] == key]
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
        for entry in self._entries:
            if entry[0] == key:
                return entry[2]
        return None

    def count(self, key: str) -> int:
        """Return the number of entries of a key."""
        return sum([entry[0] == key for entry in self._entries])

    def items(self) -> Iterator[tuple[str, str]]:
        """Iterate over (name as written, value) in order, one pair per entry."""
        return ((name, value) for _, name, value in self._entries)

    def entries(self) -> list[Entry]:
        """Return the internal list of entries, key first; changing it bypasses checks and cached views."""
        return self._entries

    def __contains__(self, name: object) -> bool:
        key = identify(name)[0] if isinstance(name, str) else None
        return any(entry[0] == key for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Headers):
            return NotImplemented
        return [(key, value) for key, _, value in self._entries] == [
            (key, value) for key, _, value in other._entries
        ]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name and value of each field; credentials are masked, since passwords can be guessed from them."""
        shown = [(name, "***" if key in _CREDENTIALS else value) for key, name, value in self._entries]
        return f"Headers({shown!r})"

    # Changing.

    def add(self, name: str, value: str) -> None:
        """
        Append a field.

        Raises:
            InvalidValue: The name is not a token, or the value holds a line
                end or cannot be encoded.
        """
        self._entries.append(self._entry(name, value))

    def extend(self, fields: Iterable[tuple[str, str]]) -> None:
        """Append fields in order; raises as `add`."""
        for name, value in fields:
            self._entries.append(self._entry(name, value))

    def set(self, name: str, value: str) -> None:
        """Replace all fields of a name by one, in the place of the first; raises as `add`."""
        entry = self._entry(name, value)
        place = self._find(entry[0])
        if place is None:
            self._entries.append(entry)
            return
        self._entries[place] = entry
        self._entries[place + 1 :] = [old for old in self._entries[place + 1 :] if old[0] != entry[0]]

    def replace_via(self, via: Via) -> None:
        """Replace the top Via and cache its typed view, which is needed again at once."""
        place = self._find("via")
        entry = ("via", "Via", str(via))
        if place is None:
            self._entries.append(entry)
        else:
            self._entries[place] = entry  # One value: the parser stores each Via in an entry of its own.
        self.views["via"] = via

    def push_via(self, value: str) -> None:
        """Insert our Via before all other fields; its value is not checked."""
        self._entries.insert(0, ("via", "Via", value))
        self.views.pop("via", None)

    def remove(self, name: str) -> None:
        """Remove all fields of a name, if any."""
        key = identify(name)[0]
        self.views.pop(key, None)
        self._entries = [entry for entry in self._entries if entry[0] != key]

    def copy_keys(self, other: Headers, keys: Set[str]) -> None:
        """Append the fields of these keys, in lower-case long form, from another message, in its order."""
        if self.views:
            for key in keys:
                self.views.pop(key, None)
        self._entries += [entry for entry in other._entries if entry[0] in keys]

    def copy(self) -> Headers:
        """Return an independent copy."""
        headers = Headers.from_entries(self._entries.copy())
        headers.views = self.views.copy()
        return headers

    def _find(self, key: str) -> int | None:
        for place, entry in enumerate(self._entries):
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
        self.views.pop(key, None)
        return key, written, value


def check_encodable(text: str) -> None:
    """
    Reject text without a UTF-8 form, for example half of a surrogate pair from JSON.

    Raises:
        InvalidValue: The text cannot be encoded.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("A header field value must be encodable as UTF-8") from None
