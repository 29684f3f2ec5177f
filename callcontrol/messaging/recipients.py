"""Phone numbers of those whom accounts write to."""

import re
from typing import Final

from callcontrol.trunks.number_format import to_e164

__all__ = ["MAX_RECIPIENT_CHARS", "recipient_number"]

MAX_RECIPIENT_CHARS: Final = 40
"""The longest spelling of a number that is read, separators and all."""

_SEPARATORS: Final = str.maketrans("", "", " -.()\u00a0")
_WRITTEN: Final = re.compile(r"\+[0-9 .()\u00a0-]+", re.ASCII)


def recipient_number(text: str) -> str | None:
    """
    A number in E.164, such as ``+919876543210``; None when it is none.

    It has to begin with ``+`` and its country code; spaces, hyphens, dots and brackets are left out, so that
    each number has one spelling however it was typed. What counts as a number is what the numbering plans
    hold possible, as for calls: they hear of new ranges late.
    """
    if len(text) > MAX_RECIPIENT_CHARS or _WRITTEN.fullmatch(text) is None:
        return None
    return to_e164(text.translate(_SEPARATORS))
