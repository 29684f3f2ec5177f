"""Administrative commands; they change the database, also beside a running server."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from api.process.config import Settings
from api.process.secret_keys import secret_box
from api.process.values import HostPort
from callcontrol.accounts.aio.sessions import LINK_LIFE
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.administration import Administration
from callcontrol.clock import timestamp
from callcontrol.errors import Conflict, FieldError, ValidationFailed
from callcontrol.models import CURRENCY, ApiKey, Gateway, PhoneNumber
from callcontrol.wallet.money import rupees

__all__ = [
    "add_carrier",
    "add_number",
    "console_link",
    "create_account",
    "create_key",
    "end_operator",
    "list_carriers",
    "list_keys",
    "list_numbers",
    "listed_number",
    "on_storage",
    "release_number",
    "revoke_key",
    "rotate_key",
    "top_up",
    "update_account",
    "update_carrier",
    "webhook_secret",
]

_OF_GATEWAY = "gateway."
_NUMBER_FIELDS = (
    *("number", "friendly_name", "status", "number_type", "region"),
    *("voice_enabled", "sms_enabled"),
)

Work = Callable[[Administration, argparse.Namespace], Awaitable[dict[str, Any]]]
"""Work of a command on the database; its result is printed."""


def on_storage(work: Work) -> Callable[[Settings, argparse.Namespace], int]:
    """Make a command of work on the database; it prints the result as JSON."""

    async def run(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
        storage = await Administration.open(settings.database_url, secret_box(settings))
        try:
            return await work(storage, arguments)
        finally:
            await storage.close()

    def command(settings: Settings, arguments: argparse.Namespace) -> int:
        print(json.dumps(asyncio.run(run(settings, arguments)), indent=2, ensure_ascii=False))
        return 0

    return command


@on_storage
async def create_account(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline accounts create`."""
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
        "currency": CURRENCY,
        "kyc_complete": account.kyc_complete,
        "max_cps": account.max_cps,
        "max_calls": account.max_calls,
    }


_MAY_BE_NONE = (
    *("requests_per_minute", "max_spend_paise_per_hour", "recording_retention_days"),
    "assistant_requests_per_minute",
)
_ACCOUNT_FIELDS = ("name", "kyc_complete", "is_active", "max_cps", "max_calls", *_MAY_BE_NONE)


@on_storage
async def update_account(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline accounts update`."""
    given = {name: getattr(arguments, name) for name in _ACCOUNT_FIELDS if hasattr(arguments, name)}
    changes = {name: value for name, value in given.items() if value is not None or name in _MAY_BE_NONE}
    if not changes:
        raise ValidationFailed([FieldError("account", "is given nothing to change; see --help")])
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


@on_storage
async def webhook_secret(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline accounts webhook-secret`."""
    account = await storage.accounts.get(arguments.account)
    return {"account_sid": account.account_sid, "webhook_secret": account.webhook_secret}


@on_storage
async def top_up(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline wallet top-up`."""
    balance_paise = await storage.wallet.top_up(
        arguments.account, arguments.amount, reference=arguments.reference, note=arguments.note
    )
    return {"account_sid": arguments.account, "balance": rupees(balance_paise), "currency": CURRENCY}


@on_storage
async def create_key(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline keys create`."""
    scopes = None
    if arguments.scopes is not None:
        scopes = [scope.strip() for scope in arguments.scopes.split(",") if scope.strip()]
    record, key = await storage.keys.issue(
        arguments.account,
        arguments.service,
        scopes,
        name=arguments.name,
        environment=arguments.environment,
    )
    return {"key": key, **_key(record)}


@on_storage
async def list_keys(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline keys list`; it cannot show a key, for none is stored."""
    keys = await storage.keys.list(arguments.account)
    return {"account_sid": arguments.account, "keys": [_key(record) for record in keys]}


@on_storage
async def rotate_key(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline keys rotate`."""
    record, key, old = await storage.keys.rotate(arguments.account, arguments.key, arguments.overlap)
    return {"key": key, **_key(record), "replaces": _key(old)}


@on_storage
async def revoke_key(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline keys revoke`."""
    return _key(await storage.keys.revoke(arguments.account, arguments.key))


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
        "created_at": timestamp(record.created_at),
        "revoked_at": timestamp(ends),
    }


@on_storage
async def add_number(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline numbers add`."""
    number = await storage.numbers.add(
        arguments.account, arguments.number, friendly_name=arguments.friendly_name
    )
    return _number(number)


@on_storage
async def list_numbers(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline numbers list`."""
    numbers = await storage.numbers.every(arguments.account)
    return {"account_sid": arguments.account, "numbers": [listed_number(number) for number in numbers]}


@on_storage
async def release_number(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline numbers release`."""
    number = await storage.numbers.release_by_number(arguments.account, arguments.number)
    return {**_number(number), "status": "released"}


def listed_number(number: PhoneNumber) -> dict[str, Any]:
    """Fields of a number as the API shows them, without importing its schemas, which takes half a second."""
    billing = number.billing if number.status != "released" else None
    return {
        "id": number.phone_number_id,
        **{name: getattr(number, name) for name in _NUMBER_FIELDS},
        "monthly_cost": rupees(number.monthly_cost_paise),
        "next_billing_at": _time(billing.next_at) if billing else None,
        "payment_deadline_at": _time(billing.deadline_at) if billing else None,
        "inbound_target_type": number.inbound_target_type,
        "created_at": timestamp(number.created_at),
        "updated_at": timestamp(number.updated_at),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _number(number: PhoneNumber) -> dict[str, Any]:
    return {
        "phone_number_id": number.phone_number_id,
        "number": number.number,
        "account_sid": number.account_sid,
    }


@on_storage
async def add_carrier(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline carriers add`."""
    if (arguments.username is None) != (arguments.password is None):
        missing = "username" if arguments.username is None else "password"
        raise ValidationFailed([FieldError(missing, "is required with the other half of the credentials")])
    both = not arguments.inbound and not arguments.outbound
    policy, gateway_policy = _policies(arguments.set)
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
    return {"carrier_sid": carrier.carrier_sid, "name": carrier.name, "gateways": _gateways(gateways)}


@on_storage
async def list_carriers(storage: Administration, _: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline carriers list`."""
    trunks = storage.trunks
    return {
        "carriers": [
            {
                "carrier_sid": carrier.carrier_sid,
                "name": carrier.name,
                "is_active": carrier.is_active,
                "gateways": _gateways(await trunks.platform_gateways(carrier.carrier_sid)),
            }
            for carrier in await trunks.platform_carriers()
        ]
    }


@on_storage
async def update_carrier(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline carriers update`."""
    policy, gateway_policy = _policies(arguments.set)
    trunks, carrier_sid = storage.trunks, arguments.carrier
    carrier = await trunks.update_carrier(None, carrier_sid, policy)
    gateways = await trunks.platform_gateways(carrier_sid) if gateway_policy else []
    for gateway in gateways:
        await trunks.update_gateway(None, carrier_sid, gateway.gateway_sid, gateway_policy)
    return {"carrier_sid": carrier.carrier_sid, "name": carrier.name, "gateways_changed": len(gateways)}


def _gateways(gateways: Iterable[Gateway]) -> list[dict[str, Any]]:
    return [
        {
            "gateway_sid": gateway.gateway_sid,
            "address": f"{gateway.protocol}:{gateway.host}" + (f":{gateway.port}" if gateway.port else ""),
            "inbound": gateway.inbound,
            "outbound": gateway.outbound,
            "priority": gateway.priority,
        }
        for gateway in gateways
    ]


def _policies(given: list[tuple[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the carrier, and those of its gateways, which are written `gateway.NAME`."""
    own = {name: value for name, value in given if not name.startswith(_OF_GATEWAY)}
    gateways = {
        name.removeprefix(_OF_GATEWAY): value for name, value in given if name.startswith(_OF_GATEWAY)
    }
    return own, gateways


def console_link(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline console link`."""
    if not settings.console and not arguments.url:
        raise Conflict(
            "TRUNKLINE_CONSOLE=0 switches the console off, and the link would lead to nothing; "
            "that of another server is named by --url"
        )
    url = arguments.url or settings.public_url or _here(settings)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValidationFailed.of(
            "url", "must be an http or https address, such as https://calls.example.com"
        )

    async def work(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
        ends = utc_now() + LINK_LIFE
        token = await storage.operators.make_link(arguments.operator)
        return {
            "url": f"{url.rstrip('/')}/console/sign-in?token={token}",
            "operator": arguments.operator,
            "expires_at": timestamp(ends),
        }

    return on_storage(work)(settings, arguments)


def _here(settings: Settings) -> str:
    """Address at which a server of these settings is reached from its own machine."""
    listen = settings.http_listen
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen.host, listen.host)
    return f"http://{HostPort(host, listen.port)}"


@on_storage
async def end_operator(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline console end`; an operator without sessions is no failure."""
    return {"operator": arguments.operator, "ended": await storage.operators.end(arguments.operator)}
