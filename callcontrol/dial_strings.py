"""Telephone numbers in the user part of a SIP address, as the switch behind a gateway would read them."""

import re
from typing import Final
from urllib.parse import unquote

from callcontrol.number_format import to_e164

_DIALLED: Final = re.compile(r"[+0-9*#().\- ]+", re.ASCII)
_SEPARATORS: Final = re.compile(r"[().\- ]", re.ASCII)
_PREFIXED: Final = re.compile(r"[*#]")
_LEAST_WITH_COUNTRY_CODE: Final = 11
"""Digits from which a switch may take a number without a plus for an international one."""


def dialled_number(user: str) -> str | None:
    """
    The number a user part dials, in E.164 with ``+`` as far as it can be told; None for a name or extension.

    A plus, 00 and the bare digits of a country code lead abroad; so does any of them behind a prefix that
    ends with ``*`` or ``#``. A shorter number is a national one, if it is one at all.
    """
    text = unquote(user).partition(";")[0]
    if _DIALLED.fullmatch(text) is None:
        return None
    digits = _PREFIXED.split(_SEPARATORS.sub("", text))[-1]
    if digits.startswith("+"):
        return digits
    if digits.startswith("00"):
        return "+" + digits[2:]
    national = to_e164(digits)
    if national is not None or len(digits) < _LEAST_WITH_COUNTRY_CODE:
        return national
    return "+" + digits
