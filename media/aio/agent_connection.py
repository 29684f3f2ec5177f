"""A connected socket to an agent, with or without TLS, until the engine takes it over."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import lru_cache

from media import _engine
from media.streams import StreamConnectError

_READ_BYTES = 4096
# Far more than certificates and an answer take. A read of what is there already does not give way to the
# loop: what never ends and is ignored, as requests for a handshake in one are, would hold it up.
_MAX_READ_BYTES = 256 * 1024
_HUNG_UP = "the agent hung up during the handshake"

# By the numbers of `State` in client.hpp.
_CONNECTING, _OPEN, _FAILED = 0, 1, 3


class AgentConnection:
    """
    Bytes both ways over a socket.

    Attributes:
        sock: The socket, connected and non-blocking.
        tls: State of TLS; None without it.
    """

    def __init__(self, sock: socket.socket, tls: _engine.TlsClient | None = None) -> None:
        self.sock = sock
        self.tls = tls
        self._read_bytes = 0

    async def handshake(self) -> None:
        """
        Complete the handshake of TLS, if there is one to do.

        Raises:
            StreamConnectError: The agent hung up, or has no certificate of its name, or speaks no TLS, or too
                much of it.
            OSError: The connection failed.
        """
        tls = self.tls
        if tls is None:
            return
        await self._flush(tls)
        while tls.state == _CONNECTING:
            data = await self._read()
            if not data:
                raise StreamConnectError("connect", detail=_HUNG_UP)
            tls.receive(data)
            await self._answer(tls)

    async def send(self, data: bytes) -> None:
        """
        Send all bytes.

        Raises:
            StreamConnectError: TLS has failed.
            OSError: The connection failed.
        """
        if self.tls is None:
            await asyncio.get_running_loop().sock_sendall(self.sock, data)
            return
        if not self.tls.write(data):
            raise StreamConnectError("tls", detail=self.tls.fault)
        await self._flush(self.tls)

    async def receive(self) -> bytes:
        """
        Return some bytes, at least one.

        Raises:
            StreamConnectError: The agent hung up, or sent too much, or TLS has failed.
            OSError: The connection failed.
        """
        if self.tls is not None:
            data = await self._decrypted(self.tls)
        else:
            data = await self._read()
        if not data:
            raise StreamConnectError("connect", detail=_HUNG_UP)
        return data

    def rest(self) -> bytes:
        """Return the bytes that were read from the socket and not received yet."""
        return b"".join(iter(self.tls.read, b"")) if self.tls is not None else b""

    async def _decrypted(self, tls: _engine.TlsClient) -> bytes:
        """Return the content of the next record; empty at the end of the agent's output."""
        while not (data := tls.read()):
            await self._answer(tls)
            if tls.state != _OPEN:
                return b""
            received = await self._read()
            if not received:
                return b""
            tls.receive(received)
        return data

    async def _read(self) -> bytes:
        """Return bytes that came; empty at the end of the agent's output."""
        data = await asyncio.get_running_loop().sock_recv(self.sock, _READ_BYTES)
        self._read_bytes += len(data)
        if self._read_bytes > _MAX_READ_BYTES:
            raise StreamConnectError("protocol", detail="too much came before the upgrade")
        return data

    async def _answer(self, tls: _engine.TlsClient) -> None:
        """Send what TLS has to say to what came."""
        if tls.state != _FAILED:
            await self._flush(tls)
            return
        # The agent may be gone before it can be told why.
        with suppress(OSError):
            await self._flush(tls)
        raise StreamConnectError("tls", detail=tls.fault)

    async def _flush(self, tls: _engine.TlsClient) -> None:
        output = tls.take_output()
        if output:
            await asyncio.get_running_loop().sock_sendall(self.sock, output)


def tls_client(host: str, ca_file: str | None) -> _engine.TlsClient:
    """
    Begin TLS to a host.

    Args:
        host: Name or IP address that the certificate must be for.
        ca_file: PEM file of the trusted authorities; None for those of the system.

    Raises:
        StreamConnectError: The name cannot be one.
    """
    try:
        return _engine.TlsClient(_tls_context(ca_file), host)
    except ValueError as error:
        raise StreamConnectError("tls", detail=str(error)) from None


@lru_cache(maxsize=4)
def _tls_context(ca_file: str | None) -> _engine.TlsContext:
    """Return the context for all agents; loading the authorities takes too long to do it per call."""
    return _engine.TlsContext(ca_file or "")
