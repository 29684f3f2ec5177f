"""The account of a key, the account's keys of all services, and its webhook secret (additive)."""

from __future__ import annotations

from api.http.endpoint import Context, Reply, Routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.keys import (
    AccountKeyObject,
    AccountObject,
    CreateAccountKey,
    KeyPage,
    NewAccountKey,
    RotateAccountKey,
    RotatedAccountKey,
    RotateWebhookSecret,
    WebhookSecretObject,
    account_key_json,
    limits_json,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.clock import timestamp
from callcontrol.errors import Conflict
from callcontrol.models import CURRENCY
from callcontrol.wallet.money import rupees

__all__ = ["routes"]

_KEYS = "/v1/keys"
_KEY = _KEYS + "/{key_id}"
_MONEY_SCOPE = "calls.read"
"""Scope of the wallet's endpoints."""

routes = Routes("keys.read", "keys.write", tag="keys", service="all")


@routes.get("/v1/account", response=AccountObject, scope=None, tag="account")
async def get_account(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get the account of your key, and what the key opens.

    The balance is shown to keys that may read the wallet.
    """
    storage, principal = context.storage, context.principal
    account = await storage.accounts.get(context.account_sid)
    key = await storage.managed_keys.own(principal)
    wallet = None
    if _MONEY_SCOPE in principal.scopes:
        wallet = await storage.wallet.wallet(context.account_sid)
    return Reply(
        shown(
            AccountObject,
            account,
            environment=key.environment,
            balance=None if wallet is None else rupees(wallet.balance_paise),
            available=None if wallet is None else rupees(wallet.available_paise),
            currency=CURRENCY,
            limits=limits_json(account),
            key=account_key_json(key, principal.key_id),
        )
    )


@routes.post(
    "/v1/account/webhook-secret/rotate",
    response=WebhookSecretObject,
    scope="webhooks.write",
    service="platform",
    tag="account",
    idempotent=True,
    confidential=True,
)
async def rotate_webhook_secret(context: Context[RotateWebhookSecret, NoQuery]) -> Reply:
    """
    Make a new secret that signs the account's webhooks.

    Shown this once. Until the overlap is over, webhook-signature has the signatures by both secrets, and
    X-Service-Signature that by the previous one.
    """
    account, secret = await context.storage.accounts.rotate_webhook_secret(
        context.principal, context.body.overlap_seconds
    )
    return Reply(
        {"webhook_secret": secret, "former_secret_until": timestamp(account.former_webhook_until)},
    )


@routes.get(_KEYS, response=AccountKeyObject, paged=True)
async def list_keys(context: Context[NoBody, KeyPage]) -> Reply:
    """
    List valid keys of all services, newest first.

    Never the keys themselves, of which only hashes are stored.
    """
    principal, query = context.principal, context.query
    page = await context.storage.managed_keys.page(principal, query.page, query.per_page)
    return Reply([account_key_json(key, principal.key_id) for key in page.items], page_meta(page))


@routes.post(
    _KEYS, response=NewAccountKey, success=201, errors=(Conflict,), idempotent=True, confidential=True
)
async def create_key(context: Context[CreateAccountKey, NoQuery]) -> Reply:
    """
    Create a key of any service.

    It is shown this once. It opens no more than the key that creates it.
    """
    body, principal = context.body, context.principal
    made, key = await context.storage.managed_keys.create(
        principal, body.service, body.name, body.scopes, body.environment
    )
    return Reply({**account_key_json(made, principal.key_id), "key": key})


@routes.post(
    _KEY + "/rotate",
    response=RotatedAccountKey,
    success=201,
    errors=(Conflict,),
    idempotent=True,
    confidential=True,
)
async def rotate_key(context: Context[RotateAccountKey, NoQuery]) -> Reply:
    """
    Replace a key by a new one with its service and scopes.

    It is shown this once. The old one is valid until the overlap is over.
    """
    principal = context.principal
    made, key, former = await context.storage.managed_keys.rotate(
        principal, context.path["key_id"], context.body.overlap_seconds
    )
    replaces = account_key_json(former, principal.key_id)
    return Reply({**account_key_json(made, principal.key_id), "key": key, "replaces": replaces})


@routes.delete(_KEY)
async def revoke_key(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Revoke a key.

    At once here, within a second on other servers. A key may revoke itself, and the account's last one.
    """
    await context.storage.managed_keys.revoke(context.principal, context.path["key_id"])
    return Reply(None)
