"""
What a copy of a message must not show.

The answers to challenges, from which passwords can be guessed, and the keys of encrypted media in session
descriptions (RFC 4568, and the k= line of RFC 4566).
"""

from __future__ import annotations

import re

__all__ = ["withhold_secrets"]

# A folded value goes on in the lines after it.
_CREDENTIALS = re.compile(
    rb"^((?:Proxy-)?Authorization[ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*", re.IGNORECASE | re.MULTILINE
)
# Wherever it stands, since a message that is cut off or malformed must not show a key either.
_MEDIA_KEY = re.compile(rb"(\binline[ \t]*:)[ \t]*[^\s]+|^(k=)[^\r\n]+", re.IGNORECASE | re.MULTILINE)


def withhold_secrets(message: bytes) -> bytes:
    """The message with the values of its Authorization header fields and the keys of its media left out."""
    return _MEDIA_KEY.sub(rb"\1\2(withheld)", _CREDENTIALS.sub(rb"\1 (withheld)", message))
