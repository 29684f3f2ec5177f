"""Administrative commands; they change the database, also beside a running server."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from api.process.config import Settings
from api.process.secret_keys import secret_box
from api.schemas.serializers import number_json
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models import CURRENCY, ApiKey
from callcontrol.wallet.money import rupees

__all__ = [
    "add_carrier",
    "add_number",
    "create_account",
    "create_key",
    "list_keys",
    "list_numbers",
    "release_number",
    "revoke_key",
    "rotate_key",
    "top_up",
    "update_account",
    "update_carrier",
    "webhook_secret",
]

_OF_GATEWAY = "gateway."

_Work = Callable[[Storage], Awaitable[dict[str, Any]]]


def create_account(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline accounts create`."""

    async def work(storage: Storage) -> dict[str, Any]:
        account, key = await storage.accounts.create(
            name=arguments.name,
            balance_paise=arguments.balance,
            kyc=arguments.kyc,
            max_cps=arguments.max_cps,
            max_calls=arguments.max_calls,
        )
        return {
            "account_sid": account.account_sid,
            "api_key": key,
            "name": account.name,
            "balance": arguments.balance / 100,
            "currency": "INR",
            "kyc_complete": account.kyc_complete,
            "max_cps": account.max_cps,
            "max_calls": account.max_calls,
        }

    return _run(settings, work)


_ACCOUNT_FIELDS = (
    *("name", "kyc_complete", "is_active", "max_cps", "max_calls"),
    *("requests_per_minute", "max_spend_paise_per_hour", "recording_retention_days"),
    "assistant_requests_per_minute",
)
_MAY_BE_NONE = frozenset(
    {
        *("requests_per_minute", "max_spend_paise_per_hour", "recording_retention_days"),
        "assistant_requests_per_minute",
    }
)


def update_account(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline accounts update`."""
    given = {name: getattr(arguments, name) for name in _ACCOUNT_FIELDS if hasattr(arguments, name)}
    changes = {name: value for name, value in given.items() if value is not None or name in _MAY_BE_NONE}
    if not changes:
        raise ValidationFailed([FieldError("account", "is given nothing to change; see --help")])

    async def work(storage: Storage) -> dict[str, Any]:
        account = await storage.accounts.update(arguments.account, changes)
        spend_paise = account.max_spend_paise_per_hour
        return {
            "account_sid": account.account_sid,
            "name": account.name,
            "kyc_complete": account.kyc_complete,
            "is_active": account.is_active,
            "max_cps": account.max_cps,
            "max_calls": account.max_calls,
            "requests_per_minute": account.requests_per_minute,
            "max_spend_per_hour": None if spend_paise is None else rupees(spend_paise),
            "recording_retention_days": account.recording_retention_days,
            "assistant_requests_per_minute": account.assistant_requests_per_minute,
        }

    return _run(settings, work)


def webhook_secret(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline accounts webhook-secret`."""

    async def work(storage: Storage) -> dict[str, Any]:
        account = await storage.accounts.get(arguments.account)
        return {"account_sid": account.account_sid, "webhook_secret": account.webhook_secret}

    return _run(settings, work)


def top_up(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline wallet top-up`."""

    async def work(storage: Storage) -> dict[str, Any]:
        balance_paise = await storage.wallet.top_up(
            arguments.account, arguments.amount, reference=arguments.reference, note=arguments.note
        )
        return {"account_sid": arguments.account, "balance": rupees(balance_paise), "currency": CURRENCY}

    return _run(settings, work)


def create_key(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline keys create`."""
    scopes = None
    if arguments.scopes is not None:
        scopes = [scope.strip() for scope in arguments.scopes.split(",") if scope.strip()]

    async def work(storage: Storage) -> dict[str, Any]:
        record, key = await storage.keys.issue(
            arguments.account,
            arguments.service,
            scopes,
            name=arguments.name,
            environment=arguments.environment,
        )
        return {"key": key, **_key(record)}

    return _run(settings, work)


def list_keys(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline keys list`; it cannot show a key, for none is stored."""

    async def work(storage: Storage) -> dict[str, Any]:
        keys = await storage.keys.list(arguments.account)
        return {"account_sid": arguments.account, "keys": [_key(record) for record in keys]}

    return _run(settings, work)


def rotate_key(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline keys rotate`."""

    async def work(storage: Storage) -> dict[str, Any]:
        record, key, old = await storage.keys.rotate(arguments.account, arguments.key, arguments.overlap)
        return {"key": key, **_key(record), "replaces": _key(old)}

    return _run(settings, work)


def revoke_key(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline keys revoke`."""

    async def work(storage: Storage) -> dict[str, Any]:
        return _key(await storage.keys.revoke(arguments.account, arguments.key))

    return _run(settings, work)


def _key(record: ApiKey) -> dict[str, Any]:
    """Public fields of a key; its `prefix` tells keys apart."""
    now = utc_now()
    ends = record.revoked_at
    state = "active" if ends is None else "revoked" if record.is_revoked(now) else "retiring"
    return {
        "key_id": record.key_id,
        "account_sid": record.account_sid,
        "service": record.service,
        "scopes": list(record.scopes),
        "prefix": record.prefix,
        "name": record.name,
        "environment": record.environment,
        "state": state,
        "created_at": _moment(record.created_at),
        "revoked_at": _moment(ends) if ends is not None else None,
    }


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_number(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline numbers add`."""

    async def work(storage: Storage) -> dict[str, Any]:
        number = await storage.numbers.add(
            arguments.account, arguments.number, friendly_name=arguments.friendly_name
        )
        return {
            "phone_number_id": number.phone_number_id,
            "number": number.number,
            "account_sid": number.account_sid,
        }

    return _run(settings, work)


def list_numbers(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline numbers list`."""

    async def work(storage: Storage) -> dict[str, Any]:
        numbers = await storage.numbers.every(arguments.account)
        return {"account_sid": arguments.account, "numbers": [number_json(number) for number in numbers]}

    return _run(settings, work)


def release_number(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline numbers release`."""

    async def work(storage: Storage) -> dict[str, Any]:
        number = await storage.numbers.release_by_number(arguments.account, arguments.number)
        return {
            "phone_number_id": number.phone_number_id,
            "number": number.number,
            "account_sid": number.account_sid,
            "status": "released",
        }

    return _run(settings, work)


def add_carrier(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline carriers add`."""
    if (arguments.username is None) != (arguments.password is None):
        missing = "username" if arguments.username is None else "password"
        raise ValidationFailed([FieldError(missing, "is required with the other half of the credentials")])
    both = not arguments.inbound and not arguments.outbound
    policy, gateway_policy = _policies(arguments.set)

    async def work(storage: Storage) -> dict[str, Any]:
        carrier, gateways = await storage.trunks.add_platform_carrier(
            arguments.name,
            [(gateway.transport, gateway.host, gateway.port) for gateway in arguments.gateway],
            inbound=arguments.inbound or both,
            outbound=arguments.outbound or both,
            username=arguments.username,
            password=arguments.password,
            policy=policy,
            gateway_policy=gateway_policy,
        )
        return {
            "carrier_sid": carrier.carrier_sid,
            "name": carrier.name,
            "gateways": [
                {
                    "gateway_sid": gateway.gateway_sid,
                    "address": f"{gateway.protocol}:{gateway.host}"
                    + (f":{gateway.port}" if gateway.port else ""),
                    "inbound": gateway.inbound,
                    "outbound": gateway.outbound,
                    "priority": gateway.priority,
                }
                for gateway in gateways
            ],
        }

    return _run(settings, work)


def update_carrier(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline carriers update`."""
    policy, gateway_policy = _policies(arguments.set)

    async def work(storage: Storage) -> dict[str, Any]:
        trunks, carrier_sid = storage.trunks, arguments.carrier
        carrier = await trunks.update_carrier(None, carrier_sid, policy)
        gateways = await trunks.platform_gateways(carrier_sid) if gateway_policy else []
        for gateway in gateways:
            await trunks.update_gateway(None, carrier_sid, gateway.gateway_sid, gateway_policy)
        return {"carrier_sid": carrier.carrier_sid, "name": carrier.name, "gateways_changed": len(gateways)}

    return _run(settings, work)


def _policies(given: list[tuple[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the carrier, and those of its gateways, which are written `gateway.NAME`."""
    own = {name: value for name, value in given if not name.startswith(_OF_GATEWAY)}
    gateways = {
        name.removeprefix(_OF_GATEWAY): value for name, value in given if name.startswith(_OF_GATEWAY)
    }
    return own, gateways


def _run(settings: Settings, work: _Work) -> int:
    async def run() -> dict[str, Any]:
        storage = await Storage.open(settings.database_url, deliver=False, secrets=secret_box(settings))
        try:
            return await work(storage)
        finally:
            await storage.close()

    print(json.dumps(asyncio.run(run()), indent=2, ensure_ascii=False))
    return 0
