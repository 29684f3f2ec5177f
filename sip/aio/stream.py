"""SIP over TCP (RFC 3261 18)."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import cast

from sip.aio.transport import Address, Flow, Listen, Receive, Transport, Watcher
from sip.errors import ParseError
from sip.framer import PING, PONG, StreamFramer
from sip.parser import Limits

__all__ = ["StreamLimits", "TcpTransport"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What the connections of one address may take."""

    max_connections: int = 1024
    connect_timeout_s: float = 5.0
    idle_s: float = 600.0
    """A connection on which nothing whole arrived for this long, and that nobody uses, is closed."""
    evict_after_s: float = 5.0
    """Beyond the maximum, an unused connection that was silent for this long makes room for a new one."""
    max_unsent_bytes: int = 1024 * 1024
    """A peer that does not read is cut off beyond this."""


class _Connection(asyncio.Protocol, Flow):
    """One connection, on its way up, up, or broken."""

    __slots__ = (
        "_framer",
        "_owner",
        "_pending",
        "_pending_bytes",
        "_stream",
        "broken",
        "heard_at",
        "watchers",
    )

    reliable = True

    def __init__(self, owner: "TcpTransport", remote: Address) -> None:
        Flow.__init__(self, owner, remote)
        self._owner = owner
        self._framer = StreamFramer(owner.message_limits)
        self._stream: asyncio.Transport | None = None
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self.watchers: set[Watcher] = set()
        self.broken = False
        self.heard_at = owner.now()

    @property
    def closed(self) -> bool:
        """True once the connection is gone."""
        return self.broken

    def send(self, data: bytes) -> bool:
        """Write one message, or keep it until the connection is up."""
        if self.broken:
            return False
        stream = self._stream
        if stream is None:
            self._pending_bytes += len(data)
            if self._pending_bytes > self._owner.limits.max_unsent_bytes:
                return False
            self._pending.append(data)
            return True
        if stream.get_write_buffer_size() > self._owner.limits.max_unsent_bytes:
            stream.abort()
            return False
        stream.write(data)
        return True

    def watch(self, watcher: Watcher) -> None:
        """Have a transaction told when the connection breaks."""
        self.watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """End what `watch` began."""
        self.watchers.discard(watcher)

    def fail(self) -> None:
        """Take the news that the connection did not come up."""
        self._pending.clear()
        self.connection_lost(None)

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, and write what waited for it."""
        # Not an isinstance check: the transports of uvloop only behave like those of asyncio.
        stream = cast(asyncio.Transport, transport)
        self._stream = stream
        if self.broken or not self._owner.admit(self, stream):
            stream.abort()
            return
        while self._pending:
            stream.write(self._pending.popleft())

    def data_received(self, data: bytes) -> None:
        """Cut out messages and answer keep-alives."""
        try:
            for frame in self._framer.feed(data):
                if self.broken:
                    return
                self.heard_at = self._owner.now()
                if frame == PING:
                    self.send(PONG)
                else:
                    self._owner.receive(frame, self)
        except ParseError as error:
            logger.info("A connection cannot be framed any more: %s", error.reason)
            if self._stream is not None:
                self._stream.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if not self.broken:
            self.broken = True
            self._stream = None
            self._owner.lost(self)
            watchers, self.watchers = self.watchers, set()
            for watcher in watchers:
                watcher.on_flow_broken()

    def abort(self) -> None:
        """Close at once; nobody is told."""
        self.broken = True
        self.watchers.clear()
        if self._stream is not None:
            self._stream.abort()
        self._owner.lost(self)


class TcpTransport(Transport):
    """
    One listening TCP socket, and all connections from and to peers.

    A connection is used both ways for as long as it lasts, whoever opened it (RFC 3261 18.1.1, 18.2.2).
    """

    name = "tcp"
    reliable = True

    def __init__(
        self, listen: Listen, receive: Receive, limits: StreamLimits, message_limits: Limits
    ) -> None:
        self.address = listen
        self.limits = limits
        self.message_limits = message_limits
        self._deliver = receive
        self._server: asyncio.Server | None = None
        self._connections: dict[Address, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop

    async def open(self) -> None:
        """Bind and listen."""
        listen = self.address
        self._loop = asyncio.get_running_loop()
        self._server = await self._loop.create_server(self._accept, listen.host, listen.port)
        port = self._server.sockets[0].getsockname()[1]
        self.address = Listen(self.name, listen.host, port, listen.advertise)
        self._sweep = self._loop.call_later(self.limits.idle_s / 2, self._close_idle)

    def close(self) -> None:
        """Stop listening and cut all connections."""
        if self._server is not None:
            self._server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections.values()):
            connection.abort()
        self._connections.clear()

    @property
    def connection_count(self) -> int:
        """Connections that are up or coming up."""
        return len(self._connections)

    def flow_to(self, remote: Address) -> Flow:
        """Give the connection to a peer, opening one if there is none."""
        connection = self._connections.get(remote)
        if connection is None or connection.closed:
            connection = self._connections[remote] = _Connection(self, remote)
            task = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return connection

    def now(self) -> float:
        """The loop's time."""
        return self._loop.time()

    def receive(self, data: bytes, connection: _Connection) -> None:
        """Pass a message on."""
        self._deliver(data, connection)

    def admit(self, connection: _Connection, stream: asyncio.Transport) -> bool:
        """Enter a connection that came up; False when there are too many."""
        peer = stream.get_extra_info("peername")
        if peer is None:
            return False  # It broke at once.
        known = self._connections.get((peer[0], peer[1]))
        if known is connection:
            return True
        if self.admits is not None and not self.admits(peer[0]):
            return False
        if len(self._connections) >= self.limits.max_connections and not self._evict():
            return False
        connection.remote = (peer[0], peer[1])
        self._connections[connection.remote] = connection
        return True

    def _evict(self) -> bool:
        unused = [connection for connection in self._connections.values() if not connection.watchers]
        longest = min(unused, key=lambda connection: connection.heard_at, default=None)
        if longest is None or longest.heard_at > self._loop.time() - self.limits.evict_after_s:
            return False
        longest.abort()
        return True

    def lost(self, connection: _Connection) -> None:
        """Take a connection out of the table."""
        if self._connections.get(connection.remote) is connection:
            del self._connections[connection.remote]

    def _accept(self) -> _Connection:
        return _Connection(self, ("", 0))

    async def _connect(self, connection: _Connection) -> None:
        host, port = connection.remote
        try:
            async with asyncio.timeout(self.limits.connect_timeout_s):
                await self._loop.create_connection(lambda: connection, host, port)
        except (OSError, TimeoutError):
            connection.fail()

    def _close_idle(self) -> None:
        oldest = self._loop.time() - self.limits.idle_s
        for connection in list(self._connections.values()):
            if connection.heard_at < oldest and not connection.watchers:
                connection.abort()
        self._sweep = self._loop.call_later(self.limits.idle_s / 2, self._close_idle)
