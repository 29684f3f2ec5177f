"""The event stream of an open page (server-sent events)."""

from __future__ import annotations

from functools import partial
from typing import Final

from aiohttp import web

from api.console.page import Pages
from api.console.rendering import HEADERS
from api.console.visit import HOME, Visit
from api.http.event_stream import send_events
from api.http.session import signed_in_by
from callcontrol.errors import DomainError, Forbidden, Unauthorized

__all__ = ["pages"]

_END: Final = b"event: end\ndata: {}\n\n"

# It has no texts of its own.
pages = Pages("common", scope="calls.read", every_account=True)


@pages.get(f"{HOME}/events")
async def stream(visit: Visit) -> web.StreamResponse:
    """
    Send the changes of the account's calls, or of the call in the query, until the page is closed.

    With `levels` in the query it also gets the levels of the legs.

    It ends with the event `end` when the session does.
    """
    call_sid = visit.query("call") or None
    if call_sid is not None:
        await visit.call(call_sid)
    # Of all accounts, for an operator who is in none.
    account_sid = visit.account_sid or None
    last_id = visit.request.headers.get("Last-Event-ID")
    feed, levels = visit.console.feed, bool(visit.query("levels"))
    async with feed.subscribe(account_sid, call_sid, last_id, levels=levels) as subscription:
        return await send_events(
            visit.request, subscription, partial(_is_admitted, visit), HEADERS, last=_END
        )


async def _is_admitted(visit: Visit) -> bool:
    """Return True while the session lasts, in its account; a database that does not answer ends no stream."""
    try:
        found = await signed_in_by(visit.storage, visit.token)
    except (Unauthorized, Forbidden):
        return False
    except DomainError:
        return True
    return visit.session is not None and found.chosen == visit.session.chosen
