"""
The connections of HTTP clients: none is kept that is waited for in vain.

A client that has begun no request, the first or another, or has sent half of one's head, is waited for so
long; so many are waited for at a time, and the one that has been longest makes room. So is a client that
takes nothing of its answer.
What is no HTTP is refused as everything else is.
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
from api.http.request_context import Exchange

__all__ = ["ConnectionLimits", "GuardedSite"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """
    How patient the server is with connections.

    Attributes:
        head_s: How long the head of the first request may take.
        idle_s: How long it may then take until the head of the next one is complete.
        max_heads: How many connections may wait for either at a time; None for a quarter of the descriptors
            that the process may have.
        stalled_s: How long a client may take nothing of what is sent.
    """

    head_s: float = 15.0
    idle_s: float = 75.0
    max_heads: int | None = None
    stalled_s: float = 60.0


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
    """One connection; ``beginning`` are all of the site that wait for a head, the oldest first."""

    __slots__ = ("_beginning", "_limits", "_timer")

    def __init__(
        self,
        server: Any,
        loop: asyncio.AbstractEventLoop,
        beginning: dict[_Connection, None],
        limits: ConnectionLimits,
    ) -> None:
        # As a runner hands it on when it is told to log no access, whatever the annotation says.
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
        """Wait for nothing more."""
        self._beginning.pop(self, None)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        # What comes before a request, such as empty lines, begins none.
        if self._messages and self in self._beginning:
            del self._beginning[self]
            self._stop_waiting()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """End an answer, and wait for the next request: as long as the library does, but with few."""
        finished = await super().finish_response(request, resp, start_time)
        # What has come already is under way.
        if self.transport is not None and not self._messages:
            self._begin()
        return finished

    def pause_writing(self) -> None:
        """Wait for the client to take what it was sent."""
        super().pause_writing()
        self._wait(self._limits.stalled_s)

    def resume_writing(self) -> None:
        """Go on; it took some."""
        self._stop_waiting()
        super().resume_writing()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse what is no HTTP, in the words of every other refusal and not in those of the library."""
        super().handle_error(request, status, exc, message)
        if status >= 500:
            refusal = ApiError(status, "INTERNAL_ERROR", "Unexpected server error; retry with backoff.")
        else:
            refusal = ApiError(status, "BAD_REQUEST", "This is no HTTP request that can be read.")
        answer = web.json_response(refusal.body(), status=status, dumps=_compact)
        Exchange(str(uuid.uuid4())).mark(answer)
        answer.force_close()
        return answer

    def _begin(self) -> None:
        """Be among those that are waited for; who has been longest makes room."""
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
