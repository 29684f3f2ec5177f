"""
Parser of session descriptions (RFC 8866).

It is strict about meaning and size, and tolerates known habits of peers: lines ended by LF alone, lines of
one section out of order, a missing `t=` line, a user name with spaces. Text that is not UTF-8 is read with
replacement characters, since only free text may hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from media.sdp.model import Attribute, Connection, MediaDescription, Origin, SdpError, SessionDescription

# Larger descriptions are refused.
_MAX_BYTES = 32_768
_MAX_LINE_BYTES = 2_048
_MAX_LINES = 1_000
_MAX_SECTIONS = 16
_MAX_FORMATS = 64
_MAX_ATTRIBUTES = 256

_SESSION_LINES = frozenset("vosiuepcbtrzka")
_MEDIA_LINES = frozenset("icbka")
_SINGLE_SESSION_LINES = frozenset("vosiuczk")
_SINGLE_MEDIA_LINES = frozenset("ik")
_TOKEN_EXTRA = frozenset("!#$%&'*+-.^_`{|}~")


@dataclass(slots=True)
class _Section:
    """Lines collected for the session or for one `m=` section."""

    is_session: bool
    seen: set[str] = field(default_factory=set)
    connection: Connection | None = None
    bandwidths: list[tuple[str, int]] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    origin: Origin | None = None
    name: str = "-"

    def take(self, kind: str, value: str, number: int) -> None:
        """Add one line; `number` is used in errors."""
        allowed = _SESSION_LINES if self.is_session else _MEDIA_LINES
        if kind not in allowed:
            raise SdpError(
                f"{'session' if self.is_session else 'media'} section with a line of this type", number
            )
        single = _SINGLE_SESSION_LINES if self.is_session else _SINGLE_MEDIA_LINES
        if kind in self.seen and kind in single:
            raise SdpError(f"second {kind}= line", number)
        self.seen.add(kind)
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, value, number)

    def lines(self) -> _Lines:
        """Return the content of the collected lines."""
        if self.is_session and not self.seen.issuperset("os"):
            raise SdpError("no s= line" if "o" in self.seen else "no o= line")
        return _Lines(
            self.connection,
            tuple(self.bandwidths),
            tuple(self.attributes),
            tuple(self.times) or ((0, 0),),
            self.name,
        )


class _Lines(NamedTuple):
    """Content of a section's lines, except `m=` and `o=`."""

    connection: Connection | None
    bandwidths: tuple[tuple[str, int], ...]
    attributes: tuple[Attribute, ...]
    times: tuple[tuple[int, int], ...]
    name: str


def parse_session_description(data: bytes) -> SessionDescription:
    """
    Parse a session description.

    Raises:
        SdpError: It is malformed, or too large.
    """
    head, *sections = _checked_text(data).split("\nm=")
    if len(sections) > _MAX_SECTIONS:
        raise SdpError("too many m= sections")
    origin, said = _read_session(head)
    media: list[MediaDescription] = []
    try:
        for section in sections:
            media.append(_read_section(section))
    except SdpError as error:
        lines_before = sum(part.count("\n") + 1 for part in (head, *sections[: len(media)]))
        raise SdpError(error.reason, lines_before + error.line) from None
    return SessionDescription(
        origin, said.name, said.connection, said.bandwidths, said.times, said.attributes, tuple(media)
    )


def _checked_text(data: bytes) -> str:
    """Return the text with LF line ends, after checks for blank and overlong lines."""
    if len(data) > _MAX_BYTES:
        raise SdpError(f"description of more than {_MAX_BYTES} bytes")
    # Blank lines at the end are common and harmless.
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n")
    if not text:
        raise SdpError("description is empty")
    if "\0" in text:
        raise SdpError("description holds a NUL byte")
    if len(text) >= _MAX_LINES and text.count("\n") >= _MAX_LINES:
        raise SdpError(f"more than {_MAX_LINES} lines")
    if "\n\n" in text or "\r" in text or text[0] == "\n" or len(text) > _MAX_LINE_BYTES:
        _check_lines(text)
    return text


def _check_lines(text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            raise SdpError("blank line", number)
        if len(line) > _MAX_LINE_BYTES:
            raise SdpError(f"line of more than {_MAX_LINE_BYTES} bytes", number)
        if "\r" in line:
            raise SdpError("carriage return within a line", number)


def _read_session(head: str) -> tuple[Origin, _Lines]:
    """Parse the lines before the first section; usually only the origin differs between calls."""
    version, _, rest = head.partition("\n")
    if not version.startswith("v"):
        raise SdpError("description does not begin with v=", 1)
    origin, _, others = rest.partition("\n")
    if version == "v=0" and origin.startswith("o="):
        return _origin(origin[2:], 2), _read_lines(others, True, 3)
    section = _Section(True)
    said = _taken(section, head, 1)
    assert section.origin is not None
    return section.origin, said


def _read_section(text: str) -> MediaDescription:
    """Parse a section from after its `m=`, which is its line 1 in errors."""
    line, _, rest = text.partition("\n")
    parts = line.split(None, 2)
    if len(parts) < 3:
        raise SdpError("m= line without its four fields", 1)
    kind, port, form = parts
    protocol, formats = _form(kind, form)
    port_count = 1
    if "/" in port:
        port, _, count = port.partition("/")
        port_count = _digits(count, 65_535, "count of ports", 1)
    udp_port = _digits(port, 65_535, "port", 1)
    connection, bandwidths, attributes, _, _ = _read_lines(rest, False, 2)
    return MediaDescription(kind, udp_port, protocol, formats, connection, bandwidths, attributes, port_count)


def _read_lines(text: str, is_session: bool, number: int) -> _Lines:
    """Parse the lines after `m=`, or after `v=` and `o=`; `number` is the number of the first."""
    if len(text) <= _COMMON_CHARS and _OF_ONE_CALL.search(f"\n{text}") is None:
        try:
            return _common_lines(text, is_session)
        except SdpError as error:
            raise SdpError(error.reason, error.line and error.line + number - 1) from None
    return _taken(_opened(is_session), text, number)


def _opened(is_session: bool) -> _Section:
    return _Section(is_session, seen={"v", "o"} if is_session else set())


def _taken(section: _Section, text: str, number: int) -> _Lines:
    for place, line in enumerate(text.split("\n") if text else (), number):
        if line[1:2] != "=":
            raise SdpError("line without '=' after its type", place)
        section.take(line[0], line[2:], place)
    return section.lines()


# The same lines come with nearly every call of a carrier: codecs, packet length, direction. Others differ
# each time and would only fill a cache; and keys must not outlive their call in one. The line feed makes the
# search four times as fast as "^" does.
_COMMON_CHARS = 1024
_OF_ONE_CALL = re.compile(r"\n(?:k=|a=(?:crypto|rtcp:|ssrc|candidate|ice-|fingerprint|msid|key-mgmt))")


@lru_cache(maxsize=512)
def _common_lines(text: str, is_session: bool) -> _Lines:
    return _taken(_opened(is_session), text, 1)


def _read_version(section: _Section, value: str, number: int) -> None:
    if value.strip() != "0":
        raise SdpError("version other than 0", number)


def _read_origin(section: _Section, value: str, number: int) -> None:
    section.origin = _origin(value, number)


def _origin(value: str, number: int) -> Origin:
    """Parse the value of an `o=` line, from the right: some telephones put a name with spaces first."""
    parts = value.strip().rsplit(" ", 5)
    if len(parts) != 6:
        raise SdpError("o= line without its six fields", number)
    username, session_id, version, network, address_type, address = parts
    _check_network(network, address_type, address, number)
    return Origin(
        _digits(session_id, 10**32, "session id", number),
        _digits(version, 10**32, "session version", number),
        address,
        address_type,
        username.strip() or "-",
    )


def _read_name(section: _Section, value: str, number: int) -> None:
    section.name = value.strip() or "-"


def _read_connection(section: _Section, value: str, number: int) -> None:
    parts = value.split()
    if len(parts) != 3:
        raise SdpError("c= line without its three fields", number)
    network, address_type, full_address = parts
    address, slash, suffix = full_address.partition("/")
    _check_network(network, address_type, address, number)
    # Several c= lines in one section are layers of multicast (RFC 8866 5.7); the first is the base layer.
    if section.connection is None:
        section.connection = Connection(address, address_type, slash + suffix)


def _check_network(network: str, address_type: str, address: str, number: int) -> None:
    if network != "IN" or address_type not in ("IP4", "IP6"):
        raise SdpError("network other than IN IP4 or IN IP6", number)
    if not address or not address.isascii() or len(address) > 255:
        raise SdpError("unreadable address", number)


def _read_bandwidth(section: _Section, value: str, number: int) -> None:
    kind, _, amount = value.strip().partition(":")
    if not _is_token(kind):
        raise SdpError("unreadable bandwidth type", number)
    section.bandwidths.append((kind, _digits(amount, 2**63, "bandwidth", number)))
    if len(section.bandwidths) > 16:
        raise SdpError("too many b= lines", number)


def _read_time(section: _Section, value: str, number: int) -> None:
    parts = value.split()
    if len(parts) != 2:
        raise SdpError("t= line without its two fields", number)
    start, stop = (_digits(part, 10**20, "time", number) for part in parts)
    section.times.append((start, stop))
    if len(section.times) > 16:
        raise SdpError("too many t= lines", number)


def _read_attribute(section: _Section, value: str, number: int) -> None:
    name, colon, rest = value.partition(":")
    name = name.strip()
    if not _is_token(name):
        raise SdpError("unreadable attribute name", number)
    section.attributes.append(Attribute(name, rest.strip() if colon else None))
    if len(section.attributes) > _MAX_ATTRIBUTES:
        raise SdpError(f"more than {_MAX_ATTRIBUTES} attributes in one section", number)


@lru_cache(maxsize=256)
def _form(kind: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Parse protocol and formats of an `m=` line, which are the same for nearly every call of a carrier."""
    protocol, *formats = text.split()
    if not formats:
        raise SdpError("m= line without its four fields", 1)
    if not _is_token(kind) or not all(map(_is_token, protocol.split("/"))):
        raise SdpError("unreadable media type or protocol", 1)
    if len(formats) > _MAX_FORMATS:
        raise SdpError(f"more than {_MAX_FORMATS} formats", 1)
    if not all(map(_is_format, formats)):
        raise SdpError("unreadable format", 1)
    return protocol, tuple(formats)


def _digits(text: str, maximum: int, what: str, number: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 40:
        raise SdpError(f"{what} is not a number", number)
    value = int(text)
    if value > maximum:
        raise SdpError(f"{what} is out of range", number)
    return value


def _is_token(text: str) -> bool:
    """True if the text is a token of RFC 8866 9."""
    if text.isascii() and text.isalnum():
        return True
    return bool(text) and text.isascii() and all(c.isalnum() or c in _TOKEN_EXTRA for c in text)


def _is_format(text: str) -> bool:
    """True if the text is a valid format; formats of application sections contain `/`."""
    return all(map(_is_token, text.split("/")))


_READERS: dict[str, Callable[[_Section, str, int], None]] = {
    "v": _read_version,
    "o": _read_origin,
    "s": _read_name,
    "c": _read_connection,
    "b": _read_bandwidth,
    "t": _read_time,
    "a": _read_attribute,
}
