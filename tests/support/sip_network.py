"""An in-memory network for user agents: delay, loss, doubling and reordering, on a virtual clock."""

import random
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from sip.aio.transport import Address, Flow, Listen, Receive, Transport, Watcher
from tests.support.virtual_clock import VirtualClock


@dataclass
class Faults:
    """Faults of the network for each datagram, as probabilities."""

    delay_s: float = 0.001
    loss: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    reorder_s: float = 0.3


@dataclass
class Network:
    """Carries bytes between the addresses of one test."""

    clock: VirtualClock
    faults: Faults = field(default_factory=Faults)
    seed: int = 1
    drop: Callable[[bytes, Address, Address], bool] | None = None
    """Says of single messages that they are to be lost."""
    silent: set[Address] = field(default_factory=set)
    """Addresses that do not even refuse a connection."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.wire: list[tuple[float, Address, Address, bytes]] = []
        self._nodes: dict[tuple[str, Address], MemoryTransport | Callable[[bytes, Address], None]] = {}
        self._next_port = 10000

    def bind(
        self, kind: str, address: Address, node: "MemoryTransport | Callable[[bytes, Address], None]"
    ) -> None:
        self._nodes[(kind, address)] = node

    def unbind(self, kind: str, address: Address) -> None:
        self._nodes.pop((kind, address), None)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def node(
        self, kind: str, address: Address
    ) -> "MemoryTransport | Callable[[bytes, Address], None] | None":
        return self._nodes.get((kind, address))

    def carry(self, data: bytes, source: Address, target: Address) -> None:
        """Send one datagram on its uncertain way."""
        self.wire.append((self.clock.time(), source, target, data))
        faults = self.faults
        if self.drop is not None and self.drop(data, source, target):
            return
        copies = 2 if self.random.random() < faults.double else 1
        for _ in range(copies):
            if self.random.random() < faults.loss:
                continue
            late = self.random.random() < faults.reorder
            delay_s = faults.delay_s + (self.random.random() * faults.reorder_s if late else 0.0)
            self.clock.call_later(delay_s, self._arrive, data, source, target)

    def _arrive(self, data: bytes, source: Address, target: Address) -> None:
        node = self._nodes.get(("udp", target))
        if isinstance(node, MemoryTransport):
            node.arrive(data, source)
        elif node is not None:
            node(data, source)

    def opener(self) -> Callable[[Listen, Receive], Transport]:
        """Return the function with which a user agent opens its transports on this network."""
        return lambda listen, receive: MemoryTransport(self, listen, receive)


class _MemoryFlow(Flow):
    __slots__ = ()

    def send(self, data: bytes) -> bool:
        transport = self.transport
        assert isinstance(transport, MemoryTransport)
        return transport.put(data, self.remote)


def break_connection(flow: Flow) -> None:
    """Break the connection of a flow, as a reset does."""
    assert isinstance(flow, _MemoryConnection)
    flow.break_off()


class _MemoryConnection(Flow):
    """A connection: nothing is lost or overtaken, until it breaks."""

    __slots__ = ("broken", "peer", "watchers")

    reliable = True

    def __init__(self, transport: "MemoryTransport", remote: Address) -> None:
        super().__init__(transport, remote)
        self.peer: _MemoryConnection | None = None
        self.broken = False
        self.watchers: set[Watcher] = set()

    @property
    def closed(self) -> bool:
        return self.broken

    @property
    def secure(self) -> bool:  # type: ignore[override]
        return self.transport.name == "tls"

    @property
    def established(self) -> bool:  # type: ignore[override]
        return self.peer is not None

    def give_up(self, reason: str) -> None:
        if not self.established:
            self.break_off()

    def watch(self, watcher: Watcher) -> None:
        self.watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.discard(watcher)

    def send(self, data: bytes) -> bool:
        transport = self.transport
        assert isinstance(transport, MemoryTransport)
        if self.broken or (self.peer is None and self.remote not in transport.network.silent):
            return False
        if self.peer is None:
            return True  # Kept for a connection that never comes up.
        transport.network.wire.append(
            (
                transport.network.clock.time(),
                (transport.address.host, transport.address.port),
                self.remote,
                data,
            )
        )
        transport.network.clock.call_later(transport.network.faults.delay_s, self.peer.arrive, data)
        return True

    def arrive(self, data: bytes) -> None:
        transport = self.transport
        assert isinstance(transport, MemoryTransport)
        if not self.broken:
            transport.receive(data, self)

    def break_off(self) -> None:
        for end in (self, self.peer):
            if end is not None and not end.broken:
                end.broken = True
                for watcher in list(end.watchers):
                    watcher()


class MemoryTransport(Transport):
    """One address on the network, datagrams (`udp`) or connections (`tcp`)."""

    def __init__(self, network: Network, listen: Listen, receive: Receive) -> None:
        self.network = network
        self.name = listen.transport
        self.reliable = listen.transport != "udp"
        port = listen.port or network.free_port()
        self.address = Listen(listen.transport, listen.host, port, listen.advertise)
        self.receive = receive
        self.connections: dict[Address, _MemoryConnection] = {}

    async def open(self, inherited: socket.socket | None = None) -> None:
        self.network.bind(self.name, (self.address.host, self.address.port), self)

    def close(self) -> None:
        self.network.unbind(self.name, (self.address.host, self.address.port))

    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        if not self.reliable:
            return _MemoryFlow(self, remote)
        connection = self.connections.get(remote)
        if connection is None or connection.closed:
            connection = self.connections[remote] = _MemoryConnection(self, remote)
            other = self.network.node(self.name, remote)
            if isinstance(other, MemoryTransport):
                source = (self.address.host, self.network.free_port())
                back = other.connections[source] = _MemoryConnection(other, source)
                connection.peer, back.peer = back, connection
        return connection

    def put(self, data: bytes, remote: Address) -> bool:
        self.network.carry(data, (self.address.host, self.address.port), remote)
        return True

    def arrive(self, data: bytes, source: Address) -> None:
        self.receive(data, _MemoryFlow(self, source))
