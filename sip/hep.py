"""
HEP version 3: encodes SIP messages for a capture server such as Homer.

A packet is the word ``HEP3``, its total length, and chunks: vendor, type, length of the chunk including these
six bytes, value; all numbers in network order.

Source: HEP/EEP protocol specification, revision 36.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from sip.message.encoding import readable

_MAGIC = b"HEP3"
_HEAD = struct.Struct("!HHH")
_GENERIC_VENDOR = 0
_MAX_PACKET_BYTES = 65_507
"""Limit of a UDP payload over IPv4."""

_FAMILY, _PROTOCOL = 0x01, 0x02
_SOURCE_IPV4, _TARGET_IPV4, _SOURCE_IPV6, _TARGET_IPV6 = 0x03, 0x04, 0x05, 0x06
_SOURCE_PORT, _TARGET_PORT = 0x07, 0x08
_SECONDS, _MICROSECONDS = 0x09, 0x0A
_PAYLOAD_TYPE, _CAPTURE_ID = 0x0B, 0x0C
_PASSWORD, _PAYLOAD, _CORRELATION = 0x0E, 0x0F, 0x11

_AF_INET, _AF_INET6 = 2, 10
"""Values of the specification and of every capture server, independent of the operating system."""
_IP_PROTOCOLS = {"udp": 17, "tcp": 6, "tls": 6}
_SIP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HepMessage:
    """One message on the wire: addresses as literals, `at_us` in microseconds since 1970."""

    transport: str
    source: tuple[str, int]
    target: tuple[str, int]
    at_us: int
    payload: bytes
    correlation: str


def encode_hep(message: HepMessage, capture_id: int, password: str = "") -> bytes:
    """
    Encode one SIP message.

    A payload that does not fit into one packet is truncated; the header fields come first and are kept. Text
    that is no IP address (a socket bound to every address) is sent as zeros.
    """
    source, target = _address(message.source[0]), _address(message.target[0])
    if isinstance(source, IPv6Address) or isinstance(target, IPv6Address):
        family, kinds, bits = _AF_INET6, (_SOURCE_IPV6, _TARGET_IPV6), 128
    else:
        family, kinds, bits = _AF_INET, (_SOURCE_IPV4, _TARGET_IPV4), 32
    seconds, microseconds = divmod(message.at_us, 1_000_000)
    chunks = [
        _chunk(_FAMILY, bytes((family,))),
        _chunk(_PROTOCOL, bytes((_IP_PROTOCOLS.get(message.transport, 17),))),
        _chunk(kinds[0], int(source).to_bytes(bits // 8, "big")),
        _chunk(kinds[1], int(target).to_bytes(bits // 8, "big")),
        _chunk(_SOURCE_PORT, struct.pack("!H", message.source[1])),
        _chunk(_TARGET_PORT, struct.pack("!H", message.target[1])),
        _chunk(_SECONDS, struct.pack("!I", seconds & 0xFFFFFFFF)),
        _chunk(_MICROSECONDS, struct.pack("!I", microseconds)),
        _chunk(_PAYLOAD_TYPE, bytes((_SIP,))),
        _chunk(_CAPTURE_ID, struct.pack("!I", capture_id)),
    ]
    if password:
        chunks.append(_chunk(_PASSWORD, password.encode()))
    chunks.append(_chunk(_CORRELATION, readable(message.correlation).encode()[:1024]))
    head = b"".join(chunks)
    room = _MAX_PACKET_BYTES - len(_MAGIC) - 2 - len(head) - _HEAD.size
    body = head + _chunk(_PAYLOAD, message.payload[: max(0, room)])
    return _MAGIC + struct.pack("!H", len(_MAGIC) + 2 + len(body)) + body


def _chunk(kind: int, value: bytes) -> bytes:
    return _HEAD.pack(_GENERIC_VENDOR, kind, _HEAD.size + len(value)) + value


def _address(host: str) -> IPv4Address | IPv6Address:
    try:
        return IPv4Address(host)
    except AddressValueError:
        pass
    try:
        return IPv6Address(host.strip("[]").partition("%")[0])
    except AddressValueError:
        return IPv4Address(0)
