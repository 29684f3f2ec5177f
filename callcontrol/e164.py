"""
Telephone numbers in E.164, read from the writings that people and programs use.

Numbers without a country code belong to the home region. Numbers in SIP addresses, which carriers write in
formats of their own, are read by ``callcontrol.trunks.number_format``.
"""

import re
from functools import lru_cache
from typing import Final

import phonenumbers

HOME_REGION: Final = "IN"
"""Region of numbers written without a country code."""

NOT_A_NUMBER: Final = "must be a telephone number, such as +919876543210, 919876543210 or 9876543210"
"""Error of a field that is no telephone number."""

CACHED_NUMBERS: Final = 2048
"""
Numbers that each function here remembers: those of the calls of the last minute, and the usual ones.

A number is read several times within its call, and reading it takes up to 50 µs. Where each call has
numbers of its own, more of them would only take memory.
"""

MAX_NUMBER_CHARS: Final = 64
"""Longest writing that is read."""

# Visual separators (RFC 3966 3), the spaces and hyphens that word processors put in their place, and the
# marks of writing direction that address books copy along.
SEPARATORS: Final = str.maketrans(
    "", "", "-.() \u00a0\u2009\u202f\u2010\u2011\u2012\u2013\u200e\u202a\u202c\u202d"
)

_HOME_CODE: Final = "+91"
_HOME_DIGITS: Final = 10
_INTERNATIONAL: Final = "00"
_TEL: Final = "tel:"
_CONTEXT: Final = re.compile(r"phone-context=(\+[0-9.()-]{1,20})", re.ASCII | re.IGNORECASE)

# Digits of a number with its country code. Shorter ones are national numbers, or none.
_MIN_WITH_CODE: Final = 11
_MAX_WITH_CODE: Final = 15


def read_number(text: str) -> str:
    """
    Return a number in E.164 with ``+``, whatever its writing.

    Read are E.164, the same without ``+`` or with 00, national numbers with and without the trunk prefix 0,
    and ``tel:`` URIs; each with spaces, hyphens, dots and parentheses. Ten digits are a number of the home
    region. Eleven to fifteen are the number of a country with its code, or a longer number of the home
    region, such as a toll-free one; digits that are both are ambiguous, and refused. A number of the home
    region has ten digits, or is one that the numbering plan lists.

    Raises:
        ValueError: The text is no possible telephone number, or an ambiguous one; the message is
            ``NOT_A_NUMBER``, or names the two numbers.

    Source: RFC 3966 3 and 5.1; ITU-T E.164.
    """
    number = _read(text) if len(text) <= MAX_NUMBER_CHARS else None
    # Behind two trunk prefixes a number would be another one each time it is read.
    if number is None or to_e164(number) != number:
        raise ValueError(NOT_A_NUMBER)
    # Services of the home region have eight to thirteen digits, so a subscriber's number that lacks some
    # would be possible there.
    if number.startswith(_HOME_CODE) and not (_is_subscriber(number) or is_valid(number)):
        raise ValueError(NOT_A_NUMBER)
    return number


def _read(text: str) -> str | None:
    if text[: len(_TEL)].lower() == _TEL:
        text = _global_number(text[len(_TEL) :])
    digits = text.translate(SEPARATORS)
    if digits.startswith("+"):
        return to_e164(digits)
    if digits.startswith(_INTERNATIONAL):
        return to_e164("+" + digits.removeprefix(_INTERNATIONAL))
    return to_e164(digits) or _long_number(digits)


def _global_number(subscriber: str) -> str:
    """
    The number of a ``tel:`` URI behind its context; "" when a parameter makes it something else.

    An extension or a subaddress names a destination behind the number, and a domain as context one that only
    its owner can reach.
    """
    number, *params = subscriber.split(";")
    if not params:
        return number
    context = _CONTEXT.fullmatch(params[0])
    if context is None or len(params) > 1:
        return ""
    return number if number.startswith("+") else context[1] + number


def _long_number(digits: str) -> str | None:
    """
    A number with its country code, or one of the home region with more digits than usual.

    Raises:
        ValueError: It is both; the message names the two.
    """
    if not (digits.isascii() and digits.isdecimal() and _MIN_WITH_CODE <= len(digits) <= _MAX_WITH_CODE):
        return None
    readings = {number for number in (_with_country_code(digits), national_number(digits)) if number}
    if len(readings) > 1:
        raise ValueError(f"is a telephone number of two countries: write {' or '.join(sorted(readings))}")
    return readings.pop() if readings else None


def _with_country_code(digits: str) -> str | None:
    """The number of digits that begin with a country code; of the home region also one of a new range."""
    number = to_e164("+" + digits)
    if number is None:
        return None
    return number if _is_subscriber(number) or is_valid(number) else None


def _is_subscriber(number: str) -> bool:
    """True for a number of the home region with as many digits as subscribers have, in E.164."""
    return number.startswith(_HOME_CODE) and len(number) == len(_HOME_CODE) + _HOME_DIGITS


@lru_cache(CACHED_NUMBERS)
def to_e164(text: str) -> str | None:
    """
    Normalize a number to E.164; text without ``+`` must be a national number of ten digits, else None.

    Parsing is expensive, so results are cached.
    """
    digits = text[1:] if text.startswith("+") else text
    if not digits.isascii() or not digits.isdecimal():
        return None
    if not text.startswith("+") and len(text.removeprefix("0")) != _HOME_DIGITS:
        return None
    return possible_number(text, None if text.startswith("+") else HOME_REGION)


@lru_cache(CACHED_NUMBERS)
def national_number(digits: str) -> str | None:
    """The number of the home region of ten digits, or of another valid length, e.g. a toll-free number."""
    number = to_e164(digits)
    if number is None:
        number = possible_number(digits, HOME_REGION)
        number = number if number is not None and is_valid(number) else None
    return number


@lru_cache(CACHED_NUMBERS)
def parsed_number(text: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    """
    Parse a number; None if it is invalid. The result is cached and shared: do not modify it.

    Parsing is expensive, and every dialled number is checked for its format, its country and its type.
    """
    try:
        return phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None


def possible_number(text: str, region: str | None) -> str | None:
    """The number in E.164 if its country has numbers of that length, else None."""
    parsed = parsed_number(text, region)
    if parsed is None or not phonenumbers.is_possible_number(parsed):
        return None
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


@lru_cache(CACHED_NUMBERS)
def is_valid(number: str) -> bool:
    """True if the numbering plan of its country has a number, given in E.164."""
    parsed = parsed_number(number, None)
    return parsed is not None and phonenumbers.is_valid_number(parsed)
