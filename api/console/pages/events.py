"""The event stream of an open page (server-sent events)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Final

from aiohttp import web

from api.console.feed import Subscription
from api.console.page import Pages
from api.console.rendering import HEADERS, refusal_text
from api.console.visit import HOME, UUID, Visit
from api.http.event_stream import send_events
from api.http.session import signed_in_by
from callcontrol.errors import DomainError, Forbidden, NotFound, Unauthorized, ValidationFailed

__all__ = ["pages"]

MOST_CALLS: Final = 50
"""Calls whose pages a browser may have open."""

_END: Final = b"event: end\ndata: {}\n\n"

# It has no texts of its own.
pages = Pages("common", every_account=True)


@pages.get(f"{HOME}/events")
async def stream(visit: Visit) -> web.StreamResponse:
    """
    Send what concerns the open pages of a browser, until they are closed.

    These are changes of the calls that `call` in the query names, and with `calls=all` of all; with `levels`
    the levels of their legs, too. A key that may see no calls gets none of them.

    It ends with the event `end` when the session does.

    Raises:
        Unauthorized: The pages are of the session that `session` names, and the cookie is of another one.
    """
    if visit.query("session") not in ("", visit.events):
        raise Unauthorized(refusal_text("other_session"))
    reads = visit.may("calls.read")
    wanted = Subscription(
        every=reads and visit.query("calls") == "all",
        calls=await _calls(visit) if reads else (),
        levels=bool(visit.query("levels")),
        holder=visit.token,
    )
    # Of all accounts, for an operator who is in none.
    account_sid = visit.principal.account_sid or None
    last_id = visit.request.headers.get("Last-Event-ID")
    async with visit.console.feed.subscribe(account_sid, wanted, last_id) as subscription:
        return await send_events(
            visit.request, subscription, partial(_is_admitted, visit), HEADERS, last=_END
        )


async def _calls(visit: Visit) -> Collection[str]:
    """
    Calls of the query whose pages the session may see; that of another page must not end those of all.

    Raises:
        ValidationFailed: There are too many.
    """
    named = set(visit.request.query.getall("call", ()))
    if len(named) > MOST_CALLS:
        raise ValidationFailed.of("call", refusal_text("too_many_calls", most=MOST_CALLS))
    found = set()
    for call_sid in named:
        if UUID.fullmatch(call_sid) is not None:
            with suppress(NotFound, Forbidden):
                found.add((await visit.call(call_sid.lower())).call_sid)
    return found


async def _is_admitted(visit: Visit) -> bool:
    """Return True while the session lasts, in its account; a database that does not answer ends no stream."""
    try:
        found = await signed_in_by(visit.storage, visit.token)
    except (Unauthorized, Forbidden):
        return False
    except DomainError:
        return True
    return visit.session is not None and found.chosen == visit.session.chosen
