"""Trunks: registrations, gateways with the round trip of their OPTIONS, and a test call."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from api.console.operations import ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError

__all__ = ["pages"]

PATH: Final = f"{HOME}/trunks"
ONE: Final = PATH + "/{id}"
GATEWAY: Final = ONE + "/gateways/{gateway}"

_TYPES: Final = ("static_ip", "auth", "reg")
_PROTOCOLS: Final = ("udp", "tcp", "tls", "tls/srtp", "auto")
# The call is answered, has audio both ways for its quality, and ends by itself.
_TRIAL: Final = [{"verb": "pause", "length": 5}, {"verb": "hangup"}]

pages = Pages("trunks", scope="trunks.read", writes="trunks.write", nav=Navigation("resources", 20, PATH))


@pages.get(PATH)
async def list_trunks(visit: Visit) -> web.StreamResponse:
    """Show the trunks of the account with the state of their registrations."""
    return await _trunks(visit)


@pages.post(PATH)
async def create_trunk(visit: Visit) -> web.StreamResponse:
    """Create a trunk, and go to it."""
    try:
        made = await ask(visit, "create_carrier", form=visit.form)
    except DomainError as refusal:
        return await _trunks(visit, refusal)
    visit.go(f"{PATH}/{made['carrier_sid']}", done="made")


@pages.get(ONE)
async def show_trunk(visit: Visit) -> web.StreamResponse:
    """Show a trunk with its registrations and gateways."""
    return await _trunk(visit)


@pages.post(ONE + "/active")
async def switch_trunk(visit: Visit) -> web.StreamResponse:
    """Switch a trunk on or off."""
    return await _change(visit, "update_carrier", form=visit.form)


@pages.post(ONE + "/gateways")
async def add_gateway(visit: Visit) -> web.StreamResponse:
    """Add a gateway; an empty port is looked up by SRV."""
    body = {} if visit.form.get("port", "").strip() else {"port": None}
    return await _change(visit, "create_gateway", form=visit.form, body=body)


@pages.post(GATEWAY)
async def change_gateway(visit: Visit) -> web.StreamResponse:
    """Change a gateway: whether it is asked by OPTIONS, and whether it is used."""
    return await _change(visit, "update_gateway", form=visit.form)


@pages.post(GATEWAY + "/remove")
async def remove_gateway(visit: Visit) -> web.StreamResponse:
    """Remove a gateway."""
    return await _change(visit, "delete_gateway")


@pages.post(ONE + "/delete")
async def delete_trunk(visit: Visit) -> web.StreamResponse:
    """Delete a trunk without numbers and calls."""
    path = {"carrier_sid": visit.sid("id")}
    return await change(visit, "delete_carrier", path, again=_trunk, to=PATH, done="deleted")


@pages.post(ONE + "/call", scope="calls.write")
async def place_test_call(visit: Visit) -> web.StreamResponse:
    """Place a call by this trunk alone, and go to it."""
    body = {"carrier_sid": visit.sid("id"), "verbs": _TRIAL}
    try:
        call = await ask(visit, "create_call", form=visit.form, body=body)
    except DomainError as refusal:
        return await _trunk(visit, refusal)
    visit.go(f"{HOME}/calls/{call['call_sid']}")


async def _change(visit: Visit, operation: str, **given: Any) -> web.StreamResponse:
    """Change the trunk or the gateway that the path names."""
    trunk = visit.sid("id")
    path = {"carrier_sid": trunk}
    if "gateway" in visit.request.match_info:
        path["gateway_sid"] = visit.sid("gateway")
    to = f"{PATH}/{trunk}"
    return await change(visit, operation, path, again=_trunk, to=to, done="changed", **given)


async def _trunks(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    values: dict[str, Any] = {
        "trunks": await ask_list(visit, "list_carriers"),
        "may_change": may_ask(visit, "create_carrier"),
        "types": [(it, visit.texts["types"][it]) for it in _TYPES],
    }
    for trunk in values["trunks"].items:
        trunk["register_status"] = trunk["register_status"]["state"]
    if refusal is not None:
        return refused(visit, "trunks.html", refusal, **values)
    return visit.show("trunks.html", **values)


async def _trunk(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    path = {"carrier_sid": visit.sid("id")}
    trunk = await ask(visit, "get_carrier", path)
    gateways = (await ask_list(visit, "list_gateways", path)).items
    for gateway in gateways:
        health = gateway["health"]
        gateway |= {"health_status": health["state"], "last_ok_at": health["last_ok_at"]}
        gateway["rtt"] = None if health["rtt_ms"] is None else f"{health['rtt_ms']:.1f} ms"
    values: dict[str, Any] = {
        "trunk": trunk,
        "gateways": gateways,
        "may_change": may_ask(visit, "update_carrier"),
        "may_call": may_ask(visit, "create_call"),
        "protocols": [(it, it) for it in _PROTOCOLS],
        "numbers": await _numbers(visit),
    }
    if refusal is not None:
        return refused(visit, "trunk.html", refusal, **values)
    return visit.show("trunk.html", **values)


async def _numbers(visit: Visit) -> list[str]:
    """Numbers of the account, the first of which a test call shows."""
    if not may_ask(visit, "list_numbers"):
        return []
    return [it["number"] for it in (await ask_list(visit, "list_numbers", query={"status": "active"})).items]
