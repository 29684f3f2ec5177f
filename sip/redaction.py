"""What a copy of a message must not show: the answers to challenges, from which passwords can be guessed."""

from __future__ import annotations

import re

__all__ = ["withhold_secrets"]

# A folded value goes on in the lines after it.
_CREDENTIALS = re.compile(
    rb"^((?:Proxy-)?Authorization[ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*", re.IGNORECASE | re.MULTILINE
)


def withhold_secrets(message: bytes) -> bytes:
    """The message with the values of its Authorization header fields left out."""
    return _CREDENTIALS.sub(rb"\1 (withheld)", message)
