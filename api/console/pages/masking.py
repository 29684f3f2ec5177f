"""Masking: sessions, the numbers between the parties, and the log of their calls."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from api.console.operations import Listed, ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError

__all__ = ["pages"]

PATH: Final = f"{HOME}/masking"
LOGS: Final = f"{PATH}/logs"
_SEARCHED: Final = ("status", "party", "masked_number")
_IN_LOGS: Final = ("party", "session_id", "start_date", "end_date")

pages = Pages("masking", scope="masking.read", writes="masking.write", nav=Navigation("products", 10, PATH))


@pages.get(PATH)
async def list_sessions(visit: Visit) -> web.StreamResponse:
    """Show sessions, newest first, and the numbers that they use."""
    return await _sessions(visit)


@pages.post(f"{PATH}/sessions")
async def create_session(visit: Visit) -> web.StreamResponse:
    """Create a session between two parties."""
    return await change(
        visit, "create_masking_session", again=_sessions, to=PATH, done="made", form=visit.form
    )


@pages.post(f"{PATH}/sessions/{{id}}/close")
async def close_session(visit: Visit) -> web.StreamResponse:
    """Close a session; its calls go on."""
    path = {"session_id": visit.path("id")}
    return await change(visit, "close_masking_session", path, again=_sessions, to=PATH, done="closed")


@pages.post(f"{PATH}/numbers")
async def enrol_number(visit: Visit) -> web.StreamResponse:
    """Use a number of the account for sessions."""
    return await change(
        visit, "enrol_masked_number", again=_sessions, to=PATH, done="enrolled", form=visit.form
    )


@pages.post(f"{PATH}/numbers/{{id}}/withdraw")
async def withdraw_number(visit: Visit) -> web.StreamResponse:
    """Withdraw a number from sessions."""
    path = {"phone_number_id": visit.sid("id")}
    return await change(visit, "withdraw_masked_number", path, again=_sessions, to=PATH, done="withdrawn")


@pages.post(f"{PATH}/calls")
async def start_call(visit: Visit) -> web.StreamResponse:
    """Call both parties now, neither of whom sees the other's number."""
    try:
        call = await ask(visit, "start_masked_call", form=visit.form)
    except DomainError as refusal:
        return await _sessions(visit, refusal)
    visit.go(f"{HOME}/calls/{call['call_sid']}" if visit.may("calls.read") else LOGS)


@pages.get(LOGS)
async def list_logs(visit: Visit) -> web.StreamResponse:
    """Show masked calls, newest first."""
    wanted = visit.queries(*_IN_LOGS)
    values: dict[str, Any] = {"wanted": wanted, "calls": Listed([])}
    try:
        values["calls"] = await ask_list(visit, "list_masked_calls", query=wanted)
    except DomainError as refusal:
        return refused(visit, "masking_logs.html", refusal, **values)
    return visit.show("masking_logs.html", **values)


async def _sessions(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    wanted = visit.queries(*_SEARCHED)
    values: dict[str, Any] = {
        "wanted": wanted,
        "sessions": Listed([]),
        "numbers": await ask_list(visit, "list_masked_numbers"),
        "stats": await ask(visit, "masking_stats"),
        "may_change": may_ask(visit, "create_masking_session"),
    }
    try:
        values["sessions"] = await ask_list(visit, "list_masking_sessions", query=wanted)
    except DomainError as error:
        return refused(visit, "masking.html", refusal or error, **values)
    if refusal is not None:
        return refused(visit, "masking.html", refusal, **values)
    return visit.show("masking.html", **values)
