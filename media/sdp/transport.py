"""Address, direction and packet length of media."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

from media.sdp.errors import NegotiationError
from media.sdp.model import Connection, MediaDescription, SessionDescription
from media.types import Direction

__all__ = ["MIRRORED", "check_family", "checked_address", "effective_direction", "intersect", "packet_length"]

_PTIMES_MS: Final = (10, 20, 30, 40, 50, 60)

MIRRORED: Final[dict[Direction, Direction]] = {
    "sendrecv": "sendrecv",
    "sendonly": "recvonly",
    "recvonly": "sendonly",
    "inactive": "inactive",
}
"""Each direction from the view of the other side."""


def packet_length(media: MediaDescription, default_ms: int) -> int:
    """Return the packet length to send: the peer's wish if supported, never beyond its maximum."""
    wanted_ms = media.ptime_ms or default_ms
    ptime_ms = wanted_ms if wanted_ms in _PTIMES_MS else default_ms
    maximum_ms = media.maxptime_ms
    if maximum_ms is not None and ptime_ms > maximum_ms:
        ptime_ms = max(_PTIMES_MS[0], maximum_ms // 10 * 10)
    return ptime_ms


def effective_direction(description: SessionDescription, media: MediaDescription) -> Direction:
    """Return the direction from the peer's view; address 0.0.0.0 or :: means hold (RFC 3264 8.4)."""
    direction = description.direction_of(media)
    connection = description.connection_of(media)
    if connection is not None and connection.address in ("0.0.0.0", "::"):
        return intersect(direction, "sendonly")
    return direction


def intersect(left: Direction, right: Direction) -> Direction:
    """Return the direction that both permit."""
    sends = left in ("sendrecv", "sendonly") and right in ("sendrecv", "sendonly")
    receives = left in ("sendrecv", "recvonly") and right in ("sendrecv", "recvonly")
    if sends:
        return "sendrecv" if receives else "sendonly"
    return "recvonly" if receives else "inactive"


def checked_address(connection: Connection | None) -> str:
    """
    Return the address literal to send to; the null address of a held stream is valid, nothing is sent to it.

    Raises:
        NegotiationError: The address is missing, malformed or multicast.
    """
    if connection is None:
        raise NegotiationError("The stream has no connection address", 301)
    return _checked_literal(connection.address, connection.address_type)


@lru_cache(maxsize=4096)
def _checked_literal(literal: str, address_type: str) -> str:
    try:
        address = ipaddress.ip_address(literal)
    except ValueError:
        raise NegotiationError("The connection address is not an IP address", 301) from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise NegotiationError("The connection address has a zone", 301)
    if (address.version == 6) != (address_type == "IP6"):
        raise NegotiationError("The connection address is not of its type", 301)
    if address.is_multicast or str(address) == "255.255.255.255":
        raise NegotiationError("Multicast is not supported", 301)
    return str(address)


def check_family(theirs: str, ours: str) -> None:
    """
    Refuse an address that our socket cannot send to.

    Raises:
        NegotiationError: The addresses are of different IP versions.
    """
    if (":" in theirs) != (":" in ours):
        raise NegotiationError("The connection address is of the other IP version", 301)
