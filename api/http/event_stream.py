"""Responses of server-sent events, as long as a page is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from api.http.connections import has_left
from api.http.middleware import current_request
from callcontrol.aio.page_events import PageEvents

__all__ = ["HEARTBEAT_S", "send_events"]

HEARTBEAT_S: Final = 15.0
"""Interval of comments to a quiet page, and of the question whether it is still admitted."""

_WRITE_TIMEOUT_S: Final = 15.0
_BEAT: Final = b": \n\n"


async def send_events(
    request: web.Request,
    events: PageEvents,
    is_admitted: Callable[[], Awaitable[bool]],
    headers: Mapping[str, str],
    *,
    last: bytes = b"",
    look_s: float = HEARTBEAT_S,
) -> web.StreamResponse:
    """
    Send events until they end, the client has left, or the page is not admitted any more.

    ``last`` is sent to a page that is not admitted any more. The server is told nothing of a connection that
    is closed, and looks after ``look_s``.
    """
    response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream"})
    # Proxies would keep small messages back.
    response.headers["X-Accel-Buffering"] = "no"
    current_request().mark(response)
    loop = asyncio.get_running_loop()
    try:
        await response.prepare(request)
        beat_s = loop.time()
        while (found := await events.next(look_s)) is not None and not has_left(request):
            if events.doubted or loop.time() >= beat_s + HEARTBEAT_S:
                beat_s, events.doubted = loop.time(), False
                found = found or _BEAT
                if not await is_admitted():
                    await _write(response, last)
                    break
            await _write(response, found)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(_WRITE_TIMEOUT_S):
        await response.write(data)
