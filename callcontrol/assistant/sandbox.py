"""
Sandbox calls of the voice assistant: only to test numbers, and without a charge.

The sandbox carrier of this server carries them; the test numbers are its numbers.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from callcontrol.calls.charges import Rates
from callcontrol.errors import Forbidden
from callcontrol.models import TEST_PREFIX, CallRecord
from callcontrol.models.parties import Party, PhoneTarget

_TEST_DIGITS: Final = len(TEST_PREFIX) + 3


def is_test_number(number: str) -> bool:
    """True if a number in E.164 is a test number, regardless of where the sandbox carrier runs."""
    return number.startswith(TEST_PREFIX) and len(number) == _TEST_DIGITS


def is_sandbox(record: CallRecord) -> bool:
    """True if a call is a sandbox call."""
    return _carrier_of(record) is not None


def rates_of(record: CallRecord, rates: Rates) -> Rates:
    """The rates of a call: zero in the sandbox."""
    return replace(rates, outbound_paise=0, inbound_paise=0) if is_sandbox(record) else rates


def confined(record: CallRecord, party: Party) -> Party:
    """
    The party to dial as a further party of a call: in the sandbox, a test number at the sandbox carrier.

    Raises:
        Forbidden: It is a sandbox call, and the party has no test number.
    """
    carrier_sid = _carrier_of(record)
    if carrier_sid is None:
        return party
    if not isinstance(party.target, PhoneTarget) or not is_test_number(party.target.number):
        raise Forbidden(f"A sandbox call reaches test numbers alone: {TEST_PREFIX} and three digits.")
    return replace(party, carrier_sid=carrier_sid)


def _carrier_of(record: CallRecord) -> str | None:
    details: Mapping[str, Any] = record.details or {}
    carrier_sid = details.get("sandbox")
    return carrier_sid if isinstance(carrier_sid, str) else None
