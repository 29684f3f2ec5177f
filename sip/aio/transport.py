"""Interface between the transaction layer and its transports, for all protocols."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sip.message.fields import Via

Address = tuple[str, int]
"""IP address literal and port."""


@dataclass(frozen=True, slots=True)
class Listen:
    """
    One local address: `transport` is `udp`, `tcp` or `tls`, `host` an IP address, port 0 any free port.

    `advertise` is the host given to peers instead, behind a one-to-one NAT.
    """

    transport: str
    host: str
    port: int = 5060
    advertise: str | None = None


class Handle(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """Monotonic time and scheduled calls, as an event loop provides them."""

    def time(self) -> float:
        """Seconds from a fixed point."""

    def call_at(self, when: float, callback: Callable[[], object]) -> Handle:
        """Schedule a call."""

    def call_soon(self, callback: Callable[..., object], *args: object) -> object:
        """Schedule a call for the next iteration of the loop."""


Watcher = Callable[[], None]
"""Called when a flow breaks: messages sent on it may not have arrived."""


class Flow(ABC):
    """
    A flow to one peer: a socket and a remote address, or a connection.

    `origin` is the sender of the current message, where a front at `remote` forwards it; else None.
    """

    __slots__ = ("origin", "remote", "transport")

    reliable = False
    secure = False
    """True if encrypted to the next hop."""
    peer_names: frozenset[str] = frozenset()
    """Host names and addresses, in lower case, that the peer's verified certificate proves (RFC 5922 7.1)."""
    name: str | None = None
    """The name the peer had to prove, on a TLS connection we opened."""
    transport_error: str | None = None
    """Reason why the flow is closed, for logs and events; None when there is no more to report."""
    established = True
    """False until a connection is established; queued messages of one that never was were not sent."""

    def __init__(self, transport: "Transport", remote: Address) -> None:
        self.transport = transport
        self.remote = remote
        self.origin: Address | None = None

    @property
    def source(self) -> Address:
        """Sender of the current message; ("", 0) if the front that forwards it names none."""
        return self.origin or self.remote

    # The following methods matter for connections only; a UDP flow does nothing (B027).

    def watch(self, watcher: Watcher) -> None:  # noqa: B027
        """Call back when the flow breaks; only a connection can."""

    def unwatch(self, watcher: Watcher) -> None:  # noqa: B027
        """Undo `watch`."""

    def hold(self) -> None:  # noqa: B027
        """
        Keep the flow open and alive for a later use, by a dialog or a registration.

        Each call needs its `release`.
        """

    def release(self) -> None:  # noqa: B027
        """Undo one `hold`."""

    def give_up(self, reason: str) -> None:  # noqa: B027
        """Stop opening a connection that is not established yet; queued messages are not sent."""

    def note_via(self, via: Via) -> None:  # noqa: B027
        """Read the parameters of a request's top Via that describe its connection."""

    def abort(self) -> None:  # noqa: B027
        """Close a connection with an unwanted peer; a UDP flow has nothing to close."""

    @property
    def closed(self) -> bool:
        """True when nothing can be sent on the flow any more."""
        return False

    @abstractmethod
    def send(self, data: bytes) -> bool:
        """Send one message; False if it certainly was not sent."""


Receive = Callable[[bytes, Flow], None]


class Transport(ABC):
    """One bound local address."""

    name: str
    reliable: bool
    default_port = 5060
    address: Listen
    """Bound address, with the actual port."""
    socket_number = -1
    """Number of its UDP socket in the signalling engine; -1 for all others."""

    @abstractmethod
    async def open(self, inherited: socket.socket | None = None) -> None:
        """
        Bind, or use the bound socket of another process.

        Raises:
            OSError: The address cannot be bound.
        """

    @abstractmethod
    def close(self) -> None:
        """Free the address at once."""

    @abstractmethod
    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        """
        Return a flow to a peer; for TCP and TLS, the existing connection or a new one.

        `name` is the name that the peer's certificate must prove, over TLS.
        """

    def pause(self) -> socket.socket:
        """
        Stop reading, so that another process can read from the returned socket; sending continues.

        Connections in use stay open; unused ones are closed.
        """
        # Not abstract: a transport without a socket, such as one in memory, has nothing to hand over.
        raise NotImplementedError

    async def resume(self) -> None:
        """Resume reading after `pause`."""
        raise NotImplementedError

    @property
    def connection_count(self) -> int:
        """Established and opening connections."""
        return 0

    # The address no longer changes once it is bound.

    @cached_property
    def sent_by(self) -> str:
        """Host and port as written in Via and Contact."""
        host = self.address.advertise or self.address.host
        return f"[{host}]:{self.address.port}" if ":" in host else f"{host}:{self.address.port}"

    @cached_property
    def via_start(self) -> str:
        """Start of the Via of our requests: protocol and sent-by."""
        return f"SIP/2.0/{self.name.upper()} {self.sent_by}"

    @cached_property
    def contact(self) -> str:
        """
        Contact value of our requests and responses.

        Source: RFC 3261 8.1.1.8, 12.1.1.
        """
        if self.name == "udp":
            return f"<sip:{self.sent_by}>"
        return f"<sip:{self.sent_by};transport={self.name}>"

    @cached_property
    def secure_contact(self) -> str:
        """
        Contact value within a `sips` dialog: a `sips` URI where the transport is TLS.

        Source: RFC 5630 3.1.3 (no `transport=tls` in a `sips` URI).
        """
        return f"<sips:{self.sent_by}>" if self.name == "tls" else self.contact
