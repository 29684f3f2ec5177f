"""SRTP keys from the system's random source."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final

from media.sdp import LocalMedia
from media.sdp.crypto import KEY_BYTES
from media.types import SrtpKey, SrtpSuite

# The most common suite first; suites with short tags last.
_PREFERENCE: Final[tuple[SrtpSuite, ...]] = (
    "AES_CM_128_HMAC_SHA1_80",
    "AES_256_CM_HMAC_SHA1_80",
    "AES_CM_128_HMAC_SHA1_32",
    "AES_256_CM_HMAC_SHA1_32",
)


def make_srtp_keys() -> tuple[SrtpKey, ...]:
    """Return a new key for each suite, in order of preference, for one session only."""
    return tuple(map(_fresh, _PREFERENCE))


def retire_srtp_key(before: LocalMedia, after: LocalMedia) -> LocalMedia:
    """
    Return `after` with a new key for the suite that was in use `before` and no longer is.

    If the suite is negotiated again, its packet count starts at zero; with the old key it would repeat the
    keystream of the first packets (RFC 3711 9.1).
    """
    retired, agreed = before.srtp_agreed, after.srtp_agreed
    if retired is None or (agreed is not None and agreed.suite == retired.suite):
        return after
    keys = tuple(_fresh(key.suite) if key.suite == retired.suite else key for key in after.srtp_keys)
    return replace(after, srtp_keys=keys)


def _fresh(suite: SrtpSuite) -> SrtpKey:
    return SrtpKey(suite, secrets.token_bytes(KEY_BYTES[suite]))
