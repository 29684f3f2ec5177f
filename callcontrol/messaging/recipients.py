"""Phone numbers of message recipients."""

import re
from typing import Final

from callcontrol.trunks.number_format import to_e164

__all__ = ["MAX_RECIPIENT_CHARS", "recipient_number"]

MAX_RECIPIENT_CHARS: Final = 40
"""The longest accepted spelling of a number, with separators."""

_SEPARATORS: Final = str.maketrans("", "", " -.()\u00a0")
_WRITTEN: Final = re.compile(r"\+[0-9 .()\u00a0-]+", re.ASCII)


def recipient_number(text: str) -> str | None:
    """
    The number in E.164, such as ``+919876543210``; None when the text is no number.

    It has to begin with ``+`` and its country code; spaces, hyphens, dots and brackets are removed, so that
    each number has one spelling. As for calls, any number that the numbering plans call possible is valid:
    the plans learn of new ranges late.
    """
    if len(text) > MAX_RECIPIENT_CHARS or _WRITTEN.fullmatch(text) is None:
        return None
    return to_e164(text.translate(_SEPARATORS))
