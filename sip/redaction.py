"""
Redaction of secrets in copies of messages.

Redacted are answers to challenges, from which passwords can be guessed, and the keys of encrypted media in
session descriptions (RFC 4568, and the k= line of RFC 4566).
"""

from __future__ import annotations

import re

# A folded value continues on the following lines.
_CREDENTIALS = re.compile(
    rb"^((?:Proxy-)?Authorization[ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*", re.IGNORECASE | re.MULTILINE
)
# Matches anywhere in the message, since a truncated or malformed one must not show a key either.
_MEDIA_KEY = re.compile(rb"(\binline[ \t]*:)[ \t]*[^\s]+|^(k=)[^\r\n]+", re.IGNORECASE | re.MULTILINE)


def withhold_secrets(message: bytes) -> bytes:
    """Return the message without the values of its Authorization header fields and its media keys."""
    return _MEDIA_KEY.sub(rb"\1\2(withheld)", _CREDENTIALS.sub(rb"\1 (withheld)", message))
