"""Where RTCP goes: on the port of RTP (RFC 5761), or on one of its own (RFC 3550 11, RFC 3605)."""

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
    Offer to share the port, and name the one where RTCP is taken when the far end does not agree.

    The port above is what it would be by default; some far ends only send RTCP where it is named.
    """
    fallback = Attribute("rtcp", str(port + 1))
    return (fallback, _MUX) if mux else (fallback,)


def answered_rtcp(port: int, *, shared: bool) -> tuple[Attribute, ...]:
    """Say where RTCP is taken: on the port of RTP if both want that, else on the one above."""
    return (_MUX,) if shared else offered_rtcp(port, mux=False)


def shares_port(media: MediaDescription) -> bool:
    """Whether the writer takes RTCP on the port of RTP."""
    return media.attribute("rtcp-mux") is not None


def rtcp_of(media: MediaDescription, address: str) -> tuple[int, str | None]:
    """
    Where the writer of a section takes RTCP on a port of its own: as it says, else one above RTP.

    The port, and the address if it is not that of RTP. What cannot be read, or names no single host, is
    passed over: RTCP is no reason to refuse a call.
    """
    value = media.attribute("rtcp") or ""
    port_text, _, connection = value.partition(" ")
    if port_text.isascii() and port_text.isdecimal() and len(port_text) <= 5:
        port = int(port_text)
        if 0 < port <= _MAX_PORT:
            other = _address(connection.split())
            return port, other if other != address and _same_family(other, address) else None
    # Above the highest port there is none; 0 stands for nowhere.
    return media.port + 1 if media.port < _MAX_PORT else 0, None


def _address(words: list[str]) -> str | None:
    """The address of `IN IP4 192.0.2.1`; None without one that can be used."""
    if len(words) != 3 or words[0] != "IN":
        return None
    try:
        return checked_address(Connection(words[2], words[1]))
    except NegotiationError:
        return None


def _same_family(one: str | None, other: str) -> bool:
    return one is not None and (":" in one) == (":" in other)
