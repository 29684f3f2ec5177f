"""
STUN messages of ICE: Binding requests of a browser, and our responses (RFC 8489, RFC 8445 7.1).

Everything that is not a Binding request with a user name and a signature counts as no message.
"""

from __future__ import annotations

import hmac
import ipaddress
import struct
import zlib
from dataclasses import dataclass
from hashlib import sha1
from typing import Final

Address = tuple[str, int]

_COOKIE: Final = 0x2112A442
_HEADER_BYTES: Final = 20
_MAX_BYTES: Final = 1280
_REQUEST, _SUCCESS = 0x0001, 0x0101
_USERNAME, _INTEGRITY, _XOR_MAPPED_ADDRESS = 0x0006, 0x0008, 0x0020
_PRIORITY, _USE_CANDIDATE, _FINGERPRINT = 0x0024, 0x0025, 0x8028
_INTEGRITY_BYTES: Final = 20
_FINGERPRINT_MASK: Final = 0x5354554E


@dataclass(frozen=True, slots=True)
class BindingRequest:
    """
    A Binding request, whose signature is not verified yet.

    Attributes:
        transaction_id: Repeated in the response.
        username: Both user name fragments, ours first, separated by a colon.
        priority: Priority of the pair as the sender sees it; 0 if it states none.
        nominates: True if the sender selects the pair (USE-CANDIDATE).
    """

    transaction_id: bytes
    username: str
    priority: int
    nominates: bool
    _signed: bytes
    _signature: bytes

    def is_signed_with(self, password: str) -> bool:
        """Return True if the request was signed with a password (RFC 8489 14.5)."""
        return hmac.compare_digest(_sign(self._signed, password), self._signature)


def parse_request(data: bytes) -> BindingRequest | None:
    """Parse a Binding request; None for anything else."""
    if not _HEADER_BYTES <= len(data) <= _MAX_BYTES:
        return None
    kind, length, cookie = struct.unpack_from("!HHI", data)
    if (kind, cookie) != (_REQUEST, _COOKIE) or length != len(data) - _HEADER_BYTES or length % 4:
        return None
    found: dict[int, bytes] = {}
    signed = b""
    position = _HEADER_BYTES
    while position + 4 <= len(data):
        name, size = struct.unpack_from("!HH", data, position)
        value = data[position + 4 : position + 4 + size]
        if len(value) != size:
            return None
        if name == _INTEGRITY:
            # What follows the signature is not signed, and not read.
            signed = _with_length(data[:position], position - _HEADER_BYTES + 4 + _INTEGRITY_BYTES)
            found[name] = value
            break
        found.setdefault(name, value)
        position += 4 + size + -size % 4
    username, signature = found.get(_USERNAME), found.get(_INTEGRITY)
    if username is None or signature is None or len(signature) != _INTEGRITY_BYTES:
        return None
    priority = found.get(_PRIORITY, b"")
    return BindingRequest(
        data[8:_HEADER_BYTES],
        username.decode("utf-8", "replace"),
        int.from_bytes(priority) if len(priority) == 4 else 0,
        _USE_CANDIDATE in found,
        signed,
        signature,
    )


def respond(request: BindingRequest, source: Address, password: str) -> bytes:
    """Return the success response to a request that came from an address."""
    body = _attribute(_XOR_MAPPED_ADDRESS, _mapped(source, request.transaction_id))
    head = struct.pack("!HHI", _SUCCESS, 0, _COOKIE) + request.transaction_id
    unsigned = _with_length(head + body, len(body) + 4 + _INTEGRITY_BYTES)
    signed = unsigned + _attribute(_INTEGRITY, _sign(unsigned, password))
    whole = _with_length(signed, len(signed) - _HEADER_BYTES + 8)
    return whole + _attribute(_FINGERPRINT, struct.pack("!I", zlib.crc32(whole) ^ _FINGERPRINT_MASK))


def _mapped(source: Address, transaction_id: bytes) -> bytes:
    address = ipaddress.ip_address(source[0])
    mask = struct.pack("!I", _COOKIE) + transaction_id
    hidden = bytes(one ^ other for one, other in zip(address.packed, mask, strict=False))
    return struct.pack("!BBH", 0, 2 if address.version == 6 else 1, source[1] ^ _COOKIE >> 16) + hidden


def _attribute(name: int, value: bytes) -> bytes:
    return struct.pack("!HH", name, len(value)) + value + bytes(-len(value) % 4)


def _with_length(message: bytes, length: int) -> bytes:
    return message[:2] + struct.pack("!H", length) + message[4:]


def _sign(message: bytes, password: str) -> bytes:
    return hmac.digest(password.encode(), message, sha1)
