"""
Limits on idle and slow connections of HTTP clients.

A connection without a complete request head (first or later) is closed after a time limit. The number of
such connections is limited too: the one that has waited longest is closed for a new one. A client that
reads nothing of its response is closed after a time limit as well.
Input that is not HTTP gets the same error envelope as any other refusal.
"""

from __future__ import annotations

import asyncio
import json
import resource
import uuid
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from api.http.errors import ApiError
from api.http.middleware import RequestContext

__all__ = ["ConnectionLimits", "GuardedSite", "has_left"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """
    Time and number limits of connections.

    Attributes:
        head_s: Limit for the head of the first request, in seconds.
        idle_s: Limit from a response to the complete head of the next request, in seconds.
        max_heads: Limit of connections that wait for either; None for a quarter of the process's limit of
            file descriptors.
        stalled_s: Seconds that a client may read nothing of what is sent.
    """

    head_s: float = 15.0
    idle_s: float = 75.0
    max_heads: int | None = None
    stalled_s: float = 60.0


def has_left(request: web.Request) -> bool:
    """Return True if the client has disconnected."""
    return request.transport is None or request.transport.is_closing()


class GuardedSite(web.SockSite):
    """Serves an application on a socket within limits."""

    def __init__(self, runner: web.AppRunner, sock: Any, limits: ConnectionLimits | None = None) -> None:
        super().__init__(runner, sock)
        self._limits = limits or ConnectionLimits()

    async def start(self) -> None:
        """Begin to take connections."""
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None
        loop = asyncio.get_running_loop()
        beginning: dict[_Connection, None] = {}
        limits = self._limits
        if limits.max_heads is None:
            descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limits = replace(limits, max_heads=descriptors // 4)
        self._server = await loop.create_server(
            lambda: _Connection(server, loop, beginning, limits), sock=self._sock, backlog=self._backlog
        )


class _Connection(RequestHandler):
    """One connection; ``beginning`` holds the site's connections that wait for a head, oldest first."""

    __slots__ = ("_beginning", "_limits", "_timer")

    def __init__(
        self,
        server: Any,
        loop: asyncio.AbstractEventLoop,
        beginning: dict[_Connection, None],
        limits: ConnectionLimits,
    ) -> None:
        # A runner without access log passes None here, although the annotation does not allow it.
        access_log: Any = None
        super().__init__(server, loop=loop, access_log=access_log, keepalive_timeout=limits.idle_s)
        self._beginning = beginning
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the head of the first request."""
        super().connection_made(transport)
        self._begin()
        self._wait(self._limits.head_s)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timers of a closed connection."""
        self._beginning.pop(self, None)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; a complete head stops the timer."""
        super().data_received(data)
        # Bytes before a request, for example empty lines, do not begin one.
        if self._messages and self in self._beginning:
            del self._beginning[self]
            self._stop_waiting()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Finish a response and wait for the next request, within the library's time and our number limit."""
        finished = await super().finish_response(request, resp, start_time)
        # A pipelined request is being handled already.
        if self.transport is not None and not self._messages:
            self._begin()
        return finished

    def pause_writing(self) -> None:
        """Start the stall timer: the client's receive window is full."""
        super().pause_writing()
        self._wait(self._limits.stalled_s)

    def resume_writing(self) -> None:
        """Stop the stall timer: the client has read some data."""
        self._stop_waiting()
        super().resume_writing()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse malformed HTTP in the error envelope of the API instead of the library's text."""
        super().handle_error(request, status, exc, message)
        if status >= 500:
            refusal = ApiError(status, "INTERNAL_ERROR", "Unexpected server error; retry with backoff.")
        else:
            refusal = ApiError(status, "BAD_REQUEST", "This is no HTTP request that can be read.")
        answer = web.json_response(refusal.body(), status=status, dumps=_compact)
        RequestContext(str(uuid.uuid4())).mark(answer)
        answer.force_close()
        return answer

    def _begin(self) -> None:
        """Join the connections that wait for a head; above the limit, close the one that waited longest."""
        self._beginning[self] = None
        if self._limits.max_heads is not None and len(self._beginning) > self._limits.max_heads:
            next(iter(self._beginning))._give_up()

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self._loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._beginning.pop(self, None)
        self._stop_waiting()
        if self.transport is not None:
            self.transport.abort()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
