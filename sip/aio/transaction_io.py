"""Handles of active transactions, whose machines and timers are those of the signalling engine."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from sip.aio.transport import Address, Flow
from sip.effects import Failure, Purpose
from sip.message.encoding import to_bytes
from sip.message.message import Request, Response, reply, serialise

if TYPE_CHECKING:
    from sip._wire import RequestFields, ResponseFields
    from sip.aio.transaction_layer import TransactionLayer

TRIAL_S = 1.5
"""Limit for opening the connection before the datagram is sent after all: callers wait for it."""
REFUSED_FOR_S = 600.0
"""Time for which a peer counts as taking no connections after it took none."""
MAX_REMEMBERED = 1024
MAGIC_COOKIE = "z9hG4bK"
"""Prefix of every branch since RFC 3261; marks the branch as globally unique."""


Key = tuple[object, ...]
"""Key that a request has in common with its repetitions."""


class RequestUser(Protocol):
    """Owner of a client transaction."""

    def on_response(self, transaction: "ClientTransaction", response: Response) -> None:
        """Handle a response."""

    def on_failure(self, transaction: "ClientTransaction", failure: Failure) -> None:
        """Handle a failure without a final response."""


class ClientTransaction:
    """
    A client transaction; without a `user` its outcome is ignored.

    `number` is its number in the engine, `request` its request, or of a CANCEL the INVITE. `fallback` is the
    UDP flow that its request was too large for.
    """

    __slots__ = (
        "call_id",
        "fallback",
        "flow",
        "layer",
        "number",
        "purpose",
        "refusal",
        "repeated",
        "request",
        "trial",
        "user",
    )

    def __init__(
        self,
        layer: "TransactionLayer",
        flow: Flow,
        request: Request,
        user: RequestUser | None,
        purpose: Purpose,
    ) -> None:
        self.layer = layer
        self.flow = flow
        self.number = 0
        self.request = request
        self.call_id = request.headers.first("call-id") or ""
        self.user = user
        self.purpose = purpose
        self.fallback: Flow | None = None
        self.repeated = False
        """Sent again, since no response came in time."""
        self.refusal: str | None = None
        """Reason of an ICMP error of the request: one of its repetition ends it."""
        self.trial: int | None = None
        """Timer of the wait for a connection."""

    def send(self, data: bytes) -> None:
        """Send a repetition, or the ACK of a refusal, on the flow of the request."""
        self.repeated = True
        self.layer.send(data, self.flow, self.call_id, self)

    def on_flow_broken(self) -> None:
        """Handle the loss of the connection, unless the request can fall back to UDP."""
        if self.fallback is None or not self.layer.fall_back(self):
            self.layer.fail_transport(self)

    def end(self) -> None:
        """Release the flow."""
        trial, self.trial = self.trial, None
        if trial is not None:
            self.layer.timer_queue.disarm(trial)
        if self.flow.reliable:
            self.flow.unwatch(self.on_flow_broken)


class ServerTransaction:
    """
    A server transaction; `number` is its number in the engine.

    `user` answers an INVITE and receives its CANCEL, `tag` is our tag in its responses; `on_end` is called
    when the transaction has ended.
    """

    __slots__ = ("_sent_by", "call_id", "flow", "layer", "number", "on_end", "tag", "user")

    def __init__(self, layer: "TransactionLayer", flow: Flow, request: Request, number: int) -> None:
        self.layer = layer
        self.flow = flow
        self.number = number
        self.call_id = request.call_id
        self.tag: str | None = None
        self.user: object = None
        self.on_end: Callable[[], object] | None = None
        via = request.via
        self._sent_by: tuple[Address, str] | None = None
        """Address of responses when the request's connection is gone, and the name that is proved there."""
        if flow.reliable:
            self._sent_by = ((flow.remote[0], via.port or flow.transport.default_port), via.host)

    def send(self, data: bytes) -> None:
        """
        Send on the flow of the request, or on a new connection to its sender.

        Source: RFC 3261 18.2.2.
        """
        if self._sent_by is not None and self.flow.closed:
            transport, (remote, name) = self.flow.transport, self._sent_by
            self.flow = self.layer.flow_to(transport.name, remote, transport, name) or self.flow
        self.layer.send(data, self.flow, self.call_id, self)

    def on_flow_broken(self) -> None:
        """Handle a response that was not sent."""
        self.layer.fail_transport(self)

    def end(self) -> None:
        """Release the user."""
        self.user = None
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()


def server_key(request: Request) -> Key:
    """
    Return the key of a request, which its repetitions share and nothing else.

    A branch without the magic cookie, from before RFC 3261, is not unique, so the key adds the fields that
    identify a request.

    Source: RFC 3261 17.2.3.
    """
    via = request.via
    key = (via.branch, via.host, via.port, request.method)
    if via.branch is not None and via.branch.startswith(MAGIC_COOKIE):
        return key
    return (*key, request.call_id, request.cseq.number, request.from_.tag)


def fields_of_request(request: Request) -> "RequestFields":
    """Return what the engine matches a request by that it has not read itself."""
    via, cseq = request.via, request.cseq
    return (
        to_bytes(request.method),
        None if via.branch is None else to_bytes(via.branch),
        to_bytes(via.host),
        via.port,
        to_bytes(request.call_id),
        cseq.number,
        to_bytes(request.from_.tag or ""),
    )


def fields_of_response(response: Response) -> "ResponseFields":
    """Return what the engine matches a response by that it has not read itself."""
    headers = response.headers
    return (
        response.status,
        headers.count("via"),
        to_bytes(response.via.branch or ""),
        to_bytes(response.cseq.method),
        to_bytes(headers.first("to") or ""),
    )


def trying_of(request: Request) -> bytes:
    """Return the 100 of an INVITE, and nothing for other requests."""
    return serialise(reply(request, 100)) if request.method == "INVITE" else b""


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

    def watch(self, transaction: ClientTransaction) -> None:
        """Limit how long a request waits for its connection."""
        if not transaction.flow.established:
            flow, reason = transaction.flow, "The connection did not come up in time for a large request"
            transaction.trial = self._layer.arm(TRIAL_S, lambda _: flow.give_up(reason))

    def note_refusal(self, remote: Address) -> None:
        """Record that a peer takes no connections."""
        if len(self._refused) >= MAX_REMEMBERED:
            self._refused.clear()
        self._refused[remote] = self._layer.clock.time() + REFUSED_FOR_S
