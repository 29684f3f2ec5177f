"""
SRTP keys in session descriptions: `a=crypto` (RFC 4568).

A line is `tag suite inline:key||salt[|lifetime] [session parameters]`. A line with parameters that the engine
does not support is ignored and the next one is tried (RFC 4568 5.1.2). This module generates no keys, and no
representation shows one.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from media.types import SrtpKey, SrtpSuite

KEY_BYTES: Final[dict[SrtpSuite, int]] = {
    "AES_CM_128_HMAC_SHA1_80": 30,
    "AES_CM_128_HMAC_SHA1_32": 30,
    "AES_256_CM_HMAC_SHA1_80": 46,
    "AES_256_CM_HMAC_SHA1_32": 46,
}
"""Length in bytes of master key and salt together, by suite (RFC 4568 6.2, RFC 6188 4)."""

_SUITES: Final[dict[str, SrtpSuite]] = {suite: suite for suite in get_args(SrtpSuite)}
_MAX_LINES: Final = 32
_MAX_CHARS: Final = 512
# RFC 4568 9.1: no leading zero.
_TAG: Final = re.compile(r"(0|[1-9][0-9]{0,8})\Z", re.ASCII)
_LIFETIME: Final = re.compile(r"(?:2\^([0-9]{1,2})|([0-9]{1,15}))\Z", re.ASCII)
_MAX_LIFETIME_PACKETS: Final = 2**48
# Size of the receiver's replay window: a hint that needs no answer (RFC 4568 6.3.6).
_WINDOW_HINT: Final = re.compile(r"WSH=[0-9]{1,9}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class CryptoLine:
    """One `a=crypto` line; `str` writes its value, key included."""

    tag: int
    key: SrtpKey

    def __str__(self) -> str:
        inline = base64.b64encode(self.key.key).decode("ascii")
        return f"{self.tag} {self.key.suite} inline:{inline}"


def parse_crypto(value: str) -> CryptoLine | None:
    """
    Parse the value of an `a=crypto` line; None if it is unusable.

    Refused are unknown suites, keys of the wrong length, more than one key, a master key identifier (MKI)
    and session parameters that change the packets. A lifetime is checked and not kept: at 50 packets a second
    the 2^48 packets of a key are never reached, and a shorter lifetime binds the sender that named it.
    """
    parts = value.split(" ")
    if len(value) > _MAX_CHARS or len(parts) < 3 or not _TAG.match(parts[0]):
        return None
    suite = _SUITES.get(parts[1])
    if suite is None or not all(map(_is_harmless, parts[3:])):
        return None
    key = _inline_key(parts[2])
    if key is None or len(key) != KEY_BYTES[suite]:
        return None
    return CryptoLine(int(parts[0]), SrtpKey(suite, key))


def offer_crypto(keys: Sequence[SrtpKey]) -> tuple[CryptoLine, ...]:
    """Return the lines that offer these keys, the preferred suite first, with tags from 1."""
    return tuple(CryptoLine(tag, key) for tag, key in enumerate(keys, 1))


def choose_crypto(offered: Sequence[str], keys: Sequence[SrtpKey]) -> tuple[CryptoLine, SrtpKey] | None:
    """
    Choose the first usable line of an offer whose suite we have a key for, and our line to answer it.

    Returns:
        Our line, with the tag and suite of theirs, and the key that they send with; None if no line fits.

    Source: RFC 4568 5.1.2.
    """
    ours = {key.suite: key for key in keys}
    for line in _lines(offered):
        mine = ours.get(line.key.suite)
        # One key for both directions would encrypt two streams alike.
        if mine is not None and mine.key != line.key.key:
            return CryptoLine(line.tag, mine), line.key
    return None


def match_crypto(offered: Sequence[str], answered: Sequence[str]) -> tuple[SrtpKey, SrtpKey] | None:
    """
    Return the keys of an answer: ours of the line it names, and theirs (RFC 4568 5.1.3).

    None if it does not have exactly one line, or we did not offer that line.
    """
    if len(answered) != 1:
        return None
    theirs = parse_crypto(answered[0])
    if theirs is None:
        return None
    for line in _lines(offered):
        if line.tag == theirs.tag:
            fits = line.key.suite == theirs.key.suite and line.key.key != theirs.key.key
            return (line.key, theirs.key) if fits else None
    return None


def _lines(values: Sequence[str]) -> list[CryptoLine]:
    """Return the usable lines; of several with one tag, the first."""
    found: dict[int, CryptoLine] = {}
    for value in values[:_MAX_LINES]:
        line = parse_crypto(value)
        if line is not None:
            found.setdefault(line.tag, line)
    return list(found.values())


def _inline_key(text: str) -> bytes | None:
    """Return key and salt of an `inline:` that has at most a lifetime after them, or None."""
    method, _, info = text.partition(":")
    encoded, *rest = info.split("|")
    if method.lower() != "inline" or len(rest) > 1 or not all(map(_is_lifetime, rest)):
        return None
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    # Decoding ignores bits after the last byte; a key must have its canonical form.
    return key if base64.b64encode(key).decode("ascii") == encoded else None


def _is_lifetime(text: str) -> bool:
    found = _LIFETIME.match(text)
    if found is None:
        return False
    power, number = found.groups()
    return 1 <= (2 ** int(power) if power else int(number)) <= _MAX_LIFETIME_PACKETS


def _is_harmless(parameter: str) -> bool:
    """True if a session parameter may be ignored: hints, and those with a dash (RFC 4568 6.3.7)."""
    return not parameter or parameter.startswith("-") or _WINDOW_HINT.match(parameter) is not None
