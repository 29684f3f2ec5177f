"""Receives webhooks, checks their signatures with code of its own, and keeps every one."""

from __future__ import annotations

import hashlib
import hmac
import json
import time

import aiohttp
from aiohttp import web

from tests.faults.oracle.evidence import Hook, is_end

__all__ = ["Receiver"]


class Receiver:
    """
    An HTTP server that takes every event, and a WebSocket at `/agent` that takes every stream.

    Attributes:
        secret: What events are signed with.
        hooks: Every attempt that came, in the order they came.
        ended: The calls of which an end was told.
        streams: How many streams an agent has taken.
        stream_ends: The last event of each stream that is over, and the code that its socket closed with.
    """

    def __init__(self) -> None:
        self.secret = ""
        self.hooks: list[Hook] = []
        self.last_at = time.monotonic()
        self.ended: set[str] = set()
        self.streams = 0
        self.stream_ends: list[tuple[str, int | None]] = []
        app = web.Application()
        app.router.add_post("/events", self._take)
        app.router.add_get("/agent", self._talk)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)

    async def open(self, port: int) -> None:
        """Listen on a port of 127.0.0.1."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()

    async def close(self) -> None:
        """Listen no more."""
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.last_at = time.monotonic()
        body = json.loads(raw)
        data = body["data"]
        wanted = "sha256=" + hmac.new(self.secret.encode(), raw, hashlib.sha256).hexdigest()
        given = request.headers.get("X-Service-Signature", "").split()
        self.hooks.append(
            Hook(
                delivery_id=request.headers["X-Service-Delivery"],
                event=body["event"],
                call_sid=str(data.get("call_sid") or data.get("id") or ""),
                sequence=int(body.get("sequence", 0)),
                signed=any(hmac.compare_digest(wanted, one) for one in given),
                at=self.last_at,
                data={"price": data.get("price"), "status": data.get("status")},
            )
        )
        if is_end(body["event"]):
            self.ended.add(self.hooks[-1].call_sid)
        return web.Response(status=204)

    async def _talk(self, request: web.Request) -> web.StreamResponse:
        """An agent that says nothing and hangs up with its caller."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.streams += 1
        last = ""
        async for message in socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                last = str(json.loads(message.data).get("event"))
        self.stream_ends.append((last, socket.close_code))
        return socket
