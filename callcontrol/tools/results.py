"""What built-in tools answer, made of the records that they are about."""

from collections.abc import Mapping
from typing import Any, Final

from callcontrol.call_object import call_object
from callcontrol.models import CURRENCY, CallRecord, Wallet
from callcontrol.money import rupees
from callcontrol.otp_calls import otp_object

__all__ = ["call_result", "otp_result", "wallet_result"]

_CALL: Final = (
    *("call_sid", "status", "from", "to", "direction", "created_at", "answered_at", "ended_at"),
    *("duration_sec", "hangup_cause", "price"),
)
_OTP: Final = ("call_sid", "to", "status", "expires_at")


def call_result(record: CallRecord) -> dict[str, Any]:
    """A call, as far as a model has use for it."""
    return _some(call_object(record), _CALL)


def otp_result(record: CallRecord) -> dict[str, Any]:
    """A password that is being spoken: everything but itself."""
    shown = otp_object(record)
    return {"otp_id": shown["id"], **_some(shown, _OTP)}


def wallet_result(wallet: Wallet) -> dict[str, Any]:
    """The money of an account, in rupees."""
    return {
        "balance": rupees(wallet.balance_paise),
        "reserved": rupees(wallet.reserved_paise),
        "available": rupees(wallet.available_paise),
        "currency": CURRENCY,
    }


def _some(shown: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: shown[name] for name in names}
