"""SIP over TCP and TLS: a listening socket and the table of its connections (RFC 3261 18, RFC 5923)."""

import asyncio
import socket
from collections import Counter, deque
from dataclasses import dataclass

from sip.aio.guard import Guard
from sip.aio.tcp_connection import Connection, Key
from sip.aio.tls import TlsContexts
from sip.aio.transport import Address, Flow, Listen, Receive, Transport
from sip.certificates import proves
from sip.message.fields import Via
from sip.message.parser import Limits
from sip.protection.rate_limits import source_of

SWEEP_S = 1.0
"""Interval between checks of the connections, in seconds."""
_BACKLOG = 100
"""Connections that may wait to be accepted."""
LINGER_S = 5.0
"""Time a closed socket may take to send its last bytes: a peer that does not read must not hold it."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Limits on the connections of one listening address."""

    max_connections: int = 1024
    max_per_source: int = 256
    """Connections that one source address (IPv6: one /64 network) may open."""
    max_per_unknown_source: int = 32
    """The same for an unknown source."""
    connect_timeout_s: float = 3.0
    """Limit for connections we open, and for their handshake: less than the silence that ends an INVITE."""
    first_message_s: float = 30.0
    """Limit from accepting a connection, handshake included, to its first complete message."""
    message_s: float = 15.0
    """Limit from the first byte of a message to its last."""
    idle_s: float = 600.0
    """Limit after which an unused connection is closed that received no complete message or ping."""
    evict_after_s: float = 5.0
    """At the maximum, an unused connection that was silent for this long is closed for a new one."""
    keepalive_s: float = 30.0
    """Silence after which a connection that we opened and that is in use is pinged; 0 turns pings off."""
    pong_s: float = 10.0
    """Limit for the pong of a peer that has answered pings before (RFC 5626 4.4.1)."""
    max_unsent_bytes: int = 1024 * 1024
    """Unsent bytes beyond which a peer that does not read is disconnected."""


class TcpTransport(Transport):
    """
    One listening socket, for TLS with `contexts`, and all connections from and to peers.

    A connection carries messages both ways, whichever side opened it (RFC 3261 18.1.1, 18.2.2). Over TLS, one
    that we open is keyed by the name its peer proved: the same address under another name gets another
    connection. One that a peer opened carries requests to it if the peer asks for that and its certificate
    proves its name.
    """

    reliable = True

    def __init__(
        self,
        listen: Listen,
        receive: Receive,
        limits: StreamLimits,
        message_limits: Limits,
        contexts: TlsContexts | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.name, self.default_port = ("tcp", 5060) if contexts is None else ("tls", 5061)
        self.address = listen
        self.contexts = contexts
        self._guard = guard
        self.limits = limits
        self.message_limits = message_limits
        self.deliver = receive
        self._server: asyncio.Server | None = None
        self._listening: socket.socket | None = None
        self._connections: dict[Key, Connection] = {}
        self._aliases: dict[Key, Connection] = {}
        self._from_source: Counter[str] = Counter()
        self._closing: deque[tuple[float, asyncio.Transport]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop

    async def open(self, inherited: socket.socket | None = None) -> None:
        """Bind and listen, or listen on the socket of another process."""
        listen = self.address
        self._loop = asyncio.get_running_loop()
        self._listening = inherited or _listening(listen)
        self.address = Listen(self.name, listen.host, self._listening.getsockname()[1], listen.advertise)
        await self.resume()
        self._sweep = self._loop.call_later(self._sweep_s, self._on_sweep)

    def pause(self) -> socket.socket:
        """Stop accepting connections and close the unused ones: their peers reconnect."""
        assert self._listening is not None
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.values()):
            if not connection.in_use:
                connection.shut()
        return self._listening

    async def resume(self) -> None:
        """Accept connections."""
        assert self._listening is not None
        # On a duplicate: closing the server must not close a socket that may go to another process.
        self._server = await self._loop.create_server(self._accept, sock=self._listening.dup())

    def close(self) -> None:
        """Stop listening and abort all connections."""
        if self._server is not None:
            self._server.close()
        if self._listening is not None:
            self._listening.close()
        if self._sweep is not None:
            self._sweep.cancel()
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections.values()):
            connection.abort()
        self._connections.clear()
        for _, stream in self._closing:
            stream.abort()
        self._closing.clear()

    @property
    def connection_count(self) -> int:
        """Established and opening connections."""
        return len(self._connections)

    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        """Return the connection to a peer, opening one if there is none."""
        key = self.key_of(remote, name)
        connection = self._connections.get(key) or self._aliases.get(key)
        if connection is None or connection.closed:
            connection = self._connections[key] = Connection(self, remote, key)
            connection.name = name
            task = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return connection

    def now(self) -> float:
        """The loop's time."""
        return self._loop.time()

    # The table.

    def key_of(self, remote: Address, name: str | None) -> Key:
        """Return the key of a connection that was opened to a peer: its address, over TLS its proved name."""
        return (*remote, None if self.contexts is None else (name or remote[0]).lower())

    def note_via(self, connection: Connection, via: Via) -> None:
        """
        Use a TLS connection from a peer for requests to it, if it asks and has proved its name.

        Source: RFC 5923 5, 8.
        """
        if self.contexts is None or connection.aliases is not None or connection.outgoing:
            return
        if via.param("alias") is None:
            return
        connection.aliases = ()
        if proves(connection.peer_names, via.host):
            address = (connection.remote[0], via.port or self.default_port)
            connection.aliases = tuple(self.key_of(address, name) for name in connection.peer_names)
            self._aliases.update(dict.fromkeys(connection.aliases, connection))

    def admit(self, connection: Connection, stream: asyncio.Transport) -> bool:
        """Register an established connection; False if the source is refused or there are too many."""
        peer = stream.get_extra_info("peername")
        if peer is None:
            return False  # It broke at once.
        _guard_socket(stream)
        if connection.outgoing:
            return True
        host, port = peer[0], peer[1]
        if self._guard is not None and not self._guard.protection.admits_connection(host, self.now()):
            return False
        limits, source, unknown = self.limits, source_of(host), self.is_unknown(host)
        most = limits.max_per_unknown_source if unknown else limits.max_per_source
        if self._from_source[source] >= most:
            return False
        if len(self._connections) >= limits.max_connections and not self._evict(for_unknown=unknown):
            return False
        connection.remote = (host, port)
        connection.key = (host, port, None)
        self._connections[connection.key] = connection
        self._from_source[source] += 1
        return True

    def is_unknown(self, host: str) -> bool:
        """True if a host is an unknown source."""
        return self._guard is not None and not self._guard.protection.is_trusted(host, self.now())

    def _evict(self, *, for_unknown: bool) -> bool:
        """Close the unused connection silent longest; for a trusted source even a recent unknown one."""
        unused = [connection for connection in self._connections.values() if not connection.in_use]
        longest = min(unused, key=lambda connection: connection.received_at, default=None)
        if longest is None:
            return False
        if longest.received_at > self.now() - self.limits.evict_after_s:
            longest = None if for_unknown else self._silent_unknown(unused)
        if longest is None:
            return False
        longest.shut()
        return True

    def _silent_unknown(self, unused: list[Connection]) -> Connection | None:
        unknown_sources = (
            connection
            for connection in unused
            if not connection.outgoing and self.is_unknown(connection.remote[0])
        )
        return min(unknown_sources, key=lambda connection: connection.received_at, default=None)

    def lost(self, connection: Connection) -> None:
        """Remove a connection from the table, under all its names."""
        for key in connection.aliases or ():
            if self._aliases.get(key) is connection:
                del self._aliases[key]
        key = connection.key
        if self._connections.get(key) is not connection:
            return
        del self._connections[key]
        if not connection.outgoing:
            source = source_of(key[0])
            self._from_source[source] -= 1
            if not self._from_source[source]:
                del self._from_source[source]

    def _accept(self) -> Connection:
        return Connection(self, ("", 0), None)

    async def _connect(self, connection: Connection) -> None:
        host, port = connection.remote
        try:
            async with asyncio.timeout(self.limits.connect_timeout_s):
                await self._loop.create_connection(lambda: connection, host, port)
        except TimeoutError:
            connection.give_up("The connection did not come up in time")
        except OSError as error:
            connection.give_up(f"The connection was refused: {error.strerror or error}")

    # Periodic checks.

    @property
    def _sweep_s(self) -> float:
        limits = self.limits
        keepalive_s = limits.keepalive_s or limits.idle_s
        return min(SWEEP_S, *(s / 2 for s in (limits.idle_s, limits.message_s, keepalive_s)))

    def _on_sweep(self) -> None:
        self.sweep()
        self._sweep = self._loop.call_later(self._sweep_s, self._on_sweep)

    def sweep(self) -> None:
        """Close idle or slow connections and ping those in use."""
        now = self.now()
        for connection in list(self._connections.values()):
            connection.look_after(now)
        while self._closing and self._closing[0][0] <= now:
            self._closing.popleft()[1].abort()

    def linger(self, stream: asyncio.Transport) -> None:
        """Abort a closed connection after `LINGER_S`, so that its last bytes can be sent."""
        self._closing.append((self.now() + LINGER_S, stream))


def _listening(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.create_server((listen.host, listen.port), family=family, backlog=_BACKLOG)
    sock.setblocking(False)
    return sock


def _guard_socket(stream: asyncio.Transport) -> None:
    """Enable TCP keep-alive, which detects a peer that disappeared."""
    sock = stream.get_extra_info("socket")
    if sock is None:
        return
    for level, option, value in _SOCKET_OPTIONS:
        try:
            sock.setsockopt(level, option, value)
        except OSError:
            return


_SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", 4), 60),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPINTVL", 5), 10),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPCNT", 6), 4),
    # Milliseconds that sent data may stay unacknowledged.
    (socket.IPPROTO_TCP, getattr(socket, "TCP_USER_TIMEOUT", 18), 30_000),
)
