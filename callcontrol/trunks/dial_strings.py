"""Telephone numbers in the user part of a SIP address, as the switch behind a gateway would read them."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from callcontrol.trunks.number_format import to_e164

# What switches and dial plans take for the end of a number, or for something beside it: of prefixes (* and
# #), parameters, lists, and escapes that somebody may undo once more.
_BREAKS: Final = re.compile(r"[^0-9A-Za-z+().\- ]+", re.ASCII)
_DIALLED: Final = re.compile(r"[+0-9().\- ]+", re.ASCII)
_SEPARATORS: Final = re.compile(r"[().\- ]", re.ASCII)
_WITHIN_NAME: Final = re.compile(r"\+?[0-9]{7,}", re.ASCII)
_CONTEXT: Final = re.compile(r";phone-context=(\+[0-9().\-]+)", re.ASCII | re.IGNORECASE)
_LEAST_WITH_COUNTRY_CODE: Final = 11
"""Digits from which a switch may take a number without a plus for an international one."""


def dialled_numbers(user: str) -> list[str]:
    """
    The numbers a user part may dial, in E.164 with ``+`` as far as it can be told; none for most names.

    A plus, 00 and the bare digits of a country code lead abroad, wherever they stand: behind a prefix, before
    a ``#``, within a name, or in a parameter such as the routing number of RFC 4694. A shorter number is a
    national one, if it is one at all.
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
    """What is dialled of a part: all of it, or of a name the runs of digits in it."""
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
