"""Port of RTCP: that of RTP (RFC 5761), or a separate one (RFC 3550 11, RFC 3605)."""

from __future__ import annotations

from functools import lru_cache

from media.sdp.errors import NegotiationError
from media.sdp.model import Attribute, Connection, MediaDescription
from media.sdp.transport import checked_address

__all__ = ["answered_rtcp", "offered_rtcp", "rtcp_of", "shares_port"]

_MAX_PORT = 65535


_MUX = Attribute("rtcp-mux")


@lru_cache(maxsize=1024)
def offered_rtcp(port: int, *, mux: bool) -> tuple[Attribute, ...]:
    """
    Offer to share the port, and name the RTCP port for a far end that does not agree.

    The port above RTP is the default anyway; some far ends only send RTCP to a named port.
    """
    fallback = Attribute("rtcp", str(port + 1))
    return (fallback, _MUX) if mux else (fallback,)


def answered_rtcp(port: int, *, shared: bool) -> tuple[Attribute, ...]:
    """Return the attributes of our RTCP port: that of RTP if both sides want that, else the one above."""
    return (_MUX,) if shared else offered_rtcp(port, mux=False)


def shares_port(media: MediaDescription) -> bool:
    """True if the writer accepts RTCP on the port of RTP."""
    return media.attribute("rtcp-mux") is not None


def rtcp_of(media: MediaDescription, address: str) -> tuple[int, str | None]:
    """
    Return the separate RTCP port of a section's writer: as stated, else one above RTP.

    The address is None if it is that of RTP. A malformed value, or one that names no single host, is ignored:
    RTCP is no reason to refuse a call.
    """
    value = media.attribute("rtcp") or ""
    port_text, _, connection = value.partition(" ")
    if port_text.isascii() and port_text.isdecimal() and len(port_text) <= 5:
        port = int(port_text)
        if 0 < port <= _MAX_PORT:
            other = _address(connection.split())
            return port, other if other != address and _same_family(other, address) else None
    # There is no port above the highest; 0 means none.
    return media.port + 1 if media.port < _MAX_PORT else 0, None


def _address(words: list[str]) -> str | None:
    """Return the address of `IN IP4 192.0.2.1`; None if it is absent or unusable."""
    if len(words) != 3 or words[0] != "IN":
        return None
    try:
        return checked_address(Connection(words[2], words[1]))
    except NegotiationError:
        return None


def _same_family(one: str | None, other: str) -> bool:
    return one is not None and (":" in one) == (":" in other)
