"""SIP messages of a call as a capture file (pcap), for Wireshark and sngrep."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from callcontrol.calls.aio.sip_trace import TraceEntry

__all__ = ["capture"]

_MAGIC: Final = 0xA1B2C3D4
_RAW_IP: Final = 101
_SNAPLEN: Final = 262_144
_UDP: Final = 17
_TTL: Final = 64
_MAX_UDP: Final = 65_535 - 40 - 8
_DEFAULT_PORT: Final = 5060

_Address = IPv4Address | IPv6Address


def capture(entries: Sequence[TraceEntry], local: str) -> bytes:
    """
    Write messages as datagrams between their peers and `local`, which is ``host:port``.

    Messages of TCP and TLS are datagrams, too: the capture has the messages, and not the connections.
    """
    header = struct.pack("<IHHiIII", _MAGIC, 2, 4, 0, 0, _SNAPLEN, _RAW_IP)
    return header + b"".join(_record(entry, local) for entry in entries)


def _record(entry: TraceEntry, local: str) -> bytes:
    peer, port = _address(entry.peer)
    own, own_port = _address(local)
    if own.version != peer.version:
        own = ip_address("::1" if peer.version == 6 else "127.0.0.1")
    source, target = (
        ((own, own_port), (peer, port)) if entry.direction == "out" else ((peer, port), (own, own_port))
    )
    packet = _packet(source, target, entry.message.encode("utf-8", "replace")[:_MAX_UDP])
    seconds, micros = _split(entry.at)
    return struct.pack("<IIII", seconds, micros, len(packet), len(packet)) + packet


def _packet(source: tuple[_Address, int], target: tuple[_Address, int], payload: bytes) -> bytes:
    datagram = struct.pack(">HHHH", source[1], target[1], 8 + len(payload), 0)
    ends = source[0].packed + target[0].packed
    length = 8 + len(payload)
    if source[0].version == 6:
        pseudo = ends + struct.pack(">IBBBB", length, 0, 0, 0, _UDP)
        head = struct.pack(">IHBB", 6 << 28, length, _UDP, _TTL) + ends
    else:
        pseudo = ends + struct.pack(">BBH", 0, _UDP, length)
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0, _TTL, _UDP, 0) + ends
        head = head[:10] + struct.pack(">H", _checksum(head)) + head[12:]
    # Zero stands for no checksum (RFC 768).
    check = _checksum(pseudo + datagram + payload) or 0xFFFF
    return head + datagram[:6] + struct.pack(">H", check) + payload


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _address(peer: str) -> tuple[_Address, int]:
    """Address and port of ``host:port``; those of a name are the unspecified address."""
    host, _, port = peer.rpartition(":")
    number = int(port) if port.isdecimal() and int(port) < 65_536 else _DEFAULT_PORT
    try:
        return ip_address(host.strip("[]").partition("%")[0]), number
    except ValueError:
        return IPv4Address(0), number


def _split(at: datetime) -> tuple[int, int]:
    micros = round(at.timestamp() * 1_000_000)
    return micros // 1_000_000, micros % 1_000_000
