"""TCP for requests that are too large for a datagram, with fallback to UDP (RFC 3261 18.1.1)."""

from typing import TYPE_CHECKING

from sip.aio.transport import Address, Flow

if TYPE_CHECKING:
    from sip.aio.transaction_io import ClientTransactionIO
    from sip.aio.transaction_layer import TransactionLayer

TRIAL_S = 1.5
"""Limit for opening the connection before the datagram is sent after all: callers wait for it."""
REFUSED_FOR_S = 600.0
"""Time for which a peer counts as taking no connections after it took none."""
MAX_REMEMBERED = 1024


class TcpFallback:
    """
    Moves large requests to TCP, and back to UDP if the connection was never established.

    A request on an established connection stays there even if the connection breaks: it may have arrived,
    and a second INVITE of the same call would be a second call.
    """

    def __init__(self, layer: "TransactionLayer") -> None:
        self._layer = layer
        self._refused: dict[Address, float] = {}

    def stream_for(self, flow: Flow) -> Flow | None:
        """Return a TCP flow in place of a UDP flow; None if the peer is known to take no connections."""
        layer = self._layer
        until = self._refused.get(flow.remote)
        if until is not None:
            if until > layer.clock.time():
                return None
            del self._refused[flow.remote]
        transport = layer.transport_for("tcp", flow.remote[0])
        return None if transport is None else transport.flow_to(flow.remote)

    def watch(self, transaction: "ClientTransactionIO") -> None:
        """Limit how long a request waits for its connection."""
        if not transaction.flow.established:
            transaction.timers.append(self._layer.arm(TRIAL_S, _Trial(transaction.flow), 0))

    def note_refusal(self, remote: Address) -> None:
        """Record that a peer takes no connections."""
        if len(self._refused) >= MAX_REMEMBERED:
            self._refused.clear()
        self._refused[remote] = self._layer.clock.time() + REFUSED_FOR_S


class _Trial:
    """Time limit of an opening connection."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def on_timer(self, event: int) -> None:
        """Abandon the connection; its watchers are notified."""
        self._flow.give_up("The connection did not come up in time for a large request")
