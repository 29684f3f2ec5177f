"""Keys of encrypted media, from the system's random source."""

from __future__ import annotations

import secrets
from typing import Final

from media.sdp.crypto import KEY_BYTES
from media.types import SrtpKey, SrtpSuite

__all__ = ["make_srtp_keys"]

# The suite that everybody has goes first; the short tags last.
_PREFERENCE: Final[tuple[SrtpSuite, ...]] = (
    "AES_CM_128_HMAC_SHA1_80",
    "AES_256_CM_HMAC_SHA1_80",
    "AES_CM_128_HMAC_SHA1_32",
    "AES_256_CM_HMAC_SHA1_32",
)


def make_srtp_keys() -> tuple[SrtpKey, ...]:
    """A fresh key for each suite, in order of preference; for one session, whose keys nobody else has."""
    return tuple(SrtpKey(suite, secrets.token_bytes(KEY_BYTES[suite])) for suite in _PREFERENCE)
