"""HTTP between a client and servers of this process, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from aiohttp import ClientRequest
from aiohttp.client_proto import ResponseHandler

__all__ = ["MemoryConnector"]

Serve = Callable[[], asyncio.Protocol]
"""Makes the protocol of a connection, as `aiohttp.web.Server` does."""


class MemoryConnector(aiohttp.BaseConnector):
    """Connects to servers by the host of the URL; any other host refuses."""

    def __init__(self, servers: Mapping[str, Serve]) -> None:
        super().__init__(force_close=True)
        self._servers = servers

    async def _create_connection(self, req: ClientRequest, traces: Any, timeout: Any) -> ResponseHandler:
        serve = self._servers.get(req.url.host or "")
        if serve is None:
            refused = ConnectionRefusedError(111, "Connection refused")
            raise aiohttp.ClientConnectorError(req.connection_key, refused)
        client, server = self._factory(), serve()
        near, far = _Link(client), _Link(server)
        near.other, far.other = far, near
        server.connection_made(far)
        client.connection_made(near)
        return client


class _Link(asyncio.Transport):
    """One end of a connection; what is written arrives in the next turn of the loop."""

    other: _Link

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._closed = False
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closed:
            self._loop.call_soon(self.other._arrive, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        for end in (self, self.other):
            if not end._closed:
                end._closed = True
                # Behind what was written before.
                self._loop.call_soon(end._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.7", 40000) if name == "peername" else default

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def _arrive(self, data: bytes) -> None:
        # A connection that was closed meanwhile has told its protocol so, or is about to.
        self._protocol.data_received(data)
