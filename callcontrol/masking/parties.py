"""Parties of masked calls: validation of their numbers, and the range of the time limit."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

import phonenumbers
from phonenumbers import PhoneNumberType

from callcontrol.e164 import parsed_number, read_number
from callcontrol.errors import FieldError

MIN_DURATION_S: Final = 10
MAX_DURATION_S: Final = 7200
"""Range of the limit of the time that two parties talk."""

NOT_A_MOBILE: Final = "must be an Indian mobile number, such as 9812345678"
"""Error of a party that is no Indian mobile number."""

_SUBSCRIBER: Final = re.compile(r"\+91[6-9][0-9]{9}", re.ASCII)
_IS_MASKED: Final = "must be a subscriber's number, not one of your masked numbers"
_MOBILES: Final = frozenset({PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE})


def mobile_of(text: str) -> str | None:
    """An Indian mobile number in E.164, whatever its writing; None when the text is something else."""
    try:
        number = read_number(text)
    except ValueError:
        return None
    return number if _SUBSCRIBER.fullmatch(number) and _is_mobile(number) else None


@lru_cache(maxsize=1024)
def _is_mobile(number: str) -> bool:
    # A request is checked several times: when it is read, and when it is carried out.
    parsed = parsed_number(number, None)
    if parsed is None or not phonenumbers.is_valid_number(parsed):
        return False
    return phonenumbers.number_type(parsed) in _MOBILES


def number_errors(party_a: object, party_b: object) -> list[FieldError]:
    """All errors in two parties; values that are not text are left to the schema."""
    errors = [
        FieldError(field, NOT_A_MOBILE)
        for field, given in (("party_a", party_a), ("party_b", party_b))
        if isinstance(given, str) and mobile_of(given) is None
    ]
    if errors or not isinstance(party_a, str) or not isinstance(party_b, str):
        return errors
    if mobile_of(party_a) == mobile_of(party_b):
        return [FieldError("party_b", "must be another number than party_a")]
    return []


def masked_errors(party_a: str, party_b: str, masked: Collection[str]) -> list[FieldError]:
    """
    Errors in two parties in E.164, given the masked numbers of their account.

    A masked number called by another would call again, in an endless loop.
    """
    return [
        FieldError(field, _IS_MASKED)
        for field, number in (("party_a", party_a), ("party_b", party_b))
        if number in masked
    ]
