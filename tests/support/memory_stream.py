"""Connections without sockets: the stream transports of the stack on virtual time, joined by hand."""

import asyncio
from typing import Any, cast

from sip.aio.tcp import StreamLimits, TcpTransport
from sip.aio.tcp_connection import Connection
from sip.aio.tls import TlsContexts
from sip.aio.transport import Address, Flow, Listen
from sip.message.parser import Limits


class MemoryStream:
    """The asyncio side of one connection: keeps what is written, or passes it to the other end."""

    def __init__(self, peer: Address) -> None:
        self.peer: Address | None = peer
        self.written: list[bytes] = []
        self.other: Connection | None = None
        self.closing = False
        self.aborted = False
        self.unsent_bytes = 0

    def write(self, data: bytes) -> None:
        assert not self.closing
        self.written.append(data)

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def get_extra_info(self, name: str) -> Any:
        return self.peer if name == "peername" else None

    def deliver(self) -> bool:
        """Pass on to the other end what has been written; whether there was anything."""
        written, self.written = self.written, []
        for data in written:
            assert self.other is not None
            self.other.data_received(data)
        return bool(written)


class Streams:
    """A transport on virtual time, and the connections that peers open to it."""

    def __init__(self, limits: StreamLimits | None = None, contexts: TlsContexts | None = None):
        self.time_s = 1000.0
        self.messages: list[tuple[bytes, Flow]] = []
        self.transport = TcpTransport(
            Listen("tcp", "192.0.2.1", 5060),
            lambda data, flow: self.messages.append((data, flow)),
            limits or StreamLimits(),
            Limits(),
            contexts,
        )
        self.transport.now = lambda: self.time_s  # type: ignore[method-assign]

    def accept(self, host: str = "192.0.2.2", port: int = 40000) -> tuple[Connection, MemoryStream]:
        """Open a connection from a peer."""
        connection = Connection(self.transport, ("", 0), None)
        stream = MemoryStream((host, port))
        connection.connection_made(cast(asyncio.BaseTransport, stream))
        return connection, stream

    def connect(self, host: str = "192.0.2.2", port: int = 5060, name: str | None = None) -> Connection:
        """Begin a connection to a peer; it is up once `come_up` says so."""
        key = self.transport.key_of((host, port), name)
        connection = self.transport._connections[key] = Connection(self.transport, (host, port), key)
        connection.name = name
        return connection

    def come_up(self, connection: Connection) -> MemoryStream:
        stream = MemoryStream(connection.remote)
        connection.connection_made(cast(asyncio.BaseTransport, stream))
        return stream

    def pass_time(self, seconds: float) -> None:
        """Advance the clock, with a check of the connections every second."""
        end_s = self.time_s + seconds
        while self.time_s < end_s:
            self.time_s += min(1.0, end_s - self.time_s)
            self.transport.sweep()


class News:
    """A watcher that counts what it is told."""

    def __init__(self) -> None:
        self.broken = 0

    def __call__(self) -> None:
        self.broken += 1
