"""Targets of calls: E.164 numbers, SIP addresses, permitted countries, and failover of gateways."""

from collections.abc import Collection
from functools import lru_cache
from typing import Final

import phonenumbers
from phonenumbers import PhoneNumberType, ValidationResult

from callcontrol.e164 import CACHED_NUMBERS, parsed_number, read_number
from callcontrol.errors import Forbidden, ValidationFailed
from callcontrol.models import CallRecord
from callcontrol.models.parties import IDENTITY, BrowserTarget, Party, PhoneTarget, SipTarget, Target
from callcontrol.trunks.number_format import dialled_numbers
from sip import ParseError, SipUri

_MAX_ADDRESS_CHARS: Final = 256
_BROWSER: Final = "browser:"


def parse_target(text: str, allowed_countries: Collection[str], *, field: str = "to") -> Target:
    """
    Parse a dial target of a customer: a number in any writing, or a ``sip:`` or ``browser:`` address.

    ``allowed_countries`` are ISO 3166 codes; ``field`` names the field in an error.

    Raises:
        ValidationFailed: The text is neither.
        Forbidden: The number is in a country, or of a kind, that may not be dialled.
    """
    target = parse_address(text, field=field)
    check_allowed(target, allowed_countries)
    return target


@lru_cache(maxsize=1024)
def parse_address(text: str, *, field: str = "to") -> Target:
    """
    Parse a number in any writing, or a ``sip:`` or ``browser:`` address, whether or not it may be dialled.

    Raises:
        ValidationFailed: The text is neither.
    """
    if len(text) > _MAX_ADDRESS_CHARS:
        raise ValidationFailed.of(field, f"is longer than {_MAX_ADDRESS_CHARS} characters")
    if text[:4].lower() == "sip:":
        return parse_sip_target(text, field=field)
    if text[: len(_BROWSER)].lower() == _BROWSER:
        return parse_browser_target(text, field=field)
    try:
        return PhoneTarget(read_number(text))
    except ValueError as error:
        raise ValidationFailed.of(field, f"{error}, or a sip: address") from None


def check_allowed(target: Target, allowed_countries: Collection[str]) -> None:
    """
    Reject targets that nobody may dial: the toll-fraud guard.

    Every number in the user part of a SIP address counts, because a switch behind the gateway may dial it;
    names and extensions pass.

    Raises:
        Forbidden: The number is in a country, or of a kind, that may not be dialled.
    """
    if isinstance(target, BrowserTarget):
        return
    numbers = (target.number,) if isinstance(target, PhoneTarget) else dialled_numbers(target.user)
    for number in numbers:
        _check_number(number, allowed_countries)


def _check_number(number: str, allowed_countries: Collection[str]) -> None:
    region = region_of(number)
    if region not in allowed_countries:
        raise Forbidden(
            f"Calls to {number} are not allowed: its country ({region or 'unknown'}) is not among"
            f" {', '.join(sorted(allowed_countries))}. Have the country enabled for this server."
        )
    if _is_premium(number):
        raise Forbidden(f"Calls to {number} are not allowed: it is a premium-rate number.")


def parse_sip_target(text: str, *, field: str = "to") -> SipTarget:
    """
    Parse a ``sip:user@host[:port]`` address without parameters.

    Raises:
        ValidationFailed: The text has another form.
    """
    try:
        uri = SipUri.parse(text)
    except ParseError as error:
        raise ValidationFailed.of(field, f"is no SIP address: {error.reason}") from None
    plain = not uri.params and uri.headers is None and uri.password is None
    if uri.scheme != "sip" or not uri.user or not plain:
        raise ValidationFailed.of(field, "must be sip:user@host or sip:user@host:port")
    return SipTarget(uri.user, uri.host, uri.port)


def parse_browser_target(text: str, *, field: str = "to") -> BrowserTarget:
    """
    Parse ``browser:`` and the name of a telephone in web pages.

    Raises:
        ValidationFailed: The name has another form.
    """
    identity = text[len(_BROWSER) :]
    if IDENTITY.fullmatch(identity) is None:
        message = "must be browser: and a name of 1 to 64 letters, digits and . _ -, the first a letter"
        raise ValidationFailed.of(field, message)
    return BrowserTarget(identity)


def normalise_number(text: str, *, field: str = "to") -> str:
    """
    Return a number in E.164; see ``callcontrol.e164.read_number`` for the writings.

    Raises:
        ValidationFailed: The text is no possible telephone number.
    """
    try:
        return read_number(text)
    except ValueError as error:
        raise ValidationFailed.of(field, str(error)) from None


def parse_transfer_target(
    record: CallRecord,
    to: str,
    caller_id: str | None,
    *,
    ring_timeout_s: float,
    headers: tuple[tuple[str, str], ...] = (),
) -> Party:
    """
    Parse the target of a voice agent's transfer; the default caller-ID is the account's own number.

    Raises:
        ValidationFailed: The target is no number or address, or the caller-ID is no number.
    """
    own = record.to if record.direction == "inbound" else record.from_
    target = parse_address(to)
    shown = normalise_number(caller_id, field="caller_id") if caller_id else own
    return Party(target, shown, ring_timeout_s=ring_timeout_s, headers=headers)


@lru_cache(CACHED_NUMBERS)
def region_of(number: str) -> str | None:
    """
    ISO 3166 code of a number's country; None if unknown.

    A number that the numbering plan does not know (a new range) still counts for the country of its country
    code, if that code belongs to one country only and subscriber numbers there have that length. Longer
    numbers, and zeros after the code, would be another country's number in the national format of a carrier:
    +91 44 20 7123 4567 is 44 20 7123 4567 there.
    """
    parsed = parsed_number(number, None)
    if parsed is None:
        return None
    if phonenumbers.is_valid_number(parsed):
        return phonenumbers.region_code_for_number(parsed)
    sharing = phonenumbers.region_codes_for_country_code(parsed.country_code or 0)
    return sharing[0] if len(sharing) == 1 and _may_be_new(parsed) else None


def _may_be_new(number: phonenumbers.PhoneNumber) -> bool:
    """Return True for the length of a subscriber number with area code, without leading zeros."""
    fits = (
        phonenumbers.is_possible_number_for_type_with_reason(number, kind) == ValidationResult.IS_POSSIBLE
        for kind in (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE)
    )
    return not number.italian_leading_zero and any(fits)


@lru_cache(CACHED_NUMBERS)
def _is_premium(number: str) -> bool:
    parsed = parsed_number(number, None)
    return parsed is not None and phonenumbers.number_type(parsed) == PhoneNumberType.PREMIUM_RATE


def type_of(number: str) -> str:
    """Number type of an E.164 number, as in the numbers of accounts: ``mobile``, ``140_series``, ..."""
    for series in ("140", "160"):
        # Ranges for telemarketing and for transactions; the numbering plan does not distinguish them.
        if number.startswith(f"+91{series}"):
            return f"{series}_series"
    parsed = parsed_number(number, None)
    return "local" if parsed is None else _TYPES.get(phonenumbers.number_type(parsed), "local")


def is_answered_by_somebody(number: str) -> bool:
    """Return True for a personal number; False for toll-free, premium, shared-cost and similar services."""
    parsed = parsed_number(number, None)
    return parsed is not None and phonenumbers.number_type(parsed) not in _SERVICES


_SERVICES: Final = frozenset(
    {
        PhoneNumberType.TOLL_FREE,
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.UAN,
        PhoneNumberType.VOICEMAIL,
        PhoneNumberType.PAGER,
    }
)
_TYPES: Final = {PhoneNumberType.MOBILE: "mobile", PhoneNumberType.TOLL_FREE: "toll_free"}


_ASK_ANOTHER_GATEWAY: Final = frozenset({408, 500, 502, 503, 504})


def may_fail_over(status: int, kind: str, *, rang: bool) -> bool:
    """
    Return True if another gateway may be tried after a failure.

    True if the gateway itself failed (no response, no connection, 500 and the like). False if the callee
    decided (486, 600, 603, ...) or the call was cancelled, and after a 408 once it rang: then the 408 means
    that the callee did not answer, and it must not ring twice.
    """
    if kind != "response":
        return kind != "cancelled"
    return status in _ASK_ANOTHER_GATEWAY and not (status == 408 and rang)
