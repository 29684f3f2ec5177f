"""Trace of a user agent: every message on the wire."""

from collections.abc import Callable
from dataclasses import dataclass

from sip.aio.transport import Address, Listen

TraceFields = tuple[float, str, Listen, Address, bytes, str]
"""Fields of a `TraceRecord`, which is made when somebody looks at it: few messages are looked at."""
OnMessage = Callable[[*TraceFields], None]
"""Called with each message on the wire."""


@dataclass(slots=True)
class TraceRecord:
    """
    One message on the wire, with its monotonic time in seconds; derived fields are properties.

    `direction` is `in` or `out`, `listen` our address and `remote` that of the peer.
    """

    at: float
    direction: str
    listen: Listen
    remote: Address
    message: bytes
    call_id: str

    @property
    def transport(self) -> str:
        """The name of the transport protocol."""
        return self.listen.transport

    @property
    def peer(self) -> str:
        """The other side as `host:port`."""
        return f"{self.remote[0]}:{self.remote[1]}"

    @property
    def local(self) -> Address:
        """Our own address, as peers know it."""
        return (self.listen.advertise or self.listen.host, self.listen.port)
