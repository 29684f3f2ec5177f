"""What the endpoint needs of a transport, whichever protocol it speaks."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sip.message.fields import Via

__all__ = ["Address", "Admit", "Clock", "Flow", "Handle", "Listen", "Receive", "Transport", "Watcher"]

Address = tuple[str, int]
"""IP address literal and port."""


@dataclass(frozen=True, slots=True)
class Listen:
    """
    One local address to serve: `transport` is `udp`, `tcp` or `tls`, `host` an IP address, port 0 any free.

    `advertise` is the host peers are told instead, behind a one-to-one NAT.
    """

    transport: str
    host: str
    port: int = 5060
    advertise: str | None = None


class Handle(Protocol):
    """A call that was scheduled."""

    def cancel(self) -> None:
        """Take it back."""


class Clock(Protocol):
    """Monotonic time and calls at a later time, as an event loop has them."""

    def time(self) -> float:
        """Seconds from a fixed point."""

    def call_at(self, when: float, callback: Callable[[], object]) -> Handle:
        """Schedule a call."""

    def call_soon(self, callback: Callable[..., object], *args: object) -> object:
        """Schedule a call for the next round."""


class Watcher(Protocol):
    """Whoever depends on a way to a peer."""

    def on_flow_broken(self) -> None:
        """Take the news that what was sent this way may not have arrived."""


class Flow(ABC):
    """A way to one peer: a socket and a remote address, or a connection."""

    __slots__ = ("remote", "transport")

    reliable = False
    secure = False
    """Encrypted to the next hop."""
    peer_names: frozenset[str] = frozenset()
    """Host names and addresses, in lower case, that the peer's verified certificate proves (RFC 5922 7.1)."""
    name: str | None = None
    """The name the peer had to prove, on a TLS connection we opened."""
    trouble: str | None = None
    """Why nothing can be sent this way any more, for logs and events, when there is more to say than that."""
    established = True
    """False until a connection has come up; what was to be sent on one that never did has not left."""

    def __init__(self, transport: "Transport", remote: Address) -> None:
        self.transport = transport
        self.remote = remote

    # What follows means something for connections only; a datagram's way rightly does nothing (B027).

    def watch(self, watcher: "Watcher") -> None:  # noqa: B027
        """Have a transaction told when this way breaks; only a connection can."""

    def unwatch(self, watcher: "Watcher") -> None:  # noqa: B027
        """End what `watch` began."""

    def hold(self) -> None:  # noqa: B027
        """
        Have the way kept open, and alive, by somebody who will need it again: a dialog, a registration.

        Each call needs its `release`.
        """

    def release(self) -> None:  # noqa: B027
        """End what one `hold` began."""

    def give_up(self, reason: str) -> None:  # noqa: B027
        """Stop trying to come up, when that has not happened yet; nothing that waited for it is sent."""

    def note_via(self, via: Via) -> None:  # noqa: B027
        """Take what the top Via of a request from a connection says of the connection itself."""

    def abort(self) -> None:  # noqa: B027
        """Close a connection whose peer is not wanted; a datagram's way has nothing to close."""

    @property
    def closed(self) -> bool:
        """True when nothing can be sent this way any more."""
        return False

    @abstractmethod
    def send(self, data: bytes) -> bool:
        """Send one message; False when it certainly did not leave."""


Receive = Callable[[bytes, Flow], None]
Admit = Callable[[str], bool]
"""What is thought of a host, such as whether a connection from it may come up."""


class Transport(ABC):
    """One bound local address."""

    name: str
    reliable: bool
    default_port = 5060
    address: Listen
    """What was bound, with the real port."""
    admits: Admit | None = None
    """Asked before a connection is taken."""
    knows: Admit | None = None
    """Asked whether somebody vouches for a host; without an answer nobody is a stranger."""
    on_wait: Callable[[float], None] | None = None
    """Told how many seconds a message had waited, when messages wait."""
    _via_of: Listen | None = None
    _via_start = ""
    inherited: socket.socket | None = None
    """A bound socket of another process to be used in place of an own one."""

    @abstractmethod
    async def open(self) -> None:
        """
        Bind.

        Raises:
            OSError: The address cannot be had.
        """

    @abstractmethod
    def close(self) -> None:
        """Free the address at once."""

    @abstractmethod
    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        """
        Give a way to a peer, for a stream the connection that is there or a new one.

        `name` is what the peer's certificate must prove, where there are certificates.
        """

    def pause(self) -> socket.socket:
        """
        Hear no more, so that another process may with the socket that is given; sending goes on.

        Connections that are up stay; those that nobody uses are closed.
        """
        # Not abstract: a transport without a socket, such as one in memory, has nothing to hand over.
        raise NotImplementedError

    async def resume(self) -> None:
        """Hear again after `pause`."""
        raise NotImplementedError

    @property
    def connection_count(self) -> int:
        """Connections that are up or coming up."""
        return 0

    @property
    def sent_by(self) -> str:
        """Host and port as they stand in Via and Contact."""
        host = self.address.advertise or self.address.host
        return f"[{host}]:{self.address.port}" if ":" in host else f"{host}:{self.address.port}"

    @property
    def via_start(self) -> str:
        """How the Via of our requests begins: protocol and sender."""
        if self._via_of is not self.address:
            self._via_of = self.address
            self._via_start = f"SIP/2.0/{self.name.upper()} {self.sent_by}"
        return self._via_start
