"""Calls that are up now, as they change."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from aiohttp import web
from pydantic_core import to_json

from api.console.feed import call_summary, legs_of
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.accounts.aio.sessions import SESSION_LIFE
from callcontrol.aio.tokens import utc_now
from callcontrol.models import CallFilter
from callcontrol.webrtc.listeners import LISTEN_SCOPE

__all__ = ["pages"]

PATH: Final = f"{HOME}/live"
MOST_SHOWN: Final = 200
"""Calls that the page shows; it says how many more there are."""

pages = Pages(
    "live", scope="calls.read", writes="calls.write", nav=Navigation("calls", 10, PATH), every_account=True
)


@pages.get(PATH)
async def show(visit: Visit) -> web.StreamResponse:
    """Show the calls that are up; a script keeps the list up to date."""
    listens = visit.may(LISTEN_SCOPE)
    ice = visit.services.browser_calls.ice
    until_s = (utc_now() + SESSION_LIFE).timestamp()
    return visit.show(
        "live.html",
        data=await _calls(visit),
        writes=visit.may("calls.write"),
        listens=listens,
        ice=[asdict(server) for server in ice.offered("console", until_s)] if listens else [],
    )


@pages.get(f"{PATH}/calls")
async def calls(visit: Visit) -> web.StreamResponse:
    """Respond with the calls that are up, for a page that has missed events."""
    body = to_json(await _calls(visit))
    return web.Response(body=body, content_type="application/json")


async def _calls(visit: Visit) -> dict[str, Any]:
    """
    Return the calls that are up, newest first, with the legs of those on this node.

    They are those of the account, or of all for an operator who has chosen none.
    """
    wanted, every = CallFilter(active=True), visit.every_account
    if every:
        page = await visit.storage.calls.list_of_all_accounts(wanted, MOST_SHOWN)
    else:
        page = await visit.services.calls.list_calls(visit.account_sid, wanted, 1, MOST_SHOWN)
    found = []
    for stored in page.items:
        runner = visit.services.calls.active(stored.call_sid)
        # The record in memory is newer than its row.
        record = stored if runner is None else runner.record
        if not record.status.ended:
            account = visit.account_name(record.account_sid) if every else None
            found.append(call_summary(record, legs_of(visit.services, record.call_sid), account))
    return {"calls": found, "total": max(page.total, len(found))}
