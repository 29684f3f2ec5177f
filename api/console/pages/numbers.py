"""Phone numbers: list, what is for sale, purchase, binding, release, and a call from the sandbox."""

from __future__ import annotations

from typing import Any, Final, get_args

from aiohttp import web

from api.console.binding_form import AREAS, FIELDS, beside_fields, binding_of, choices, targets_by_field
from api.console.operations import ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from api.schemas.dids import NumberType
from callcontrol.errors import DomainError

__all__ = ["pages"]

PATH: Final = f"{HOME}/numbers"
ONE: Final = PATH + "/{id}"

_SEARCHED: Final = ("region", "number_type", "contains")
_TYPES: Final = get_args(NumberType)
_BEHAVIOURS: Final = ("", "digits", "echo", "listen", "speech", "tone")

pages = Pages("numbers", scope="numbers.read", writes="numbers.write", nav=Navigation("resources", 10, PATH))


@pages.get(PATH)
async def list_numbers(visit: Visit) -> web.StreamResponse:
    """Show the numbers of the account."""
    wanted = visit.queries("status", "region")
    values: dict[str, Any] = {"wanted": wanted, "may_buy": may_ask(visit, "purchase_did")}
    try:
        numbers = await ask_list(visit, "list_numbers", query=wanted)
    except DomainError as refusal:
        return refused(visit, "numbers.html", refusal, numbers=None, **values)
    return visit.show("numbers.html", numbers=numbers, **values)


@pages.get(f"{PATH}/buy")
async def search_numbers(visit: Visit) -> web.StreamResponse:
    """Show numbers that are for sale."""
    return await _market(visit)


@pages.post(f"{PATH}/buy")
async def buy_number(visit: Visit) -> web.StreamResponse:
    """Buy a number at the price that was shown, and go to it."""
    try:
        bought = await ask(visit, "purchase_did", form=visit.form)
    except DomainError as refusal:
        return await _market(visit, refusal)
    visit.go(f"{PATH}/{bought['phone_number_id']}", done="bought")


@pages.get(ONE)
async def show_number(visit: Visit) -> web.StreamResponse:
    """Show a number, its binding, and what can be done with it."""
    return await _number(visit)


@pages.post(ONE + "/label")
async def label_number(visit: Visit) -> web.StreamResponse:
    """Change the label of a number; an empty one takes it away."""
    body = {"friendly_name": visit.form.get("friendly_name") or None}
    return await _change(visit, "change_number", "labelled", body=body)


@pages.post(ONE + "/bind")
async def bind_number(visit: Visit) -> web.StreamResponse:
    """Bind the inbound calls of a number."""
    return await _change(visit, "bind_number", "bound", body=binding_of(visit.form, visit.account_sid))


@pages.post(ONE + "/unbind")
async def unbind_number(visit: Visit) -> web.StreamResponse:
    """Unbind the inbound calls of a number."""
    return await _change(visit, "unbind_number", "unbound")


@pages.post(ONE + "/release")
async def release_number(visit: Visit) -> web.StreamResponse:
    """Release a number for good."""
    path = {"id": visit.sid("id")}
    return await change(visit, "release_number", path, again=_number, to=PATH, done="released")


@pages.post(ONE + "/call", scope="calls.write")
async def call_number(visit: Visit) -> web.StreamResponse:
    """Call a number by a party of the sandbox, and go to that call."""
    try:
        number = await ask(visit, "get_number", {"id": visit.sid("id")})
        call = await ask(visit, "call_from_sandbox", form=visit.form, body={"to": number["number"]})
    except DomainError as refusal:
        return await _number(visit, refusal)
    if call["call_sid"] is None:
        visit.go(f"{PATH}/{number['id']}", done="called")
    visit.go(f"{HOME}/calls/{call['call_sid']}")


async def _change(visit: Visit, operation: str, done: str, **given: Any) -> web.StreamResponse:
    """Do an operation on the number, and go back to it."""
    number = visit.sid("id")
    to = f"{PATH}/{number}"
    return await change(visit, operation, {"id": number}, again=_number, to=to, done=done, **given)


async def _market(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    wanted = visit.queries(*_SEARCHED)
    values: dict[str, Any] = {"wanted": wanted, "types": _TYPES, "listed": None}
    try:
        values["listed"] = await ask_list(visit, "search_dids", query=wanted)
    except DomainError as error:
        return refused(visit, "numbers_buy.html", refusal or error, **values)
    if refusal is not None:
        return refused(visit, "numbers_buy.html", refusal, **values)
    return visit.show("numbers_buy.html", **values)


async def _number(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    path = {"id": visit.sid("id")}
    number, common = await ask(visit, "get_number", path), visit.texts_of("common")
    values: dict[str, Any] = {
        "number": number,
        "wiring": await ask(visit, "get_wiring", path) if number["status"] != "released" else {},
        "may_change": may_ask(visit, "bind_number") and number["status"] != "released",
        "may_call": may_ask(visit, "call_from_sandbox") and number["status"] != "released",
        "fields": FIELDS,
        "areas": AREAS,
        "targets": targets_by_field(),
        "choices": choices(visit.texts, await _agents(visit), common["yes"], common["no"]),
        "behaviours": [(it, visit.texts["behaviours"][it or "own"]) for it in _BEHAVIOURS],
    }
    if refusal is not None:
        return refused(visit, "number.html", beside_fields(refusal), **values)
    return visit.show("number.html", **values)


async def _agents(visit: Visit) -> list[tuple[str, str]]:
    """Agents of the account to choose from; none without the right to see them."""
    listed = await ask_list(visit, "list_agents") if may_ask(visit, "list_agents") else None
    return [(it["id"], it["name"]) for it in listed.items] if listed else []
