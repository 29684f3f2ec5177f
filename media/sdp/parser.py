"""
Reading session descriptions (RFC 8866).

Strict in what carries meaning and in size, tolerant in what peers are known to do: lines ended by LF alone,
lines of one section out of order, a missing `t=` line, a user name with spaces. Text that is not UTF-8 is
read with replacement characters, since only free text may hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from media.sdp.errors import SdpError
from media.sdp.model import Attribute, Connection, MediaDescription, Origin, SessionDescription

__all__ = ["DEFAULT_LIMITS", "SdpLimits", "parse_session_description"]


@dataclass(frozen=True, slots=True)
class SdpLimits:
    """How large a description may be; anything beyond is an SdpError."""

    description_bytes: int = 32_768
    line_bytes: int = 2_048
    lines: int = 1_000
    media_sections: int = 16
    formats: int = 64
    attributes: int = 256


DEFAULT_LIMITS = SdpLimits()

_SESSION_LINES = frozenset("vosiuepcbtrzka")
_MEDIA_LINES = frozenset("icbka")
_SINGLE_SESSION_LINES = frozenset("vosiuczk")
_SINGLE_MEDIA_LINES = frozenset("ik")
_TOKEN_EXTRA = frozenset("!#$%&'*+-.^_`{|}~")


@dataclass(slots=True)
class _Section:
    """Lines collected for the session or for one `m=` section."""

    is_session: bool
    limits: SdpLimits
    seen: set[str] = field(default_factory=set)
    connection: Connection | None = None
    bandwidths: list[tuple[str, int]] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    origin: Origin | None = None
    name: str = "-"
    media: tuple[str, int, int, str, tuple[str, ...]] = ("", 0, 1, "", ())

    def take(self, kind: str, value: str, number: int) -> None:
        """Add one line; `number` is for the error."""
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


def parse_session_description(data: bytes, limits: SdpLimits = DEFAULT_LIMITS) -> SessionDescription:
    """
    Read a session description.

    Raises:
        SdpError: It is malformed, or larger than the limits.
    """
    lines = _split(data, limits)
    session = _Section(True, limits)
    sections = [session]
    for number, line in enumerate(lines, 1):
        kind, value = line[0], line[2:]
        if line[1:2] != "=":
            raise SdpError("line without '=' after its type", number)
        if number == 1 and kind != "v":
            raise SdpError("description does not begin with v=", number)
        if kind == "m":
            if len(sections) > limits.media_sections:
                raise SdpError("too many m= sections", number)
            sections.append(_Section(False, limits, media=_read_media(value, number, limits)))
        else:
            sections[-1].take(kind, value, number)
    return _build(session, sections[1:])


def _split(data: bytes, limits: SdpLimits) -> list[str]:
    if len(data) > limits.description_bytes:
        raise SdpError(f"description of more than {limits.description_bytes} bytes")
    if b"\0" in data:
        raise SdpError("description holds a NUL byte")
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    # Blank lines at the end are a common habit and say nothing.
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise SdpError("description is empty")
    if len(lines) > limits.lines:
        raise SdpError(f"more than {limits.lines} lines")
    for number, line in enumerate(lines, 1):
        if not line:
            raise SdpError("blank line", number)
        if len(line) > limits.line_bytes:
            raise SdpError(f"line of more than {limits.line_bytes} bytes", number)
        if "\r" in line:
            raise SdpError("carriage return within a line", number)
    return lines


def _build(session: _Section, sections: list[_Section]) -> SessionDescription:
    if session.origin is None:
        raise SdpError("no o= line")
    if "s" not in session.seen:
        raise SdpError("no s= line")
    return SessionDescription(
        origin=session.origin,
        session_name=session.name,
        connection=session.connection,
        bandwidths=tuple(session.bandwidths),
        times=tuple(session.times) or ((0, 0),),
        attributes=tuple(session.attributes),
        media=tuple(map(_build_media, sections)),
    )


def _build_media(section: _Section) -> MediaDescription:
    kind, port, port_count, protocol, formats = section.media
    return MediaDescription(
        kind=kind,
        port=port,
        protocol=protocol,
        formats=formats,
        connection=section.connection,
        bandwidths=tuple(section.bandwidths),
        attributes=tuple(section.attributes),
        port_count=port_count,
    )


def _read_version(section: _Section, value: str, number: int) -> None:
    if value.strip() != "0":
        raise SdpError("version other than 0", number)


def _read_origin(section: _Section, value: str, number: int) -> None:
    # From the right, because some telephones put their display name, with spaces, in front.
    parts = value.strip().rsplit(" ", 5)
    if len(parts) != 6:
        raise SdpError("o= line without its six fields", number)
    username, session_id, version, network, address_type, address = parts
    _check_network(network, address_type, address, number)
    section.origin = Origin(
        session_id=_digits(session_id, 10**32, "session id", number),
        version=_digits(version, 10**32, "session version", number),
        address=address,
        address_type=address_type,
        username=username.strip() or "-",
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
    common = len(value) <= _COMMON_CHARS and not value.startswith("crypto:")
    attribute = _common_attribute(value) if common else _attribute(value)
    if attribute is None:
        raise SdpError("unreadable attribute name", number)
    section.attributes.append(attribute)
    if len(section.attributes) > section.limits.attributes:
        raise SdpError(f"more than {section.limits.attributes} attributes in one section", number)


def _attribute(value: str) -> Attribute | None:
    name, colon, rest = value.partition(":")
    name = name.strip()
    return Attribute(name, rest.strip() if colon else None) if _is_token(name) else None


# The same few lines come with nearly every call: codecs, packet length, direction. Keys come once each, and
# are not to outlive their call in a cache.
_COMMON_CHARS = 80
_common_attribute = lru_cache(maxsize=1024)(_attribute)


def _read_media(value: str, number: int, limits: SdpLimits) -> tuple[str, int, int, str, tuple[str, ...]]:
    parts = value.split()
    if len(parts) < 4:
        raise SdpError("m= line without its four fields", number)
    kind, port_text, protocol, *formats = parts
    if not _is_token(kind) or not all(map(_is_token, protocol.split("/"))):
        raise SdpError("unreadable media type or protocol", number)
    if len(formats) > limits.formats:
        raise SdpError(f"more than {limits.formats} formats", number)
    if not all(map(_is_format, formats)):
        raise SdpError("unreadable format", number)
    port, slash, count = port_text.partition("/")
    port_count = _digits(count, 65_535, "count of ports", number) if slash else 1
    return kind, _digits(port, 65_535, "port", number), port_count, protocol, tuple(formats)


def _digits(text: str, maximum: int, what: str, number: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 40:
        raise SdpError(f"{what} is not a number", number)
    value = int(text)
    if value > maximum:
        raise SdpError(f"{what} is out of range", number)
    return value


def _is_token(text: str) -> bool:
    """Whether the text is a token of RFC 8866 9."""
    if text.isascii() and text.isalnum():
        return True
    return bool(text) and text.isascii() and all(c.isalnum() or c in _TOKEN_EXTRA for c in text)


def _is_format(text: str) -> bool:
    """Whether the text can stand as a format; `/` occurs in those of application sections."""
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
