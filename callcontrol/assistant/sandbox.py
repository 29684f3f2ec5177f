"""
Sandbox calls of the voice assistant: only to test numbers, and without a charge.

The sandbox carrier of this server carries them; the test numbers are its numbers.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from callcontrol.calls.charges import Rates
from callcontrol.calls.sandbox import is_test_number
from callcontrol.errors import Forbidden
from callcontrol.models import TEST_PREFIX, CallRecord
from callcontrol.models.parties import Party, PhoneTarget


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
