"""The event stream of an open page (server-sent events)."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from api.console.feed import Subscription
from api.console.page import Pages
from api.console.rendering import HEADERS
from api.console.visit import HOME, Visit
from api.http.middleware import current_request
from callcontrol.errors import DomainError, Forbidden, Unauthorized

__all__ = ["pages"]

_HEARTBEAT_S: Final = 15.0
_WRITE_TIMEOUT_S: Final = 15.0
_END: Final = b"event: end\ndata: {}\n\n"
_BEAT: Final = b": \n\n"

# It has no texts of its own.
pages = Pages("common", scope="calls.read")


@pages.get(f"{HOME}/events")
async def stream(visit: Visit) -> web.StreamResponse:
    """
    Send the changes of the account's calls, or of the call in the query, until the page is closed.

    It ends with the event `end` when the session does.
    """
    call_sid = visit.query("call") or None
    if call_sid is not None:
        await visit.services.calls.get_call(visit.account_sid, call_sid)
    last_id = visit.request.headers.get("Last-Event-ID")
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    # Proxies would keep small messages back.
    response.headers["X-Accel-Buffering"] = "no"
    async with visit.console.feed.subscribe(visit.account_sid, call_sid, last_id) as subscription:
        current_request().mark(response)
        try:
            await response.prepare(visit.request)
            await _send(visit, response, subscription)
        except (ConnectionError, TimeoutError):
            if visit.request.transport is not None:
                visit.request.transport.abort()
    return response


async def _send(visit: Visit, response: web.StreamResponse, subscription: Subscription) -> None:
    loop = asyncio.get_running_loop()
    admitted_s = loop.time()
    while True:
        message = await subscription.next(_HEARTBEAT_S)
        if message is None:
            return
        if loop.time() >= admitted_s + _HEARTBEAT_S:
            if not await _is_admitted(visit):
                await response.write(_END)
                return
            admitted_s = loop.time()
        async with asyncio.timeout(_WRITE_TIMEOUT_S):
            await response.write(message or _BEAT)


async def _is_admitted(visit: Visit) -> bool:
    """Return True while the session lasts; a database that does not answer ends no stream."""
    try:
        await visit.storage.console_sessions.principal(visit.token)
    except (Unauthorized, Forbidden):
        return False
    except DomainError:
        return True
    return True
