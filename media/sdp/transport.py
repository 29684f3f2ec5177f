"""
Transport of a stream: address, direction, packet length, port of RTCP, and profile and keys of SRTP.

RTCP uses the port of RTP (RFC 5761) or a separate one (RFC 3550 11, RFC 3605).

The profiles RTP/SAVP and RTP/SAVPF require encryption. With RTP/AVP and RTP/AVPF keys may be offered too, and
an answer accepts or omits them: opportunistic SRTP (RFC 8643), which "optional" offers. Keys decide, not the
name of the profile: a stream with keys of both sides is encrypted, any other is not.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import field
from functools import lru_cache
from typing import Final

from media.sdp.crypto import choose_crypto, match_crypto, offer_crypto
from media.sdp.model import (
    Attribute,
    Connection,
    MediaDescription,
    NegotiationError,
    SessionDescription,
    stated_direction,
)
from media.types import Direction, SrtpKey, SrtpSuite, SrtpUse
from media.values import frozen

_PTIMES_MS: Final = (10, 20, 30, 40, 50, 60)
_MAX_PORT: Final = 65535
_MUX: Final = Attribute("rtcp-mux")

_PLAIN: Final = ("RTP/AVP", "RTP/AVPF")
_SECURE: Final = ("RTP/SAVP", "RTP/SAVPF")
# Accepted when offered; few peers have it, and a description should fit into a datagram.
_NOT_OFFERED: Final[SrtpSuite] = "AES_256_CM_HMAC_SHA1_32"
_TRANSPORT, _ATTRIBUTE = 302, 306
"""Warning codes of RFC 3261 20.43."""

MIRRORED: Final[dict[Direction, Direction]] = {
    "sendrecv": "sendrecv",
    "sendonly": "recvonly",
    "recvonly": "sendonly",
    "inactive": "inactive",
}
"""Each direction from the view of the other side."""


def packet_length(wanted_ms: int | None, maximum_ms: int | None, default_ms: int) -> int:
    """Return the packet length to send: the peer's wish if supported, never beyond its maximum."""
    ptime_ms = wanted_ms if wanted_ms in _PTIMES_MS else default_ms
    if maximum_ms is not None and ptime_ms > maximum_ms:
        ptime_ms = max(_PTIMES_MS[0], maximum_ms // 10 * 10)
    return ptime_ms


def effective_direction(
    stated: Direction | None, description: SessionDescription, connection: Connection | None
) -> Direction:
    """
    Return the direction of a section from the peer's view: as the section states it, else the session.

    Address 0.0.0.0 or :: means hold (RFC 3264 8.4).
    """
    direction = stated or stated_direction(description.attributes) or "sendrecv"
    if connection is not None and connection.address in ("0.0.0.0", "::"):
        return intersect(direction, "sendonly")
    return direction


@lru_cache(maxsize=16)
def intersect(left: Direction, right: Direction) -> Direction:
    """Return the direction that both permit."""
    sends = left in ("sendrecv", "sendonly") and right in ("sendrecv", "sendonly")
    receives = left in ("sendrecv", "recvonly") and right in ("sendrecv", "recvonly")
    if sends:
        return "sendrecv" if receives else "sendonly"
    return "recvonly" if receives else "inactive"


def checked_address(connection: Connection | None, ours: str | None = None) -> str:
    """
    Return the address literal to send to; the null address of a held stream is valid, nothing is sent to it.

    Raises:
        NegotiationError: The address is missing, malformed or multicast, or our socket, which is bound to
            `ours`, cannot send to its IP version.
    """
    if connection is None:
        raise NegotiationError("The stream has no connection address", 301)
    address = _checked_literal(connection.address, connection.address_type)
    if ours is not None and (":" in address) != (":" in ours):
        raise NegotiationError("The connection address is of the other IP version", 301)
    return address


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


@frozen
class AgreedSrtp:
    """Profile and suite of an encrypted stream, which our later offers keep."""

    protocol: str
    suite: SrtpSuite


@frozen
class Encryption:
    """
    Profile, attributes and keys of a stream.

    Attributes:
        protocol: Profile of our section.
        lines: Attributes of our section.
        send, receive: Keys; None for plain RTP.
        agreed: Profile and suite for later offers; None for plain RTP.
    """

    protocol: str
    lines: tuple[Attribute, ...] = field(default=(), repr=False)
    send: SrtpKey | None = None
    receive: SrtpKey | None = None
    agreed: AgreedSrtp | None = None


_UNENCRYPTED: Final = {protocol: Encryption(protocol) for protocol in (*_PLAIN, *_SECURE)}


def offered_encryption(use: SrtpUse, keys: Iterable[SrtpKey], agreed: AgreedSrtp | None) -> Encryption:
    """Return profile and keys of an offer; once SRTP is in use, only the agreed ones."""
    if use == "off":
        return _UNENCRYPTED["RTP/AVP"]
    if agreed is not None:
        chosen = [key for key in keys if key.suite == agreed.suite]
        protocol = agreed.protocol
    else:
        chosen = [key for key in keys if key.suite != _NOT_OFFERED]
        protocol = "RTP/SAVP" if use == "required" else "RTP/AVP"
    return Encryption(protocol, tuple(Attribute("crypto", str(line)) for line in offer_crypto(chosen)))


def answered_encryption(media: MediaDescription, use: SrtpUse, keys: Iterable[SrtpKey]) -> Encryption:
    """
    Return profile and keys of the answer to an offered section.

    Raises:
        NegotiationError: It has another profile, or no usable key though it requires one, or one side
            requires encryption that the other refuses or lacks.
    """
    secure = media.protocol in _SECURE
    if not secure and media.protocol not in _PLAIN:
        raise NegotiationError("Only RTP/AVP and RTP/SAVP are supported", _TRANSPORT)
    if use == "off":
        if secure:
            raise NegotiationError("Encrypted media is not accepted here, only RTP/AVP", _TRANSPORT)
        return _UNENCRYPTED[media.protocol]
    chosen = choose_crypto(media.values("crypto"), tuple(keys))
    if chosen is not None:
        line, theirs = chosen
        return _encrypted(media.protocol, (Attribute("crypto", str(line)),), line.key, theirs)
    if secure:
        raise NegotiationError("No SRTP key is offered that can be used", _ATTRIBUTE)
    if use == "required":
        raise NegotiationError("Encrypted media (RTP/SAVP) is required", _TRANSPORT)
    return _UNENCRYPTED[media.protocol]


def accepted_encryption(ours: MediaDescription, theirs: MediaDescription) -> Encryption:
    """
    Return the keys that an answer to our offer agrees on.

    Raises:
        NegotiationError: It has another profile, or keys that do not fit, or none where they are required.
    """
    offered = ours.values("crypto")
    answered = theirs.values("crypto") if offered else ()
    possible = (*_PLAIN, *_SECURE) if offered else _PLAIN
    if theirs.protocol not in possible:
        raise NegotiationError("The answer has another transport protocol", _TRANSPORT)
    if not offered or not answered:
        if theirs.protocol in _SECURE or ours.protocol in _SECURE:
            raise NegotiationError("The answer has no SRTP key", _ATTRIBUTE)
        return _UNENCRYPTED[ours.protocol]
    keys = match_crypto(offered, answered)
    if keys is None:
        # They would encrypt, and neither side could decrypt.
        raise NegotiationError("The SRTP key of the answer does not fit the offer", _ATTRIBUTE)
    return _encrypted(ours.protocol, (), *keys)


def _encrypted(protocol: str, lines: tuple[Attribute, ...], send: SrtpKey, receive: SrtpKey) -> Encryption:
    return Encryption(protocol, lines, send, receive, AgreedSrtp(protocol, send.suite))
