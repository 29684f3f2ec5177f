"""Session descriptions as values (RFC 8866), and their errors."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import NamedTuple

from media.types import Direction
from media.values import frozen


class SdpError(ValueError):
    """
    A malformed session description.

    Attributes:
        reason: Description of the fault, without any of the peer's text.
        line: Number of the offending line, from 1; 0 for the description as a whole.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


class NegotiationError(Exception):
    """
    An offer that we cannot accept, or an answer that does not fit our offer.

    Attributes:
        status: SIP status to refuse an offer with (488 Not Acceptable Here).
        warn_code: Code of a Warning header (RFC 3261 20.43).
        warning: Text of a Warning header; holds none of the peer's text.
    """

    status = 488

    def __init__(self, warning: str, warn_code: int = 305) -> None:
        super().__init__(warning)
        self.warning = warning
        self.warn_code = warn_code

    def warning_header(self, agent: str) -> str:
        """Value of a Warning header; `agent` is our host or pseudonym (RFC 3261 20.43)."""
        return f'{self.warn_code} {agent} "{self.warning}"'


DIRECTIONS: dict[str, Direction] = {
    "sendrecv": "sendrecv",
    "sendonly": "sendonly",
    "recvonly": "recvonly",
    "inactive": "inactive",
}


class RtpMap(NamedTuple):
    """Meaning of a payload type (RFC 8866 6.6)."""

    payload_type: int
    encoding: str
    clock_rate: int
    channels: int = 1

    def __str__(self) -> str:
        channels = f"/{self.channels}" if self.channels != 1 else ""
        return f"{self.payload_type} {self.encoding}/{self.clock_rate}{channels}"


# RFC 3551 6, table 4: meaning of a payload type without an rtpmap.
STATIC_PAYLOADS: dict[int, RtpMap] = {
    number: RtpMap(number, encoding, clock_rate)
    for number, encoding, clock_rate in (
        (0, "PCMU", 8000),
        (3, "GSM", 8000),
        (4, "G723", 8000),
        (8, "PCMA", 8000),
        (9, "G722", 8000),
        (13, "CN", 8000),
        (15, "G728", 8000),
        (18, "G729", 8000),
    )
}


class Attribute(NamedTuple):
    """
    An `a=` line; a property attribute has no value (RFC 8866 5.13).

    The representation withholds the value of `crypto`, which holds a key.
    """

    name: str
    value: str | None = None

    def __repr__(self) -> str:
        value = "(withheld)" if self.name.lower() == "crypto" else self.value
        return f"Attribute({self.name!r}, {value!r})"

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}:{self.value}"


class Connection(NamedTuple):
    """A `c=` line; `suffix` is the time to live and count of a multicast address (RFC 8866 5.7)."""

    address: str
    address_type: str = "IP4"
    suffix: str = ""

    @classmethod
    def to(cls, address: str) -> Connection:
        """Build the connection line of an IP address literal."""
        return cls(address, "IP6" if ":" in address else "IP4")


@frozen
class Origin:
    """The `o=` line: originator of the session, and version of the description (RFC 8866 5.2)."""

    session_id: int
    version: int
    address: str
    address_type: str = "IP4"
    username: str = "-"


@frozen
class MediaDescription:
    """
    An `m=` section.

    `formats` keeps the order of preference; in the RTP profiles its items are payload type numbers.
    """

    kind: str
    port: int
    protocol: str
    formats: tuple[str, ...]
    connection: Connection | None = None
    bandwidths: tuple[tuple[str, int], ...] = ()
    attributes: tuple[Attribute, ...] = ()
    port_count: int = 1

    @property
    def is_rtp(self) -> bool:
        """True if the formats are RTP payload types."""
        return "RTP/" in self.protocol

    def attribute(self, name: str) -> str | None:
        """Return the first value of an attribute; empty for a property attribute, None if absent."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute.value or ""
        return None

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of all attributes of that name."""
        return tuple([item.value for item in self.attributes if item.name == name and item.value is not None])

    @property
    def direction(self) -> Direction | None:
        """Direction stated in this section; None leaves it to the session (RFC 8866 6.7)."""
        return stated_direction(self.attributes)

    @property
    def ptime_ms(self) -> int | None:
        """Packet length that the writer wants to receive (RFC 8866 6.4); None if absent or malformed."""
        return _milliseconds(self.attribute("ptime"))

    @property
    def maxptime_ms(self) -> int | None:
        """Longest packet that the writer accepts (RFC 8866 6.5); None if absent or malformed."""
        return _milliseconds(self.attribute("maxptime"))

    def codecs(self) -> tuple[RtpMap, ...]:
        """
        Return the codecs of the formats in order of preference.

        Static payload types need no rtpmap. Formats without a meaning and malformed rtpmaps are ignored:
        other formats of the offer may still be usable.
        """
        return _codecs(self.formats, self.values("rtpmap")) if self.is_rtp else ()

    def fmtp(self, payload_type: int) -> str | None:
        """Return the format parameters of a payload type (RFC 8866 6.15), or None."""
        for value in self.values("fmtp"):
            number, _, parameters = value.partition(" ")
            if _number(number, 127) == payload_type:
                return parameters.strip()
        return None


@frozen
class SessionDescription:
    """
    A session description.

    The parser checks the position of `i`, `u`, `e`, `p`, `r`, `z` and `k` lines and does not keep them: a
    telephony server has no use for them.
    """

    origin: Origin
    session_name: str = "-"
    connection: Connection | None = None
    bandwidths: tuple[tuple[str, int], ...] = ()
    times: tuple[tuple[int, int], ...] = ((0, 0),)
    attributes: tuple[Attribute, ...] = ()
    media: tuple[MediaDescription, ...] = field(default=())

    @classmethod
    def parse(cls, data: bytes) -> SessionDescription:
        """
        Parse a session description.

        Raises:
            SdpError: It is malformed, or too large.
        """
        from media.sdp.parser import parse_session_description

        return parse_session_description(data)

    def to_bytes(self) -> bytes:
        """Serialise the description in the order of RFC 8866 5, with CRLF line ends."""
        by = self.origin
        lines = [
            "v=0",
            f"o={by.username} {by.session_id} {by.version} IN {by.address_type} {by.address}",
            f"s={self.session_name or '-'}",
        ]
        _write_section(lines, self, self.times)
        for media in self.media:
            count = f"/{media.port_count}" if media.port_count != 1 else ""
            lines.append(f"m={media.kind} {media.port}{count} {media.protocol} {' '.join(media.formats)}")
            _write_section(lines, media)
        lines.append("")
        return "\r\n".join(lines).encode()

    def connection_of(self, media: MediaDescription) -> Connection | None:
        """Return the connection of a section: its own, else the session's."""
        return media.connection or self.connection

    def direction_of(self, media: MediaDescription) -> Direction:
        """Return the direction of a section: its own, else the session's, else sendrecv."""
        return media.direction or stated_direction(self.attributes) or "sendrecv"


def stated_direction(attributes: tuple[Attribute, ...]) -> Direction | None:
    """Return the direction that a section's attributes state; None if they state none."""
    for attribute in attributes:
        if attribute.value is None and attribute.name in DIRECTIONS:
            return DIRECTIONS[attribute.name]
    return None


def _number(text: str, maximum: int) -> int | None:
    """Parse a decimal of ASCII digits; None if it is malformed or too large."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 10:
        return None
    value = int(text)
    return value if value <= maximum else None


def _milliseconds(text: str | None) -> int | None:
    """Parse a duration in ms; some peers write `20.0`, which RFC 8866 6.4 permits as non-zero-int-or-real."""
    if text is None:
        return None
    value = _number(text.strip().partition(".")[0], 10_000)
    return value or None


# The same few lists come with nearly every call, and each is needed several times.
@lru_cache(maxsize=64)
def _codecs(formats: tuple[str, ...], rtpmaps: tuple[str, ...]) -> tuple[RtpMap, ...]:
    mapped = {entry.payload_type: entry for entry in map(_rtpmap, rtpmaps) if entry}
    found: list[RtpMap] = []
    for text in formats:
        number = _number(text, 127)
        entry = None if number is None else mapped.get(number) or STATIC_PAYLOADS.get(number)
        if entry is not None:
            found.append(entry)
    return tuple(found)


@lru_cache(maxsize=256)
def _rtpmap(value: str) -> RtpMap | None:
    number_text, _, rest = value.partition(" ")
    number = _number(number_text, 127)
    parts = rest.strip().split("/")
    if number is None or not 2 <= len(parts) <= 3 or not parts[0]:
        return None
    clock_rate = _number(parts[1], 1_000_000)
    channels = _number(parts[2], 255) if len(parts) == 3 else 1
    if not clock_rate or not channels:
        return None
    return RtpMap(number, parts[0], clock_rate, channels)


def _write_section(
    lines: list[str], section: SessionDescription | MediaDescription, times: tuple[tuple[int, int], ...] = ()
) -> None:
    """Write what follows the `s=` or `m=` line, in the order of RFC 8866 5; only a session has times."""
    if section.connection is not None:
        address, address_type, suffix = section.connection
        lines.append(f"c=IN {address_type} {address}{suffix}")
    for kind, value in section.bandwidths:
        lines.append(f"b={kind}:{value}")
    for start, stop in times:
        lines.append(f"t={start} {stop}")
    lines += [f"a={name}" if text is None else f"a={name}:{text}" for name, text in section.attributes]
