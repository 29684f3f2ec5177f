"""Keys of the account with their scopes, the account's limits, and the secret of its webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from aiohttp import web

from api.console.operations import ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.accounts.keys import EVERY_SCOPE, SCOPES
from callcontrol.errors import DomainError
from callcontrol.models import Service

__all__ = ["pages"]

PATH: Final = f"{HOME}/keys"
ONE: Final = PATH + "/{key_id}"
_SERVICES: Final = get_args(Service)

pages = Pages(
    "keys",
    scope="keys.read",
    writes="keys.write",
    service="all",
    nav=Navigation("account", 10, PATH),
    only="keys",
)


@pages.get(PATH)
async def list_keys(visit: Visit) -> web.StreamResponse:
    """Show the valid keys of the account, newest first."""
    return await _keys(visit)


@pages.post(f"{PATH}/create")
async def create_key(visit: Visit) -> web.StreamResponse:
    """Create a key, and show it this once."""
    scopes = [name.removeprefix("scope:") for name in visit.form if name.startswith("scope:")]
    body: dict[str, Any] = {"scopes": scopes} if scopes else {}
    return await _made(visit, "create_key", {}, body)


@pages.post(ONE + "/rotate")
async def rotate_key(visit: Visit) -> web.StreamResponse:
    """Replace a key by a new one, and show that this once."""
    return await _made(visit, "rotate_key", {"key_id": visit.path("key_id")}, {})


@pages.post(ONE + "/revoke")
async def revoke_key(visit: Visit) -> web.StreamResponse:
    """Revoke a key; the sessions of that key end with it."""
    path = {"key_id": visit.path("key_id")}
    return await change(visit, "revoke_key", path, again=_keys, to=PATH, done="revoked")


@pages.post(f"{PATH}/webhook-secret", scope="webhooks.write")
async def rotate_webhook_secret(visit: Visit) -> web.StreamResponse:
    """Make a new secret for the signatures of webhooks, and show it this once."""
    try:
        made = await ask(visit, "rotate_webhook_secret", form=visit.form)
    except DomainError as refusal:
        return await _keys(visit, refusal)
    return await _keys(visit, secret=made["webhook_secret"])


async def _made(
    visit: Visit, operation: str, path: Mapping[str, str], body: Mapping[str, Any]
) -> web.StreamResponse:
    try:
        made = await ask(visit, operation, path, form=visit.form, body=body)
    except DomainError as refusal:
        return await _keys(visit, refusal)
    return await _keys(visit, secret=made["key"])


async def _keys(
    visit: Visit, refusal: DomainError | None = None, secret: str | None = None
) -> web.StreamResponse:
    """Show the page; a response to a form has a key that no address leads to again."""
    values: dict[str, Any] = {
        "account": await ask(visit, "get_account"),
        "keys": await ask_list(visit, "list_keys"),
        "secret": secret,
        "may_change": may_ask(visit, "create_key"),
        "may_sign": may_ask(visit, "rotate_webhook_secret"),
        "services": [(it, visit.texts["services"][it]) for it in _SERVICES],
        "scopes": [EVERY_SCOPE, *SCOPES["all"]],
    }
    if refusal is not None:
        return refused(visit, "keys.html", refusal, **values)
    return visit.show("keys.html", **values)
