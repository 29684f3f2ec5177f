"""Telephone numbers in the user part of a SIP address, as a switch behind a gateway reads them."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from callcontrol.trunks.number_format import to_e164

# Characters that switches and dial plans treat as the end of a number or as a separator: prefixes (* and #),
# parameters, lists, and escapes that a later hop may decode again.
_BREAKS: Final = re.compile(r"[^0-9A-Za-z+().\- ]+", re.ASCII)
_DIALLED: Final = re.compile(r"[+0-9().\- ]+", re.ASCII)
_SEPARATORS: Final = re.compile(r"[().\- ]", re.ASCII)
_WITHIN_NAME: Final = re.compile(r"\+?[0-9]{7,}", re.ASCII)
_CONTEXT: Final = re.compile(r";phone-context=(\+[0-9().\-]+)", re.ASCII | re.IGNORECASE)
_LEAST_WITH_COUNTRY_CODE: Final = 11
"""Shortest number without a plus, in digits, that a switch may treat as international."""


def dialled_numbers(user: str) -> list[str]:
    """
    Numbers that a user part may dial, in E.164 with ``+`` where possible; none for most names.

    A plus, 00 and the bare digits of a country code dial abroad, wherever they appear: behind a prefix,
    before a ``#``, within a name, or in a parameter, e.g. the routing number of RFC 4694. A shorter number is
    national, or no number at all.
    """
    text = unquote(user)
    context = _CONTEXT.search(text)
    if context is not None:
        text = text[: context.start()] + text[context.end() :]
        if not text.startswith("+"):
            text = context[1] + text  # RFC 3966 5.1.5
    numbers = (_read(piece) for part in _BREAKS.split(text) for piece in _pieces(part))
    return [number for number in numbers if number is not None]


def _pieces(part: str) -> Iterator[str]:
    """Dialled digits of a part: all of it or, of a name, its runs of seven or more digits."""
    if not part:
        return
    if _DIALLED.fullmatch(part) is not None:
        yield _SEPARATORS.sub("", part)
    else:
        yield from _WITHIN_NAME.findall(part)


def _read(digits: str) -> str | None:
    if digits.startswith("+"):
        return digits
    if digits.startswith("00"):
        return "+" + digits[2:]
    national = to_e164(digits)
    if national is not None or len(digits) < _LEAST_WITH_COUNTRY_CODE:
        return national
    return "+" + digits
