"""Active transactions: a state machine, its flow to the peer and its running timers."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from sip.aio.transport import Address, Flow
from sip.effects import Arm, Deliver, Done, Effect, Fail, Failure, Purpose, Send
from sip.message.message import Request, Response
from sip.timers import Timer
from sip.transactions.invite_client import InviteClientTransaction
from sip.transactions.invite_server import InviteServerTransaction
from sip.transactions.non_invite_client import NonInviteClientTransaction
from sip.transactions.non_invite_server import NonInviteServerTransaction

if TYPE_CHECKING:
    from sip.aio.transaction_layer import TransactionLayer

TRIAL_S = 1.5
"""Limit for opening the connection before the datagram is sent after all: callers wait for it."""
REFUSED_FOR_S = 600.0
"""Time for which a peer counts as taking no connections after it took none."""
MAX_REMEMBERED = 1024


Key = tuple[object, ...]
"""Key of a transaction, by which its messages find it."""


class RequestUser(Protocol):
    """Owner of a client transaction."""

    def on_response(self, transaction: "ClientTransactionIO", response: Response) -> None:
        """Handle a response."""

    def on_failure(self, transaction: "ClientTransactionIO", failure: Failure) -> None:
        """Handle a failure without a final response."""


class _TransactionIO:
    """An active transaction: its state machine, its flow to the peer and its running timers."""

    __slots__ = ("call_id", "layer", "flow", "key", "timers")

    call_id: str

    def __init__(self, layer: "TransactionLayer", flow: Flow, key: Key) -> None:
        self.layer = layer
        self.flow = flow
        self.key = key
        self.timers: list[Timer] = []

    def end(self) -> None:
        """Cancel the running timers."""
        layer = self.layer
        for timer in self.timers:
            layer.disarm(timer)
        self.timers.clear()


class ClientTransactionIO(_TransactionIO):
    """
    A client transaction; without a `user` its outcome is ignored.

    `fallback` is the UDP flow that its request was too large for.
    """

    __slots__ = ("fallback", "machine", "purpose", "user")

    def __init__(
        self,
        layer: "TransactionLayer",
        flow: Flow,
        machine: InviteClientTransaction | NonInviteClientTransaction,
        user: RequestUser | None,
        purpose: Purpose,
    ) -> None:
        super().__init__(layer, flow, ())
        self.call_id = machine.request.headers.first("call-id") or ""
        self.machine = machine
        self.user = user
        self.purpose = purpose
        self.fallback: Flow | None = None

    def on_timer(self, event: int) -> None:
        """Pass a timer event to the machine."""
        self.perform(self.machine.trigger(event))

    def on_flow_broken(self) -> None:
        """Report the loss of the connection to the machine, unless the request can fall back to UDP."""
        if self.fallback is not None and self.layer.fall_back(self):
            return
        self.perform(self.machine.fail_transport())

    def perform(self, effects: Sequence[Effect]) -> None:
        """Perform the machine's effects."""
        layer = self.layer
        for effect in effects:
            if isinstance(effect, Send):
                layer.send(effect.data, self.flow, self.call_id, self)
            elif isinstance(effect, Arm):
                self.timers.append(layer.arm(effect.delay_s, self.on_timer, effect.event))
            elif isinstance(effect, Done):
                layer.end_client(self)
            elif self.user is not None and isinstance(effect, Deliver):
                assert isinstance(effect.message, Response)
                self.user.on_response(self, effect.message)
            elif self.user is not None and isinstance(effect, Fail):
                self.user.on_failure(self, effect.failure)


class ServerTransactionIO(_TransactionIO):
    """
    A server transaction.

    `user` answers an INVITE and receives its CANCEL, `tag` is our tag in its responses; `on_end` is called
    when the transaction is removed. `sent_by` is the address of responses when the request's connection is
    gone (RFC 3261 18.2.2), `sent_by_name` the name that the peer must prove there.
    """

    __slots__ = ("machine", "on_end", "sent_by", "sent_by_name", "tag", "user")

    def __init__(
        self,
        layer: "TransactionLayer",
        flow: Flow,
        key: Key,
        request: Request,
        machine: InviteServerTransaction | NonInviteServerTransaction,
    ) -> None:
        super().__init__(layer, flow, key)
        via, self.call_id = request.via, request.call_id
        self.machine = machine
        self.sent_by: Address = (flow.remote[0], via.port or flow.transport.default_port)
        self.sent_by_name = via.host
        self.tag: str | None = None
        self.user: object = None
        self.on_end: Callable[[], object] | None = None

    def respond(self, response: Response) -> None:
        """Send a response."""
        self.perform(self.machine.respond(response))

    def _reconnect(self) -> None:
        transport = self.flow.transport
        flow = self.layer.flow_to(transport.name, self.sent_by, transport, self.sent_by_name)
        if flow is not None:
            self.flow = flow

    def on_timer(self, event: int) -> None:
        """Pass a timer event to the machine."""
        self.perform(self.machine.trigger(event))

    def on_flow_broken(self) -> None:
        """Report the loss of the connection to the machine."""
        self.perform(self.machine.fail_transport())

    def perform(self, effects: Sequence[Effect]) -> None:
        """Perform the machine's effects."""
        layer = self.layer
        for effect in effects:
            if isinstance(effect, Send):
                if self.flow.closed:
                    self._reconnect()
                layer.send(effect.data, self.flow, self.call_id, self)
            elif isinstance(effect, Arm):
                self.timers.append(layer.arm(effect.delay_s, self.on_timer, effect.event))
            elif isinstance(effect, Deliver):
                assert isinstance(effect.message, Request)
                layer.user.on_ack(effect.message)
            else:
                layer.end_server(self)


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

    def watch(self, transaction: ClientTransactionIO) -> None:
        """Limit how long a request waits for its connection."""
        if not transaction.flow.established:
            flow, reason = transaction.flow, "The connection did not come up in time for a large request"
            transaction.timers.append(self._layer.arm(TRIAL_S, lambda _: flow.give_up(reason)))

    def note_refusal(self, remote: Address) -> None:
        """Record that a peer takes no connections."""
        if len(self._refused) >= MAX_REMEMBERED:
            self._refused.clear()
        self._refused[remote] = self._layer.clock.time() + REFUSED_FOR_S
