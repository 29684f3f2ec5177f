"""A TCP port that leads to another one, until it is cut: a network between two machines that breaks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S

__all__ = ["Tunnel"]

_HOST: Final = "127.0.0.1"


class Tunnel:
    """
    Attributes:
        port: Where it listens on 127.0.0.1 while it is whole.

    Args:
        to_port: Where it leads on 127.0.0.1.
    """

    def __init__(self, to_port: int) -> None:
        self.port = free_port()
        self._to_port = to_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tunnel", daemon=True)
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._deaf: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.mend()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def mend(self) -> None:
        """Lead there again."""
        self.refuse()
        self._run(self._open())

    def refuse(self) -> None:
        """End all connections, and refuse new ones, as a machine does whose firewall says no."""
        self._run(self._cut())

    def swallow(self) -> None:
        """End all connections, and answer nothing, as a network does that loses every packet."""
        self.refuse()
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deaf.bind((_HOST, self.port))
        deaf.listen(0)
        self._deaf.append(deaf)
        # Once the queue of those that nobody accepts is full, the kernel drops the packets of all others.
        for _ in range(3):
            waiting = socket.socket()
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect((_HOST, self.port))
            self._deaf.append(waiting)

    def _run(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE_S)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._lead, _HOST, self.port)

    async def _cut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for end in self._ends:
            end.transport.abort()
        for one in self._deaf:
            one.close()
        self._deaf.clear()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(_HOST, self._to_port)
        except OSError:
            writer.transport.abort()
            return
        self._ends |= {writer, far_writer}
        try:
            await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
        finally:
            self._ends -= {writer, far_writer}


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
