"""A telephone in the page, by the module that customers' pages get: it calls, and is called."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web
from pydantic_core import to_json

from api.console.operations import ask
from api.console.page import Navigation, Pages
from api.console.rendering import HEADERS
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError, ValidationFailed

__all__ = ["pages"]

PATH: Final = f"{HOME}/phone"
TOKEN_S: Final = 900
"""Life of a token; the page asks for another while its session lasts."""

_IDENTITY: Final = "console"

pages = Pages("phone", scope="calls.write", nav=Navigation("calls", 40, PATH), only="keys")


@pages.get(PATH)
async def show(visit: Visit) -> web.StreamResponse:
    """Show the telephone; a script makes it one."""
    numbers = await visit.storage.numbers.every(visit.account_sid)
    return visit.show(
        "phone.html",
        numbers=[number.number for number in numbers],
        identity=_IDENTITY,
        to=visit.query("to"),
        parties=visit.texts_of("first")["parties"],
    )


@pages.post(f"{PATH}/token")
async def make_token(visit: Visit) -> web.StreamResponse:
    """Make a token for the page; a refusal is JSON too, for the script."""
    form = {name: visit.form.get(name, "") for name in ("identity", "from")}
    wanted = {"may_call": ["*"], "receives_calls": True, "ttl_seconds": TOKEN_S}
    try:
        made = await ask(visit, "create_phone_token", form=form, body=wanted)
    except DomainError as refusal:
        fields = refusal.errors if isinstance(refusal, ValidationFailed) else ()
        errors = {error.field: error.message for error in fields}
        return _json({"problem": refusal.message, "errors": errors}, visit.console.status_of(refusal))
    return _json(made, HTTPStatus.OK)


def _json(value: object, status: int) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return web.Response(body=to_json(value), status=status, content_type="application/json", headers=headers)
