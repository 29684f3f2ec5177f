"""A voice agent for tests: a WebSocket server on loopback, and a stand-in for the engine's tap."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import WSMsgType, web

from media import _engine
from media.aio.agent_dial import SocketAddress
from media.aio.tap import AgentTap
from tests.support.agent_paths import Carrier, agent_url

__all__ = ["Bot", "FakeTap", "no_leaks", "raw_server", "to_loopback"]

# A patience costs nothing when what is waited for comes.
PATIENCE_S = 40.0

Script = Callable[["Bot"], Awaitable[None]]


class Bot:
    """
    One agent; its script runs once per connection, after the two opening frames.

    `received` holds every text frame as its JSON object, `request` the last upgrade request. A script that
    waits for `released` does nothing until the test is over.
    """

    def __init__(self, script: Script, *, autoping: bool = True, opening_frames: int = 2) -> None:
        self.received: list[dict[str, Any]] = []
        self.request: web.Request | None = None
        self.port = 0
        self.connections = 0
        self.close_code: int | None = None
        self.released = asyncio.Event()
        self.closed = asyncio.Event()
        self._script = script
        self._autoping = autoping
        self._opening_frames = opening_frames
        self._socket: web.WebSocketResponse | None = None

    @property
    def url(self) -> str:
        return agent_url(self.port, "/ws")

    @property
    def socket(self) -> web.WebSocketResponse:
        assert self._socket is not None
        return self._socket

    async def send(self, **message: Any) -> None:
        await self.socket.send_str(json.dumps(message))

    async def next(self) -> dict[str, Any] | None:
        """The next text frame; None once the socket is closed."""
        message = await self.socket.receive(timeout=PATIENCE_S)
        if message.type is WSMsgType.TEXT:
            frame: dict[str, Any] = json.loads(message.data)
            self.received.append(frame)
            return frame
        assert message.type in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR), (
            message
        )
        self.close_code = self.socket.close_code
        self.closed.set()
        return None

    async def until(self, event: str) -> dict[str, Any]:
        """The next frame of that kind."""
        while frame := await self.next():
            if frame["event"] == event:
                return frame
        raise AssertionError(f"closed before {event}")

    async def until_closed(self) -> None:
        while await self.next() is not None:
            pass

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.request = request
        self.connections += 1
        self._socket = web.WebSocketResponse(autoping=self._autoping, autoclose=True, compress=False)
        await self._socket.prepare(request)
        for _ in range(self._opening_frames):
            await self.next()
        await self._script(self)
        return self._socket

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Bot]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._serve)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=Carrier.tls)
        await site.start()
        server = runner.addresses[0]
        self.port = server[1]
        try:
            yield self
        finally:
            self.released.set()
            await runner.cleanup()


class FakeTap(AgentTap):
    """Tap that records its calls."""

    def __init__(self, on_mark: Callable[[str, bool], None] | None = None) -> None:
        self.written = bytearray()
        self.done: list[str] = []
        self._pending: list[str] = []
        self._on_mark = on_mark
        self._changed = asyncio.Event()

    def carry(self, socket: _engine.AgentSocket) -> bool:
        return False

    def write(self, audio: bytes) -> None:
        self.written += audio
        self._note(f"write {len(audio)}")

    def mark(self, name: str) -> None:
        self._pending.append(name)
        self._note(f"mark {name}")

    def clear(self) -> None:
        self._note("clear")
        self.reach(cleared=True)

    def reach(self, *, cleared: bool = False) -> None:
        """Report all pending marks."""
        pending, self._pending = self._pending, []
        for name in pending:
            if self._on_mark is not None:
                self._on_mark(name, cleared)

    async def until(self, condition: Callable[[FakeTap], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    def _note(self, text: str) -> None:
        self.done.append(text)
        self._changed.set()


async def to_loopback(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
    """Resolve every name to this machine."""
    return [("127.0.0.1", port)]


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(handle: Handler) -> AsyncIterator[int]:
    """A TCP server that does what a WebSocket server must not; yields its port."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=Carrier.tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            # That of TLS which is closed already is taken apart.
            if Carrier.tls is None or not writer.is_closing():
                writer.transport.abort()
        await server.wait_closed()


@asynccontextmanager
async def no_leaks() -> AsyncIterator[None]:
    """Fail if the block leaves a task behind."""
    before = asyncio.all_tasks()
    yield
    left: set[asyncio.Task[Any]] = set()
    for _ in range(2000):
        left = asyncio.all_tasks() - before - {asyncio.current_task()}
        if not left:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"tasks left behind: {left}")
