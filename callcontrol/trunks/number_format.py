"""
Telephone numbers in SIP addresses: written in the carrier's format, read in every common format.

Internally a number is E.164 with ``+``. A carrier's format is its ``number_format``, ``e164_leading_plus``
and ``tech_prefix``; numbers from a carrier are read leniently, in its own format first.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

import phonenumbers

from callcontrol.e164 import (
    CACHED_NUMBERS,
    HOME_REGION,
    SEPARATORS,
    is_valid,
    national_number,
    parsed_number,
    to_e164,
)
from callcontrol.models import Carrier
from sip import SipUri

_MAX_USER_CHARS: Final = 256
_INTERNATIONAL: Final = "00"
USER_SAFE: Final = "-_.!~*'()&=+$,;?/"  # beside letters and digits (RFC 3261 25.1, user)
_CONTEXT: Final = re.compile(r"\+[0-9.()-]{1,20}", re.ASCII)
_PLAIN: Final = re.compile(r"\+?[0-9]+", re.ASCII)

# Characters that switches and dial plans treat as the end of a number or as a separator: prefixes (* and #),
# parameters, lists, and escapes that a later hop may decode again.
_BREAKS: Final = re.compile(r"[^0-9A-Za-z+().\- ]+", re.ASCII)
_DIALLED: Final = re.compile(r"[+0-9().\- ]+", re.ASCII)
_WITHIN_NAME: Final = re.compile(r"\+?[0-9]{7,}", re.ASCII)
_CONTEXT_PARAM: Final = re.compile(r";phone-context=(\+[0-9().\-]+)", re.ASCII | re.IGNORECASE)
_LEAST_WITH_COUNTRY_CODE: Final = 11
"""Shortest number without a plus, in digits, that a switch may treat as international."""


# --- writing ------------------------------------------------------------------------------------------------


def user_for(carrier: Carrier, number: str) -> str:
    """
    Write an E.164 number in the carrier's format, escaped for the user part of an address.

    A technical prefix replaces ``+``. Numbers of other countries have no national form: a carrier with a
    national format gets them with ``+`` or, if it wants none, with 00.
    """
    if not carrier.tech_prefix:
        return _written(carrier, number, plus=carrier.e164_leading_plus)
    return quote(carrier.tech_prefix, safe=USER_SAFE) + _written(carrier, number, plus=False)


def caller_user_for(carrier: Carrier, number: str) -> str:
    """Write a caller's E.164 number in the carrier's format, without the technical prefix."""
    return _written(carrier, number, plus=carrier.e164_leading_plus)


def _written(carrier: Carrier, number: str, *, plus: bool) -> str:
    digits = number.removeprefix("+")
    if carrier.number_format == "e164":
        return f"+{digits}" if plus else digits
    national = _home_form(f"+{digits}", carrier.number_format == "national")
    if national is not None:
        return national
    return f"+{digits}" if plus else _INTERNATIONAL + digits


@lru_cache(CACHED_NUMBERS)
def _home_form(number: str, with_trunk_prefix: bool) -> str | None:
    """Number of the home region without its country code; None for any other."""
    parsed = parsed_number(number, None)
    if parsed is None or parsed.country_code != phonenumbers.country_code_for_region(HOME_REGION):
        return None
    significant = phonenumbers.national_significant_number(parsed)
    if not with_trunk_prefix:
        return significant
    if not phonenumbers.is_valid_number(parsed):
        return f"0{significant}"
    # Toll-free numbers are dialled without the trunk prefix; the numbering plan lists them.
    written = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.NATIONAL)
    return "".join(character for character in written if character.isdecimal())


# --- reading ------------------------------------------------------------------------------------------------


def user_of(uri: SipUri) -> str:
    """
    User part of an address, with its ``phone-context`` if it has one.

    Source: RFC 3966 5.1.5, RFC 3261 19.1.6.
    """
    user = uri.user or ""
    context = uri.param("phone-context") if uri.scheme == "tel" else None
    return f"{user};phone-context={context}" if context else user


def number_in(user: str, carrier: Carrier | None = None) -> str | None:
    """E.164 number in the user part of an address, or None; see ``numbers_in``."""
    return next(iter(numbers_in(user, carrier)), None)


def caller_number_in(user: str, carrier: Carrier) -> str | None:
    """
    E.164 number of a caller in the user part of an address, or None.

    A technical prefix is for called numbers, so its digits count as part of the caller's number; the prefix
    is removed only if the text is no number otherwise.
    """
    if not carrier.tech_prefix:
        return number_in(user, carrier)
    return number_in(user, replace(carrier, tech_prefix=None)) or number_in(user, carrier)


def numbers_in(user: str, carrier: Carrier | None = None) -> Iterable[str]:
    """
    Numbers that the user part of an address may mean, likeliest first.

    Carriers write one number as ``+9180...``, ``9180...``, ``009180...``, ``080...`` or ``80...``, with
    visual separators, with a ``phone-context``, or behind their technical prefix. Ambiguous digits are read
    in the carrier's own format first.
    """
    if len(user) > _MAX_USER_CHARS:
        return ()
    if user.startswith("+") and _PLAIN.fullmatch(user):
        number = to_e164(user)  # the common form
        return () if number is None else (number,)
    return _all_readings(user, carrier)


def _all_readings(user: str, carrier: Carrier | None) -> Iterator[str]:
    bare, _, params = user.partition(";")
    bare = unquote(bare)
    seen: set[str] = set()
    for text, plus in _without_prefix(bare, carrier):
        for number in _readings(text.translate(SEPARATORS), _context(params), carrier, plus=plus):
            if number not in seen:
                seen.add(number)
                yield number


def _without_prefix(text: str, carrier: Carrier | None) -> Iterator[tuple[str, bool]]:
    """Text without the technical prefix, then unchanged; each with True if E.164 would have a ``+``."""
    prefix = carrier.tech_prefix if carrier is not None else None
    if prefix and text.startswith(prefix):
        yield text[len(prefix) :], False
    yield text, carrier is None or carrier.e164_leading_plus


def _context(params: str) -> str:
    """Digits that a ``phone-context`` puts before a local number; "" without one or with a domain."""
    for param in params.split(";"):
        name, _, value = param.partition("=")
        if name.strip().lower() == "phone-context" and _CONTEXT.fullmatch(value):
            return value.translate(SEPARATORS)
    return ""


def _readings(text: str, context: str, carrier: Carrier | None, *, plus: bool) -> Iterator[str]:
    if not _PLAIN.fullmatch(text):
        return
    if text.startswith("+"):
        readings = [to_e164(text)]
    elif context:
        readings = [to_e164(context + text), to_e164(text)]
    elif text.startswith(_INTERNATIONAL):
        readings = [to_e164("+" + text.removeprefix(_INTERNATIONAL))]
    else:
        readings = _bare_readings(text, carrier, plus=plus)
    yield from (number for number in readings if number is not None)


def _bare_readings(digits: str, carrier: Carrier | None, *, plus: bool) -> list[str | None]:
    """Numbers that bare digits may mean: national, or international without ``+``."""
    international = to_e164("+" + digits)
    if carrier is not None and carrier.number_format != "e164":
        return [national_number(digits), international]
    if not plus and international is not None and is_valid(international):
        return [international, to_e164(digits)]
    return [to_e164(digits), international]


# --- dialling -----------------------------------------------------------------------------------------------


def dialled_numbers(user: str) -> tuple[str, ...]:
    """
    Numbers that a user part may dial, in E.164 with ``+`` where possible; none for most names.

    A plus, 00 and the bare digits of a country code dial abroad, wherever they appear: behind a prefix,
    before a ``#``, within a name, or in a parameter, e.g. the routing number of RFC 4694. A shorter number is
    national, or no number at all.
    """
    # The address may be a peer's, of any length, and what is remembered is bounded.
    return _dialled_numbers(user) if len(user) <= _MAX_USER_CHARS else _dialled_numbers.__wrapped__(user)


@lru_cache(maxsize=1024)
def _dialled_numbers(user: str) -> tuple[str, ...]:
    text = unquote(user)
    context = _CONTEXT_PARAM.search(text)
    if context is not None:
        text = text[: context.start()] + text[context.end() :]
        if not text.startswith("+"):
            text = context[1] + text  # RFC 3966 5.1.5
    numbers = (_e164_of(piece) for part in _BREAKS.split(text) for piece in _pieces(part))
    return tuple(number for number in numbers if number is not None)


def _pieces(part: str) -> Iterator[str]:
    """Dialled digits of a part: all of it or, of a name, its runs of seven or more digits."""
    if not part:
        return
    if _DIALLED.fullmatch(part) is not None:
        yield part.translate(SEPARATORS)
    else:
        yield from _WITHIN_NAME.findall(part)


def _e164_of(digits: str) -> str | None:
    if digits.startswith("+"):
        return digits
    if digits.startswith("00"):
        return "+" + digits[2:]
    national = to_e164(digits)
    if national is not None or len(digits) < _LEAST_WITH_COUNTRY_CODE:
        return national
    return "+" + digits
