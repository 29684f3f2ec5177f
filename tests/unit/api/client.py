"""An HTTP client without sockets: it speaks to the application's own protocol object in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web, web_app
from aiohttp.web_protocol import RequestHandler
from multidict import CIMultiDict

from tests.support.api_facts import KEY


@dataclass(frozen=True)
class Answer:
    status: int
    headers: CIMultiDict[str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        return self.json()["data"]

    @property
    def code(self) -> str:
        code = self.json()["error"]["code"]
        assert isinstance(code, str)
        return code

    @property
    def fields(self) -> dict[str, str]:
        errors = self.json()["error"]["details"]["errors"]
        named = {error["field"]: error["message"] for error in errors}
        assert len(named) == len(errors), "a field is named twice"
        return named


class MemoryTransport(asyncio.Transport):
    """Keeps what the server writes; looks like a connection from `peer`."""

    def __init__(self, peer: str) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False
        self._peer = peer

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self._peer, 40000) if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


class Client:
    """
    One request per connection.

    Attributes:
        server: Makes the protocol of a connection.
    """

    def __init__(self, server: web.Server) -> None:
        self.server = server

    async def raw(self, request: bytes, peer: str = "192.0.2.7") -> Answer:
        """Send bytes and read one answer."""
        protocol = self.server()
        assert isinstance(protocol, RequestHandler)
        transport = MemoryTransport(peer)
        protocol.connection_made(transport)
        # Pieces, so that a body never arrives in the same call as its headers.
        for start in range(0, len(request), 65536):
            protocol.data_received(request[start : start + 65536])
        answer = None
        for turn in range(30_000):
            answer = _parse(bytes(transport.written), bodiless=request.startswith(b"HEAD "))
            if answer is not None or transport.closed:
                break
            # Files are opened by threads, which take time of their own.
            await asyncio.sleep(0 if turn < 1000 else 0.001)
        protocol.connection_lost(None)
        assert answer is not None, bytes(transport.written)
        return answer

    async def broken_off(self, request: bytes) -> None:
        """Send the beginning of a request and go, once it is being waited for the rest."""
        protocol = self.server()
        assert isinstance(protocol, RequestHandler)
        protocol.connection_made(MemoryTransport("192.0.2.7"))
        protocol.data_received(request)
        for _ in range(100):
            await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError("Connection lost"))
        for _ in range(100):
            await asyncio.sleep(0)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json_body: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = KEY,
        peer: str = "192.0.2.7",
    ) -> Answer:
        """Send a request; `key` None leaves the Authorization header out."""
        lines = CIMultiDict({"Host": "localhost"})
        if key is not None:
            lines["Authorization"] = f"Bearer {key}"
        if json_body is not None:
            body = json.dumps(json_body).encode()
        if body is not None:
            lines["Content-Type"] = "application/json"
            lines["Content-Length"] = str(len(body))
        lines.update(headers or {})
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in lines.items()
        )
        return await self.raw(head.encode() + b"\r\n" + (body or b""), peer)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.request("GET", path, **options)

    async def post(self, path: str, json_body: Any = None, **options: Any) -> Answer:
        return await self.request("POST", path, json_body=json_body, **options)

    async def put(self, path: str, json_body: Any = None, **options: Any) -> Answer:
        return await self.request("PUT", path, json_body=json_body, **options)

    async def patch(self, path: str, json_body: Any = None, **options: Any) -> Answer:
        return await self.request("PATCH", path, json_body=json_body, **options)

    async def delete(self, path: str, **options: Any) -> Answer:
        return await self.request("DELETE", path, **options)


@asynccontextmanager
async def client_for(app: web.Application) -> AsyncIterator[Client]:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    assert runner.server is not None
    try:
        yield Client(runner.server)
    finally:
        await runner.cleanup()
        # It would keep the applications of the last thousand requests, for the collector to go through.
        web_app._cached_build_middleware.cache_clear()


def _parse(data: bytes, *, bodiless: bool) -> Answer | None:
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    headers: CIMultiDict[str] = CIMultiDict()
    for line in lines:
        name, _, value = line.partition(": ")
        headers.add(name, value)
    length = 0 if bodiless else int(headers.get("Content-Length", "0"))
    if len(body) < length:
        return None
    return Answer(int(first.split()[1]), headers, body)
