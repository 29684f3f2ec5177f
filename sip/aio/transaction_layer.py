"""Transaction layer of one user agent: transports, transactions, timers and retransmissions."""

import logging
import random
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sip.aio.handover import PreviousProcess
from sip.aio.transaction_io import (
    ClientTransactionIO,
    Key,
    RequestUser,
    ServerTransactionIO,
    TcpFallback,
)
from sip.aio.transport import Address, Clock, Flow, Handle, Listen, Transport
from sip.effects import Purpose
from sip.errors import ParseError
from sip.message.message import Message, Request, Response, serialise
from sip.message.multipart import unwrap
from sip.message.parser import parse_message
from sip.message.responses import ACCEPT
from sip.timers import Timer, TimerQueue
from sip.transactions.ack_and_cancel import make_cancel
from sip.transactions.invite_client import Event as InviteClientEvent
from sip.transactions.invite_client import InviteClientTransaction
from sip.transactions.invite_client import State as InviteClientState
from sip.transactions.invite_server import InviteServerTransaction
from sip.transactions.non_invite_client import NonInviteClientTransaction
from sip.transactions.non_invite_server import NonInviteServerTransaction

if TYPE_CHECKING:
    from sip.aio.user_agent import UserAgent

logger = logging.getLogger(__name__)

WAKE_SPACING_S = 0.02
"""Timers due within this time of each other share one wake-up: RFC 3261 has none below 200 ms."""
SIP_PORT = 5060
MAGIC_COOKIE = "z9hG4bK"
"""Prefix of every branch since RFC 3261; marks the branch as globally unique."""


@dataclass(slots=True)
class TraceRecord:
    """One message on the wire, with its monotonic time in seconds; derived fields are properties."""

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


class TransactionLayer:
    """
    Moves messages between transports, transactions and the user agent above.

    `clients` and `servers` are the active transactions by key.
    """

    def __init__(self, user: "UserAgent", clock: Clock, trace: Callable[[TraceRecord], None] | None) -> None:
        settings = user.settings
        self.user = user
        self.clock = clock
        self.timers = settings.timers
        self.transports: list[Transport] = []
        self._limits = settings.limits
        self._trace = trace
        self._guard = user.guard
        self.clients: dict[Key, ClientTransactionIO] = {}
        self.servers: dict[Key, ServerTransactionIO] = {}
        self._tcp_fallback = TcpFallback(self)
        self.max_udp_bytes = settings.max_udp_request_bytes or sys.maxsize
        """Requests larger than this use a connection instead of UDP where possible."""
        self.timer_queue = TimerQueue()
        self._alarm: Handle | None = None
        self._alarm_at = 0.0
        self._closed = False
        self.previous: PreviousProcess | None = None
        """Previous process on these addresses, as long as it has active calls."""

    # Timers.

    def arm(self, delay_s: float, callback: Callable[[int], object], event: int = 0) -> Timer:
        """Arm a timer that calls back with its event; once the layer is closed it never fires."""
        now = self.clock.time()
        timer = self.timer_queue.arm(now, delay_s, callback, event)
        if self._closed:
            self.timer_queue.disarm(timer)
        elif self._alarm is None or timer.due_s < self._alarm_at:
            self._set_alarm(timer.due_s)
        return timer

    def disarm(self, timer: Timer) -> None:
        """Cancel a timer."""
        self.timer_queue.disarm(timer)

    def _set_alarm(self, due_s: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = due_s
        self._alarm = self.clock.call_at(due_s, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        now = self.clock.time()
        next_s = self.timer_queue.run(now)
        if next_s is not None and (self._alarm is None or next_s < self._alarm_at):
            self._set_alarm(max(next_s, now + WAKE_SPACING_S))

    def close(self) -> None:
        """Drop all timers and transactions and close the transports."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self.timer_queue = TimerQueue()
        self.clients.clear()
        self.servers.clear()
        for transport in self.transports:
            transport.close()

    # Receiving.

    def receive(self, data: bytes, flow: Flow) -> None:
        """Handle one message from a transport."""
        if data[:1] <= b" " and not data.strip(b"\r\n\0 "):
            return  # A keep-alive.
        guard = self._guard
        if guard is not None and flow.remote[0] not in guard.trusted and not guard.admit(data, flow):
            flow.abort()
            return
        if guard is not None and guard.pressed and not flow.reliable and not guard.passes(data):
            return
        try:
            message = parse_message(data, self._limits)
        except ParseError as error:
            self._refuse(error, flow)
            return
        if self._trace is not None:
            self._note("in", data, flow, message.call_id)
        if self.previous is not None and self.previous.forwards(message, data, flow):
            return
        if message.body and message.content_type != ACCEPT:
            unwrap(message)
        if isinstance(message, Response):
            self._receive_response(message, flow)
        else:
            self._receive_request(message, flow)

    def has_transaction(self, message: Message) -> bool:
        """True if a message matches an active transaction; a CANCEL matches that of its INVITE."""
        if isinstance(message, Response):
            return client_key(message) in self.clients
        method = "INVITE" if message.method == "CANCEL" else None
        return server_key(message, method) in self.servers

    def _receive_response(self, response: Response, flow: Flow) -> None:
        if response.headers.count("via") != 1:
            return  # Meant for another hop (RFC 3261 8.1.3.3).
        transaction = self.clients.get(client_key(response))
        if transaction is not None:
            self.trust(flow)
            transaction.perform(transaction.machine.receive(response))
        elif 200 <= response.status < 300 and response.cseq.method == "INVITE":
            self.user.on_stray_answer(response, flow)

    def _receive_request(self, request: Request, flow: Flow) -> None:
        key = server_key(request)
        via = request.via
        remote = flow.remote
        request.headers.stamp_via(remote[0], remote[1])
        if flow.reliable:
            if via.params:
                flow.note_via(via)
        elif via.rport is None:
            flow = flow.transport.flow_to((remote[0], via.port or SIP_PORT))
        transaction = self.servers.get(key)
        if transaction is not None:
            transaction.flow = flow  # A retransmission may come over a new connection.
            transaction.perform(transaction.machine.receive(request))
        elif request.method == "ACK":
            self.user.on_ack(request)
        else:
            self.user.on_request(request, flow, key)

    def _refuse(self, error: ParseError, flow: Flow) -> None:
        """Answer a malformed request where that is possible; ignore all other malformed data."""
        guard, host = self._guard, flow.remote[0]
        if guard is not None and host not in guard.trusted:
            guard.protection.on_malformed(host, self.clock.time())
            return
        response = error.answer
        if response is None:
            return
        via = response.via
        response.headers.stamp_via(flow.remote[0], flow.remote[1])
        if via.rport is None and not flow.reliable:
            flow = flow.transport.flow_to((flow.remote[0], via.port or SIP_PORT))
        self.send_response(response, flow)

    def trust(self, flow: Flow) -> None:
        """Add the peer of a flow to the guard's trusted sources: we send to it, or it is in a dialog."""
        guard, host = self._guard, flow.remote[0]
        if guard is not None and host not in guard.trusted and flow.remote != guard.own:
            guard.protection.trust(host, self.clock.time())

    # Sending.

    def send(
        self,
        data: bytes,
        flow: Flow,
        call_id: str,
        transaction: ClientTransactionIO | ServerTransactionIO | None = None,
    ) -> None:
        """Send bytes; the transaction is notified if they certainly were not sent."""
        if self._trace is not None:
            self._note("out", data, flow, call_id)
        if not flow.send(data) and transaction is not None:
            self.clock.call_soon(transaction.on_flow_broken)

    def send_response(self, response: Response, flow: Flow) -> None:
        """Send a response outside any transaction."""
        call_id = response.headers.first("call-id") or ""
        self.send(serialise(response), flow, call_id)

    def send_ack(self, request: Request, flow: Flow) -> None:
        """Send the ACK of a 2xx; a repeated ACK keeps its Via."""
        if request.headers.first("via") is None:
            self._add_via(request, flow)
        self.send(serialise(request), flow, request.call_id)

    def start_client(
        self, request: Request, flow: Flow, user: RequestUser | None, purpose: Purpose
    ) -> ClientTransactionIO:
        """
        Send a request in a client transaction of its own.

        A request that is too large for a datagram uses a connection (RFC 3261 18.1.1).
        """
        branch = self._add_via(request, flow)
        transaction = ClientTransactionIO(self, flow, self._client_machine(request, flow), user, purpose)
        if len(transaction.machine.wire) > self.max_udp_bytes and not flow.reliable:
            stream = self._tcp_fallback.stream_for(flow)
            if stream is not None:
                transaction.fallback = flow
                branch = self._reroute(transaction, stream)
                self._start_client(transaction, branch)
                self._tcp_fallback.watch(transaction)
                return transaction
        return self._start_client(transaction, branch)

    def _client_machine(
        self, request: Request, flow: Flow
    ) -> InviteClientTransaction | NonInviteClientTransaction:
        kind = InviteClientTransaction if request.method == "INVITE" else NonInviteClientTransaction
        return kind(request, self.timers, reliable=flow.reliable)

    def _reroute(self, transaction: ClientTransactionIO, flow: Flow) -> str:
        """Move an unsent request to another flow, with a new Via; returns its branch."""
        request = transaction.machine.request
        request.headers.remove("Via")
        branch = self._add_via(request, flow)
        transaction.flow, transaction.machine = flow, self._client_machine(request, flow)
        return branch

    def fall_back(self, transaction: ClientTransactionIO) -> bool:
        """
        Resend a request by UDP whose connection was never established; False if it may have been sent.

        Source: RFC 3261 18.1.1.
        """
        flow, transaction.fallback = transaction.fallback, None
        if flow is None or transaction.flow.established or not transaction.machine.wanted:
            return False
        self._tcp_fallback.note_refusal(transaction.flow.remote)
        self.end_client(transaction)
        self._start_client(transaction, self._reroute(transaction, flow))
        return True

    def resume_invite(self, invite: Request, flow: Flow, user: RequestUser) -> ClientTransactionIO:
        """Resume the client transaction of an INVITE that a previous process sent."""
        machine = InviteClientTransaction(invite, self.timers, reliable=flow.reliable)
        machine.state = InviteClientState.PROCEEDING
        transaction = ClientTransactionIO(self, flow, machine, user, Purpose.INVITE)
        self.trust(flow)
        self._add_client(transaction, invite.via.branch or "")
        return transaction

    def cancel(self, transaction: ClientTransactionIO, reason: str | None = None) -> None:
        """
        Send the CANCEL of a pending INVITE on its flow, or on a new flow to the same address.

        `reason` is the value of its Reason header field.
        """
        if transaction.flow.closed:
            transaction.flow = transaction.flow.transport.flow_to(
                transaction.flow.remote, transaction.flow.name
            )
        flow, purpose = transaction.flow, transaction.purpose
        request = make_cancel(transaction.machine.request, reason)
        machine = NonInviteClientTransaction(request, self.timers, reliable=flow.reliable)
        cancel = ClientTransactionIO(self, flow, machine, None, purpose)
        self._start_client(cancel, str(transaction.key[0]))
        self.expire(transaction)  # RFC 3261 9.1: the INVITE may never get its final response.

    def abandon(self, transaction: ClientTransactionIO, *, give_up: bool) -> None:
        """Stop retransmitting an INVITE or, with `give_up`, drop its transaction."""
        event = InviteClientEvent.GIVE_UP if give_up else InviteClientEvent.ABANDON
        transaction.perform(transaction.machine.trigger(event))

    def expire(self, transaction: ClientTransactionIO) -> None:
        """Drop an INVITE without a final response after the transaction timeout."""
        if transaction.machine.state <= InviteClientState.PROCEEDING:
            timer = self.arm(self.timers.timeout_s, transaction.on_timer, InviteClientEvent.GIVE_UP)
            transaction.timers.append(timer)

    def _start_client(self, transaction: ClientTransactionIO, branch: str) -> ClientTransactionIO:
        self.trust(transaction.flow)
        self._add_client(transaction, branch)
        transaction.perform(transaction.machine.start())
        return transaction

    def _add_client(self, transaction: ClientTransactionIO, branch: str) -> None:
        transaction.key = (branch, transaction.machine.request.method)
        self.clients[transaction.key] = transaction
        if transaction.flow.reliable:
            transaction.flow.watch(transaction.on_flow_broken)

    def _add_via(self, request: Request, flow: Flow) -> str:
        branch = MAGIC_COOKIE + make_token()
        # A server that trusts our certificate may use the connection for requests of its own (RFC 5923 4).
        alias = ";alias" if flow.secure else ""
        request.headers.push_via(f"{flow.transport.via_start};branch={branch};rport{alias}")
        return branch

    def start_server(self, request: Request, flow: Flow, key: Key) -> ServerTransactionIO:
        """Open the server transaction of a request."""
        machine: InviteServerTransaction | NonInviteServerTransaction
        if request.method == "INVITE":
            machine = InviteServerTransaction(request, self.timers, reliable=flow.reliable)
        else:
            machine = NonInviteServerTransaction(self.timers, reliable=flow.reliable)
        first_effects = machine.start()
        transaction = ServerTransactionIO(self, flow, key, request, machine)
        self.servers[key] = transaction
        transaction.perform(first_effects)
        return transaction

    def end_client(self, transaction: ClientTransactionIO) -> None:
        """Remove a client transaction."""
        transaction.end()
        transaction.flow.unwatch(transaction.on_flow_broken)
        self.clients.pop(transaction.key, None)

    def end_server(self, transaction: ServerTransactionIO) -> None:
        """Remove a server transaction."""
        transaction.end()
        self.servers.pop(transaction.key, None)
        transaction.user = None
        on_end, transaction.on_end = transaction.on_end, None
        if on_end is not None:
            on_end()

    # Flows to peers.

    def transport_for(
        self, transport_name: str, host: str, preferred: Transport | None = None
    ) -> Transport | None:
        """Return the transport of that name for a peer's address, `preferred` if it fits, or None."""
        ipv6 = ":" in host
        for transport in self.transports if preferred is None else (preferred, *self.transports):
            if transport.name == transport_name and (":" in transport.address.host) is ipv6:
                return transport
        return None

    def flow_to(
        self,
        transport_name: str,
        remote: Address,
        preferred: Transport | None = None,
        name: str | None = None,
    ) -> Flow | None:
        """
        Return a flow to a peer, of the transport `preferred` if it fits; None when no transport fits.

        `name` is the name that the peer's certificate must prove over TLS; None means its address.
        """
        transport = self.transport_for(transport_name, remote[0], preferred)
        if transport is None:
            logger.warning("There is no %s listener from which %s can be reached", transport_name, remote[0])
            return None
        return transport.flow_to(remote, name)

    def _note(self, direction: str, data: bytes, flow: Flow, call_id: str) -> None:
        assert self._trace is not None
        try:
            self._trace(
                TraceRecord(self.clock.time(), direction, flow.transport.address, flow.remote, data, call_id)
            )
        except Exception:
            # A trace that fails must not lose the message.
            logger.exception("The trace callback failed")


def client_key(response: Response) -> Key:
    """
    Return the key of the client transaction that a response matches.

    Source: RFC 3261 17.1.3.
    """
    return (response.via.branch, response.cseq.method)


def server_key(request: Request, method: str | None = None) -> Key:
    """
    Return the key of the server transaction that a request matches; `method` replaces its own.

    An ACK matches its INVITE. A branch without the magic cookie, from before RFC 3261, is not unique, so the
    key adds the fields that identify a request.

    Source: RFC 3261 9.2, 17.2.3.
    """
    if method is None:
        method = "INVITE" if request.method == "ACK" else request.method
    via = request.via
    branch = via.branch
    if branch is not None and branch.startswith(MAGIC_COOKIE):
        return (branch, via.host, via.port, method)
    return (branch, via.host, via.port, method, request.call_id, request.cseq.number, request.from_.tag)


make_token = partial(secrets.token_hex, 10)
"""Returns 80 random bits as 20 hexadecimal digits, for tags, branches, Call-IDs and client nonces."""

draw_between = random.SystemRandom().uniform
"""Returns a random number between two bounds, for delays."""
