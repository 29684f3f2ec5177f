"""Adapter that serves one aiohttp request by an ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from aiohttp import web

from api.http.connections import has_left
from api.http.middleware import current_request

__all__ = ["AsgiApp", "AsgiMessage", "Bridge"]

_log = logging.getLogger("api.mcp")

AsgiMessage = MutableMapping[str, Any]
AsgiApp = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[AsgiMessage]],
        Callable[[AsgiMessage], Awaitable[None]],
    ],
    Awaitable[None],
]

# Interval of checks for a disconnected client, which is not reported before a write. Streams that stay open
# for hours are checked less often, as there may be many.
_LOOK_EVERY_S, _LOOK_AT_STREAM_EVERY_S = 1.0, 5.0
_ADMIT_EVERY_S = 30.0
_WRITE_TIMEOUT_S = 15.0
_EVENTS = "text/event-stream"
# Not a standard status; proxies write it in their logs.
_CLIENT_CLOSED_REQUEST = 499
# Headers that the server sets itself, or that belong to one connection.
_LEFT_OUT = frozenset({"connection", "content-length", "transfer-encoding", "server", "date"})


class Bridge:
    """
    One request that an ASGI application serves.

    An event stream is sent as it is produced, any other response when it is complete. The application gets
    `http.disconnect` when the client has disconnected, has not read for 15 s or is no longer authorized.

    Attributes:
        on_answer: Called with the response's status and headers, before they are sent.
    """

    def __init__(self, request: web.Request, body: bytes, is_admitted: Callable[[], Awaitable[bool]]) -> None:
        self._request = request
        self._body: bytes | None = body
        self._is_admitted = is_admitted
        self.on_answer: Callable[[web.StreamResponse], None] | None = None
        self._gone, self._over = asyncio.Event(), asyncio.Event()
        self._response: web.StreamResponse | None = None
        self._whole = bytearray()

    @property
    def streams(self) -> bool:
        """True once an event stream has begun."""
        return self._response is not None and self._response.prepared

    async def forsaken(self) -> None:
        """If the client has disconnected, end the application now and wait until it has ended."""
        if self._is_gone():
            self._gone.set()
            await self._over.wait()

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._request.method

    async def run(self, app: AsgiApp, state: Mapping[str, Any]) -> web.StreamResponse:
        """Run the application and return its response; `state` is merged into its scope."""
        try:
            await app({**_scope(self._request), **state}, self._receive, self._send)
        except Exception:
            if not self.streams:
                raise
            # The status has been sent already, so only closing the connection can signal the failure.
            _log.exception("the stream of request %s failed", current_request().request_id)
            self._leave()
        finally:
            self._over.set()
        if self._response is None and self._is_gone():
            # Nobody reads it; it is for the log and the metrics.
            return web.Response(status=_CLIENT_CLOSED_REQUEST, reason="Client Closed Request")
        if self._response is None:
            raise RuntimeError("the application has sent nothing")
        if isinstance(self._response, web.Response):
            self._response.body = bytes(self._whole)
        return self._response

    async def _receive(self) -> AsgiMessage:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        looked_s, every_s = 0.0, _LOOK_EVERY_S if self.method == "POST" else _LOOK_AT_STREAM_EVERY_S
        while not self._is_gone():
            try:
                async with asyncio.timeout(every_s):
                    await self._gone.wait()
            except TimeoutError:
                looked_s += every_s
            if looked_s >= _ADMIT_EVERY_S:
                looked_s = 0.0
                if not await self._is_admitted():
                    break
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message["status"], message.get("headers", ()))
        elif isinstance(self._response, web.Response):
            self._whole += message.get("body", b"")
        elif self._response is not None and not self._is_gone():
            await self._write(self._response, message)

    async def _begin(self, status: int, lines: Any) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in lines]
        streams = any(name == "content-type" and value.startswith(_EVENTS) for name, value in headers)
        self._response = web.StreamResponse(status=status) if streams else web.Response(status=status)
        for name, value in headers:
            if name not in _LEFT_OUT:
                self._response.headers[name] = value
        if self.on_answer is not None:
            self.on_answer(self._response)
        if streams:
            current_request().mark(self._response)
            try:
                await self._response.prepare(self._request)
            except ConnectionError:
                self._gone.set()

    async def _write(self, response: web.StreamResponse, message: AsgiMessage) -> None:
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                if body := message.get("body"):
                    await response.write(body)
                if not message.get("more_body"):
                    await response.write_eof()
        except ConnectionError:
            self._gone.set()
        except TimeoutError:
            self._leave()

    def _is_gone(self) -> bool:
        return self._gone.is_set() or has_left(self._request)

    def _leave(self) -> None:
        self._gone.set()
        if self._request.transport is not None:
            self._request.transport.abort()


def _scope(request: web.Request) -> dict[str, Any]:
    """ASGI scope of the request."""
    headers = [(name.lower(), value) for name, value in request.raw_headers]
    if not any(name == b"accept" for name, _ in headers):
        # Without Accept, a client accepts any media type (RFC 9110, 12.5.1).
        headers.append((b"accept", b"*/*"))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.rel_url.raw_path.encode("ascii"),
        "root_path": "",
        "query_string": request.query_string.encode(),
        "headers": headers,
        "client": None,
        "server": None,
    }
