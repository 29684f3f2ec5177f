"""
Links that open one recording for an hour to any holder.

A link carries its expiry and a digest over the expiry, the call and its account. Nothing is stored: every
server with the key of the secrets accepts it, and nobody without that key can make or change one.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from callcontrol.calls.recording import recording_url
from callcontrol.database.encryption import Cipher

LINK_VALID: Final = timedelta(hours=1)
"""Validity of a link."""

_PURPOSE: Final = "recording link"
_EXPIRES: Final = re.compile(r"[1-9][0-9]{9,11}")
# Lower case only: each link has one spelling, so a changed one is never accepted.
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}")


class RecordingLinks:
    """Makes links to recordings and verifies them."""

    def __init__(self, digests: Cipher) -> None:
        self._digests = digests

    def link(self, account_sid: str, call_sid: str, now: datetime) -> str:
        """Path and query that open a call's recording until ``LINK_VALID`` from ``now``."""
        expires = str(int((now + LINK_VALID).timestamp()))
        signature = self._digests.digest(_PURPOSE, _signed(account_sid, call_sid, expires)).hex()
        return f"{recording_url(call_sid)}?expires={expires}&signature={signature}"

    def opens(self, account_sid: str, call_sid: str, query: Mapping[str, str], now: datetime) -> bool:
        """Return True if ``query`` is of a link made for the call that has not expired."""
        if not may_open(query, now):
            return False
        signed = _signed(account_sid, call_sid, query["expires"])
        return self._digests.matches(_PURPOSE, signed, bytes.fromhex(query["signature"]))


def may_open(query: Mapping[str, str], now: datetime) -> bool:
    """Return True if a query has the form of a link and has not expired; others open no recording."""
    expires, signature = query.get("expires", ""), query.get("signature", "")
    if _EXPIRES.fullmatch(expires) is None or _SIGNATURE.fullmatch(signature) is None:
        return False
    return now.timestamp() < int(expires)


def _signed(account_sid: str, call_sid: str, expires: str) -> bytes:
    """Signed bytes of a link; no part can hold a line feed, so the parts stay distinct."""
    return f"{account_sid}\n{call_sid}\n{expires}".encode()
