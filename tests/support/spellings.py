"""A telephone number as it may be hidden in bytes: in digits, in other alphabets, and summed."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator

__all__ = ["found_in", "forms", "spellings"]

_SEPARATORS = re.compile(rb"(?<=\d)[ \-.()/_]{1,2}(?=\d)")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def forms(national: str) -> list[str]:
    """Return the ways in which people and machines write an Indian number of ten digits."""
    return [national, f"+91{national}", f"91{national}", f"0{national}", f"0091{national}"]


def spellings(national: str) -> dict[str, bytes]:
    """Every spelling that is looked for, by its name; case matters only where two letters differ."""
    listed = {"digits": national.encode()}
    for form in forms(national):
        text = form.encode()
        listed[f"hex of {form}"] = text.hex().encode()
        listed[f"base32 of {form}"] = base64.b32encode(text).rstrip(b"=")
        listed[f"UTF-16 of {form}"] = form.encode("utf-16-le")
        for name in ("md5", "sha1", "sha256"):
            digest = hashlib.new(name, text).digest()
            listed[f"{name} of {form}"] = digest.hex().encode()
            listed[f"{name} of {form}, packed"] = digest
            listed[f"{name} of {form}, base64"] = base64.b64encode(digest).rstrip(b"=")
        listed[f"number {form}"] = int(form).to_bytes(5 if int(form) < 2**40 else 6, "big")
    # Wherever it stands in a longer text, three alignments of the same digits in base64 are all there are.
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + national.encode())
        first, last = (-(-shift * 8 // 6), (shift + len(national)) * 8 // 6)
        listed[f"base64 at {shift}"] = encoded[first:last]
    listed["BCD"] = bytes.fromhex(national)
    listed["BCD, swapped as in SS7"] = bytes.fromhex(
        "".join(b + a for a, b in zip(*[iter(national)] * 2, strict=True))
    )
    listed["backwards"] = national[::-1].encode()
    return {name: spelling for name, spelling in listed.items() if len(spelling) >= 5}


def found_in(data: bytes, national: str) -> list[str]:
    """The names of the spellings of a number that stand in the bytes, however escaped or grouped."""
    listed = spellings(national)
    return sorted({name for text in _readings(data) for name, spelling in listed.items() if spelling in text})


def _readings(data: bytes) -> Iterator[bytes]:
    """The bytes as they are, in one case, with escapes read, and with groups of digits joined."""
    yield data
    yield data.lower()
    escaped = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), data)
    yield escaped
    yield _SEPARATORS.sub(b"", escaped)
