"""Results of built-in tools, made from records."""

from collections.abc import Mapping
from typing import Any, Final

from callcontrol.calls.records.call_json import call_object
from callcontrol.messaging.models import ChatMessage, Contact
from callcontrol.models import CURRENCY, CallRecord, Page, Wallet
from callcontrol.otp.product import otp_object
from callcontrol.wallet.money import rupees

_CALL: Final = (
    *("call_sid", "status", "from", "to", "direction", "created_at", "answered_at", "ended_at"),
    *("duration_sec", "hangup_cause", "price"),
)
_CONTACT: Final = ("phone_number", "first_name", "last_name", "email", "notes", "opted_out")
_OTP: Final = ("call_sid", "to", "status", "expires_at")


def call_result(record: CallRecord) -> dict[str, Any]:
    """The fields of a call that are useful to a model."""
    return _some(call_object(record), _CALL)


def otp_result(record: CallRecord) -> dict[str, Any]:
    """A password that is being spoken, without the password itself."""
    shown = otp_object(record)
    return {"otp_id": shown["id"], **_some(shown, _OTP)}


def wallet_result(wallet: Wallet) -> dict[str, Any]:
    """The wallet of an account, in rupees."""
    return {
        "balance": rupees(wallet.balance_paise),
        "reserved": rupees(wallet.reserved_paise),
        "available": rupees(wallet.available_paise),
        "currency": CURRENCY,
    }


def message_result(message: ChatMessage) -> dict[str, Any]:
    """A message that was accepted, without its content."""
    return {"message_id": message.message_id, "to": message.to, "status": message.status}


def contacts_result(found: Page[Contact]) -> dict[str, Any]:
    """The fields of contacts that are useful to a model."""
    shown = [
        {"id": contact.contact_id, **{name: getattr(contact, name) for name in _CONTACT}}
        for contact in found.items
    ]
    return {"contacts": shown, "total": found.total}


def _some(shown: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: shown[name] for name in names}
