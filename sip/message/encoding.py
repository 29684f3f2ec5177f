"""
Bytes of messages as text, and text as bytes: no other module of the package decodes or encodes header fields.

Header fields are UTF-8, but old equipment sends other bytes, and a response must repeat what the request had.
A byte that is not UTF-8 is therefore kept, as a lone surrogate (U+DC80 to U+DCFF), and becomes the same byte
again. Databases, JSON and log files take no lone surrogates: text that leaves the SIP stack goes through
`readable`.

Source: RFC 3261 7.3.1, 8.2.6.2; PEP 383.
"""

from __future__ import annotations

import re

_FIRST_BYTE = 0xDC00
"""A byte is kept as this number plus its value."""
_FIRST_LATIN_1 = 0xA0
"""First printable character of the upper half of Latin-1; the bytes before it are controls."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def to_text(data: bytes | bytearray) -> str:
    """Return the text of header bytes; every byte survives."""
    return data.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """
    Return the bytes of header text, exactly those that `to_text` was given.

    Raises:
        UnicodeEncodeError: The text has a surrogate that stands for no byte.
    """
    return text.encode("utf-8", "surrogateescape")


def readable(text: str) -> str:
    """
    Return text for people and other systems, without lone surrogates.

    A byte that is not UTF-8 becomes its character in Latin-1, in which old equipment writes display names; a
    control of Latin-1, and a surrogate that stands for no byte, becomes U+FFFD.
    """
    return text if text.isascii() else _SURROGATE.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    byte = ord(match[0]) - _FIRST_BYTE
    return chr(byte) if _FIRST_LATIN_1 <= byte <= 0xFF else "\N{REPLACEMENT CHARACTER}"
