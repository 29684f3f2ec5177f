"""
Links that open one recording for an hour, to whoever holds them.

A link carries when it ends and a digest over that, the call and its account. Nothing is stored of it: every
server with the key of the secrets opens it, and nobody without that key can make one or change one.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol

from callcontrol.calls.recording import recording_url

LINK_VALID: Final = timedelta(hours=1)
"""How long a link opens its recording."""

_PURPOSE: Final = "recording link"
_EXPIRES: Final = re.compile(r"[1-9][0-9]{9,11}")
# Digits of one case: each link has one spelling, so a changed one never opens.
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}")


class Digests(Protocol):
    """Makes and recognises digests under a key; see ``callcontrol.secrets.aio.SecretBox``."""

    def digest(self, purpose: str, data: bytes) -> bytes:
        """What ``data`` is recognised by."""

    def matches(self, purpose: str, data: bytes, digest: bytes) -> bool:
        """Whether ``digest`` is that of ``data``; takes the same time either way."""


class RecordingLinks:
    """Makes links to recordings, and judges those that come back."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests

    def link(self, account_sid: str, call_sid: str, now: datetime) -> str:
        """The path and query that open a call's recording until ``LINK_VALID`` from ``now``."""
        expires = str(int((now + LINK_VALID).timestamp()))
        signature = self._digests.digest(_PURPOSE, _signed(account_sid, call_sid, expires)).hex()
        return f"{recording_url(call_sid)}?expires={expires}&signature={signature}"

    def opens(self, account_sid: str, call_sid: str, query: Mapping[str, str], now: datetime) -> bool:
        """Whether ``query`` is that of a link that was made for the call and has not ended."""
        if not may_open(query, now):
            return False
        signed = _signed(account_sid, call_sid, query["expires"])
        return self._digests.matches(_PURPOSE, signed, bytes.fromhex(query["signature"]))


def may_open(query: Mapping[str, str], now: datetime) -> bool:
    """Whether a query has the form of a link and has not ended; any other opens no recording at all."""
    expires, signature = query.get("expires", ""), query.get("signature", "")
    if _EXPIRES.fullmatch(expires) is None or _SIGNATURE.fullmatch(signature) is None:
        return False
    return now.timestamp() < int(expires)


def _signed(account_sid: str, call_sid: str, expires: str) -> bytes:
    """What the digest is over; none of the parts can hold a line feed, so none can run into another."""
    return f"{account_sid}\n{call_sid}\n{expires}".encode()
