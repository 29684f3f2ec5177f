"""Conversion of records to their JSON form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from api.http.cursor import write_cursor
from callcontrol.models import (
    CURRENCY,
    Carrier,
    Gateway,
    LedgerEntry,
    NumberConfiguration,
    Page,
    PhoneNumber,
    Wallet,
)
from callcontrol.numbers.orders import Purchase
from callcontrol.trunks.gateway_health import Health
from callcontrol.trunks.registration import RegistrationView, registers
from callcontrol.wallet.money import end_of_hour, hour_of, rupees

__all__ = [
    "carrier_json",
    "gateway_json",
    "keyset_meta",
    "ledger_json",
    "number_json",
    "page_meta",
    "purchase_json",
    "rfc3339",
    "trace_json",
    "wallet_json",
    "number_configuration_json",
]


def rfc3339(moment: datetime | None) -> str | None:
    """Format a time in UTC with milliseconds, as in every response."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def page_meta(page: Page[Any]) -> dict[str, int]:
    """Fields of ``meta`` for a list."""
    return {
        "total": page.total,
        "page": page.page,
        "per_page": page.per_page,
        "total_pages": page.total_pages,
    }


def keyset_meta(page: Page[Any], *, by_cursor: bool) -> dict[str, Any]:
    """Fields of ``meta`` for a list that may be read by cursor; a page by cursor has no number."""
    meta: dict[str, Any] = {**page_meta(page), "next_cursor": write_cursor(page.after)}
    if by_cursor:
        del meta["page"]
    return meta


def number_json(number: PhoneNumber) -> dict[str, Any]:
    """Public fields of a phone number."""
    billing = number.billing
    return {
        "id": number.phone_number_id,
        "number": number.number,
        "friendly_name": number.friendly_name,
        "status": number.status,
        "number_type": number.number_type,
        "region": number.region,
        "voice_enabled": number.voice_enabled,
        "sms_enabled": number.sms_enabled,
        "monthly_cost": rupees(number.monthly_cost_paise),
        "next_billing_at": rfc3339(billing.next_at if billing else None),
        "payment_deadline_at": rfc3339(billing.deadline_at if billing else None),
        "inbound_target_type": number.inbound_target_type,
        "created_at": rfc3339(number.created_at),
        "updated_at": rfc3339(number.updated_at),
    }


def purchase_json(purchase: Purchase) -> dict[str, Any]:
    """Public fields of a purchase."""
    return {
        "phone_number_id": purchase.phone_number_id,
        "number": purchase.number,
        "total_charged": rupees(purchase.total_paise),
        "currency": CURRENCY,
        "new_wallet_balance": rupees(purchase.balance_paise),
        "next_billing_at": rfc3339(purchase.next_billing_at),
    }


def number_configuration_json(state: NumberConfiguration) -> dict[str, Any]:
    """Configuration of a number; the agent's fields are present only when an agent is the target."""
    shown: dict[str, Any] = {
        "phone_number_id": state.phone_number_id,
        "number": state.number,
        "carrier_registered": state.carrier_registered,
        "outbound_capable": state.outbound_capable,
        "inbound_bound": state.inbound_bound,
        "inbound_target": state.inbound_target,
    }
    if state.inbound_target == "voice_agent":
        shown["agent_id"] = state.agent_id
        shown["workspace_id"] = state.workspace_id
    return shown


_CARRIER_FIELDS = (
    "name",
    "description",
    "is_active",
    "trunk_type",
    "e164_leading_plus",
    "tech_prefix",
    "requires_register",
    "register_username",
    "register_sip_realm",
    "register_from_user",
    "register_from_domain",
    "register_transport",
    "inbound_auth_username",
    "outbound_proxy",
    "diversion",
    "dtmf_type",
    "srtp",
    "max_concurrent_calls",
    "max_cps",
    "app_sid",
    "number_format",
    "identity_header",
    "trusts_identity",
    "forwards_history",
    "allows_refer",
    "follows_redirects",
    "rel100",
    "session_expires_s",
    "register_expires_s",
    "certificate_name",
)


def carrier_json(carrier: Carrier, registrations: Sequence[RegistrationView] = ()) -> dict[str, Any]:
    """
    Public fields of a carrier: an explicit list, so that no secret can leak.

    ``registrations`` are the states at its registrars, the worst first.
    """
    shown = [{"registrar": view.registrar, **_registration_json(view)} for view in registrations]
    absent = "unregistered" if registers(carrier) else None
    worst = {"state": absent, "reason": None, "expires_at": None}
    if registrations:
        worst = _registration_json(registrations[0])
    return {
        "carrier_sid": carrier.carrier_sid,
        "sid": carrier.carrier_sid,
        **{name: getattr(carrier, name) for name in _CARRIER_FIELDS},
        "register_status": worst,
        "registrations": shown,
        "codecs": list(carrier.codecs),
        "forwarded_headers": list(carrier.forwarded_headers),
        "registrars": list(carrier.registrars),
        "created_at": rfc3339(carrier.created_at),
        "updated_at": rfc3339(carrier.updated_at),
    }


def _registration_json(view: RegistrationView) -> dict[str, Any]:
    return {"state": view.state.value, "reason": view.reason, "expires_at": rfc3339(view.expires_at)}


_GATEWAY_FIELDS = (
    "carrier_sid",
    "host",
    "netmask",
    "protocol",
    "inbound",
    "outbound",
    "priority",
    "weight",
    "send_options_ping",
    "is_active",
    "max_concurrent_calls",
    "max_cps",
)


def gateway_json(gateway: Gateway, health: Health) -> dict[str, Any]:
    """Public fields of a gateway, with its health from calls and OPTIONS pings."""
    return {
        "gateway_sid": gateway.gateway_sid,
        "sid": gateway.gateway_sid,
        **{name: getattr(gateway, name) for name in _GATEWAY_FIELDS},
        "port": gateway.port or None,
        "health": {
            "state": health.state.name.lower(),
            "last_ok_at": rfc3339(health.last_ok_at),
            "rtt_ms": None if health.rtt_ms is None else round(health.rtt_ms, 1),
        },
        "created_at": rfc3339(gateway.created_at),
        "updated_at": rfc3339(gateway.updated_at),
    }


def wallet_json(wallet: Wallet, limit_paise: int | None, now: datetime) -> dict[str, Any]:
    """Wallet of an account at `now`, in rupees."""
    hour = hour_of(now)
    spent_paise = wallet.spent_paise if wallet.spent_hour >= hour else 0
    return {
        "account_sid": wallet.account_sid,
        "balance": rupees(wallet.balance_paise),
        "reserved": rupees(wallet.reserved_paise),
        "available": rupees(wallet.available_paise),
        "currency": CURRENCY,
        "spent_this_hour": rupees(spent_paise),
        "spend_limit_per_hour": None if limit_paise is None else rupees(limit_paise),
        "spend_resets_at": rfc3339(end_of_hour(hour)),
        "updated_at": rfc3339(wallet.updated_at),
    }


def ledger_json(entry: LedgerEntry) -> dict[str, Any]:
    """Public fields of a ledger entry, in rupees."""
    return {
        "id": entry.entry_id,
        "kind": entry.kind,
        "amount": rupees(entry.amount_paise),
        "currency": CURRENCY,
        "call_sid": entry.call_sid,
        "reference": entry.reference,
        "note": entry.note,
        "created_at": rfc3339(entry.created_at),
    }


def trace_json(entry: Any) -> dict[str, Any]:
    """Public fields of one traced SIP message of a call."""
    return {
        "at": rfc3339(entry.at),
        "leg": entry.leg,
        "direction": entry.direction,
        "transport": entry.transport,
        "peer": entry.peer,
        "call_id": entry.call_id,
        "message": entry.message,
    }
