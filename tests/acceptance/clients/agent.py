"""A voice agent: a WebSocket server that the product connects, speaking in JSON text frames."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import WSCloseCode, WSMsgType, web

from tests.acceptance.clients.waiting import PATIENCE_S, appears
from tests.support.ports import free_port

__all__ = ["Agent", "AgentCall", "upgrade_signature"]


@dataclass(eq=False)
class AgentCall:
    """
    One connection.

    Attributes:
        frames: The text frames that came, decoded.
        binary: The binary frames that came.
        closed: Set at the end of the connection; `close_code` is then what the other side gave.
    """

    path: str
    headers: Mapping[str, str]
    socket: web.WebSocketResponse
    frames: list[dict[str, Any]] = field(default_factory=list)
    binary: list[bytes] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    close_code: int | None = None

    def named(self, event: str) -> list[dict[str, Any]]:
        """Frames of one event."""
        return [frame for frame in self.frames if frame.get("event") == event]

    async def frame(
        self,
        event: str,
        where: Callable[[dict[str, Any]], object] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> dict[str, Any]:
        """Wait for a frame, and return the first such one."""

        def look() -> dict[str, Any] | None:
            found = self.named(event)
            return next((frame for frame in found if where is None or where(frame)), None)

        return await appears(look, f"the frame {event}", timeout_s)

    async def until_closed(self, timeout_s: float = PATIENCE_S) -> int | None:
        """Wait for the end of the connection, and return its code."""
        await appears(self.closed.is_set, "the end of the stream", timeout_s)
        return self.close_code

    @property
    def heard(self) -> list[int]:
        """Samples that came in `media` frames of 16-bit PCM."""
        data = b"".join(base64.b64decode(frame["media"]["payload"]) for frame in self.named("media"))
        return list(struct.unpack(f"<{len(data) // 2}h", data))

    async def send(self, **frame: Any) -> None:
        """Send a text frame."""
        await self.socket.send_str(json.dumps(frame))

    async def say(self, pcm: Sequence[int]) -> None:
        """Send samples of 16-bit PCM in one frame."""
        data = struct.pack(f"<{len(pcm)}h", *pcm)
        await self.send(event="media", media={"payload": base64.b64encode(data).decode()})

    async def close(self, code: int = WSCloseCode.OK) -> None:
        """Close the connection."""
        await self.socket.close(code=code)


class Agent:
    """
    A server that takes connections on any path.

    Attributes:
        calls: Its connections, in their order.
        subprotocols: Subprotocols that it accepts.
    """

    def __init__(self) -> None:
        self.calls: list[AgentCall] = []
        self.subprotocols: tuple[str, ...] = ()
        self.port = free_port()
        self._connected = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for call in self.calls:
            await call.close()
        await self._runner.cleanup()

    def url(self, path: str = "/ws") -> str:
        """Address of this agent."""
        return f"ws://127.0.0.1:{self.port}{path}"

    async def connected(self, timeout_s: float = PATIENCE_S) -> AgentCall:
        """Wait for the next connection; each is returned once."""
        wanted = self._connected
        await appears(lambda: len(self.calls) > wanted, "a connection to the agent", timeout_s)
        self._connected += 1
        return self.calls[wanted]

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=self.subprotocols, compress=False)
        await socket.prepare(request)
        call = AgentCall(str(request.rel_url), request.headers.copy(), socket)
        self.calls.append(call)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                call.frames.append(json.loads(message.data))
            elif message.type is WSMsgType.BINARY:
                call.binary.append(message.data)
        call.close_code = socket.close_code
        call.closed.set()
        return socket


def upgrade_signature(secret: str, timestamp: str, url: str) -> str:
    """Compute the signature of the request that opens a stream: over the time and the dialled URL."""
    digest = hmac.new(secret.encode(), f"{timestamp}.{url}".encode(), hashlib.sha256)
    return "sha256=" + digest.hexdigest()
