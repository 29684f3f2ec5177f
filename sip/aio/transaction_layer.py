"""Transaction layer of one user agent: transports, transactions, timers and retransmissions."""

import logging
import os
import random
import sys
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from sip._wire import (
    ABSORBED,
    ACK,
    CANCEL,
    REPEATED,
    RESPONSE,
    SEND,
    SOURCE_DROP,
    SOURCE_KNOWN,
    STRAY,
    TIMED_OUT,
    UNREAD,
    UNSENT,
)
from sip.aio.handover import PreviousProcess
from sip.aio.trace import OnMessage
from sip.aio.transaction_io import (
    MAGIC_COOKIE,
    ClientTransaction,
    RequestUser,
    ServerTransaction,
    TcpFallback,
    fields_of_request,
    fields_of_response,
    trying_of,
)
from sip.aio.transport import Address, Clock, Flow, Handle, Transport
from sip.aio.watchdog import Watchdog
from sip.effects import Failure, Purpose
from sip.errors import ParseError
from sip.message.encoding import to_bytes
from sip.message.message import Message, Request, Response, serialise
from sip.message.multipart import unwrap
from sip.message.native import wire
from sip.message.parser import READER, parse_carefully
from sip.message.responses import ACCEPT

if TYPE_CHECKING:
    from sip._wire import Found, Outputs
    from sip.aio.user_agent import UserAgent

logger = logging.getLogger(__name__)

WAKE_SPACING_S = 0.02
"""Timers due within this time of each other share one wake-up: RFC 3261 has none below 200 ms."""
SIP_PORT = 5060


class TransactionLayer:
    """
    Moves messages between transports, the signalling engine and the user agent above.

    The engine matches messages and runs the transactions; here are their handles and flows.
    """

    def __init__(self, user: "UserAgent", clock: Clock, trace: OnMessage | None) -> None:
        settings = user.settings
        self.user = user
        self.clock = clock
        self.timers = settings.timers
        self.transports: list[Transport] = []
        self._limits = settings.limits
        self._trace = trace
        self._guard = user.guard
        self.trust = _trust_nobody if self._guard is None else self._guard.trust
        """Adds the peer of a flow to the guard's trusted sources: we send to it, or it is in a dialog."""
        self._engine = wire.Engine(READER, settings.limits, settings.timers, settings.max_transactions)
        self._engine.set_tracing(trace is not None)
        if self._guard is not None:
            self._engine.set_guard(self._guard.protection.sources)
        self.watchdog = Watchdog(self, self._engine)
        """Thread that serves UDP sockets while the loop stands still."""
        self._handles: dict[int, ClientTransaction | ServerTransaction] = {}
        self._opened: tuple[Request, int] | None = None
        """Request that the user agent is handling, with the transaction that the engine opened for it."""
        self._tcp_fallback = TcpFallback(self)
        self.max_udp_bytes = settings.max_udp_request_bytes or sys.maxsize
        """Requests larger than this use a connection instead of UDP where possible."""
        self.timer_queue = wire.TimerQueue()
        """Timers of sessions and others above; those of transactions are the engine's."""
        self._alarm: Handle | None = None
        self._alarm_at = inf
        self._closed = False
        self.previous: PreviousProcess | None = None
        """Previous process on these addresses, as long as it has active calls."""

    def set_previous(self, process: PreviousProcess | None) -> None:
        """Set the previous process; None when it has ended."""
        self.previous = process
        self._engine.set_opening(process is None)

    # Timers.

    def arm(self, delay_s: float, callback: Callable[[int], object], event: int = 0) -> int:
        """
        Arm a timer that calls back with its event; returns its number.

        `timer_queue.disarm` takes the number. Once the layer is closed the timer is none, with the number 0.
        """
        if self._closed:
            return 0
        queue, now = self.timer_queue, self.clock.time()
        timer = queue.arm(now, delay_s, callback, event)
        if now + delay_s < self._alarm_at:
            self._set_alarm(queue.due_s)
        return timer

    def _set_alarm(self, due_s: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = due_s
        self._alarm = self.clock.call_at(due_s, self._wake)

    def _keep_time(self) -> None:
        """Wake up in time for what the engine has armed."""
        due_s = self._engine.due_s
        if due_s < self._alarm_at and not self._closed:
            self._set_alarm(due_s)

    def _wake(self) -> None:
        self._alarm, self._alarm_at = None, inf
        self.watchdog.catch_up()  # Messages that have come first.
        now = self.clock.time()
        try:
            self.perform(self._engine.advance(now))
            while (due := self.timer_queue.take_due(now)) is not None:
                callback, event = due
                callback(event)
        finally:  # A defect in one timer's handling must not stop the others.
            due_s = min(self._engine.due_s, self.timer_queue.due_s)
            if due_s < self._alarm_at and not self._closed:
                self._set_alarm(max(due_s, now + WAKE_SPACING_S))

    def close(self) -> None:
        """Drop all timers and transactions and close the transports."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self.timer_queue = wire.TimerQueue()
        self._engine.clear()
        self._handles.clear()
        for transport in self.transports:
            transport.close()
        self.watchdog.close()

    # Counts.

    @property
    def transactions(self) -> int:
        """Number of transactions, without that of the request which is being handled."""
        return self._engine.transactions - (self._opened is not None)

    @property
    def running_timers(self) -> int:
        """Number of running timers."""
        return len(self.timer_queue) + self._engine.timers

    # Receiving.

    def receive(self, data: bytes, flow: Flow) -> None:
        """Handle one message from a transport."""
        if data[:1] <= b" " and not data.strip(b"\r\n\0 "):
            return  # A keep-alive.
        known = True
        if self._guard is not None:
            answer = self._guard.admit(data, flow)
            if answer == SOURCE_DROP:
                if flow.origin is None:  # A front forwards messages of others too.
                    flow.abort()
                return
            known = answer == SOURCE_KNOWN
        self.receive_admitted(data, flow, known)

    def receive_admitted(self, data: bytes, flow: Flow, known: bool) -> None:
        """Handle one message that the guard lets pass; `known` is its word on the source."""
        guard, (host, port) = self._guard, flow.remote
        if guard is not None:
            if guard.has_fronts:
                guard.locate(data, flow)
            guard.arrived_bytes = len(data)
            if guard.pressed and not flow.reliable and not guard.passes(data):
                return
        # Nothing is kept for a source before the user agent knows it.
        opens = known and self.previous is None
        now, socket = self.clock.time(), flow.transport.socket_number
        found: Found | None = self._engine.receive(data, host, port, socket, flow.reliable, opens, now)
        if found is not None and found[0] == UNREAD:
            found = self._read(data, flow, opens)
        if found is not None:
            self.take_found(found, data, flow)

    def take_found(self, found: "Found", data: bytes, flow: Flow) -> None:
        """Pass a message that the engine has matched on to whom it concerns, and send what it answers."""
        kind, number, message, answer, port = found
        handle = self._handles.get(number)
        if self._trace is not None:
            known_by = handle if message is None else message
            self._note("in", data, flow, "" if known_by is None else known_by.call_id)
        if kind == RESPONSE or kind == ABSORBED:
            if isinstance(handle, ClientTransaction):
                self._take_response(handle, message if kind == RESPONSE else None, answer)
        elif number == 0 and self._is_forwarded(message, data, flow):
            pass
        elif not isinstance(message, Response):
            self._take_request(found, flow)
        elif kind == STRAY:
            self._open(message)
            self.user.on_stray_answer(message, flow)
        if self._engine.due_s < self._alarm_at:
            self._keep_time()

    def _read(self, data: bytes, flow: Flow, opens: bool) -> "Found | None":
        """Read a message that is not plain, and have the engine match it; None if it is malformed."""
        try:
            message = parse_carefully(data, self._limits)
        except ParseError as error:
            self._refuse(error, flow)
            return None
        now, port = self.clock.time(), 0
        if isinstance(message, Response):
            kind, number, answer = self._engine.take_response(fields_of_response(message), now)
            if kind == RESPONSE or kind == ABSORBED:
                self.trust(flow)
        else:
            message.headers.stamp_via(*flow.remote)
            via, fields = message.via, fields_of_request(message)
            port = flow.remote[1] if via.rport is not None else via.port or SIP_PORT
            kind, number, answer = self._engine.take_request(
                fields, trying_of(message), _where(flow, port), opens, now
            )
        return kind, number, message, answer, port

    def _is_forwarded(self, message: Message | None, data: bytes, flow: Flow) -> bool:
        """Forward a message without a transaction to the previous process, if it is of a call there."""
        previous = self.previous
        return previous is not None and message is not None and previous.forwards(message, data, flow)

    def _take_response(
        self, transaction: ClientTransaction, response: Message | None, answer: bytes | None
    ) -> None:
        if answer is not None:
            transaction.send(answer)
        if transaction.user is not None and isinstance(response, Response):
            if response.body:
                self._open(response)
            transaction.user.on_response(transaction, response)

    def _take_request(self, found: "Found", flow: Flow) -> None:
        kind, number, request, answer, port = found
        if flow.reliable:
            if request is not None and request.via.params:
                flow.note_via(request.via)
        elif port != flow.remote[1]:
            origin, flow = flow.origin, flow.transport.flow_to((flow.remote[0], port))
            flow.origin = origin
        transaction = self._handles.get(number)
        if isinstance(transaction, ServerTransaction) and kind != CANCEL:
            transaction.flow = flow  # A retransmission may come over a new connection.
            if answer is not None:
                transaction.send(answer)
        if kind == REPEATED or not isinstance(request, Request):
            return
        if request.body:
            self._open(request)
        if kind == ACK:
            self.user.on_ack(request)
        elif kind == CANCEL:
            invite = transaction if isinstance(transaction, ServerTransaction) else None
            self.user.on_cancel(request, flow, invite)
        else:
            self._hand_over(request, flow, number)

    def _hand_over(self, request: Request, flow: Flow, number: int) -> None:
        """Pass a new request to the user agent; a transaction that it does not use is forgotten."""
        self._opened = (request, number) if number else None
        try:
            self.user.on_request(request, flow)
        finally:
            if self._opened is not None:
                self._opened = None
                self._engine.release(number)

    def _open(self, message: Message) -> None:
        """Replace a multipart body by its session description."""
        if message.body and message.content_type != ACCEPT:
            unwrap(message)

    def _refuse(self, error: ParseError, flow: Flow) -> None:
        """Answer a malformed request where that is possible; ignore all other malformed data."""
        guard, host = self._guard, flow.source[0]
        if guard is not None and not guard.protection.knows(host):
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

    # Sending.

    def send(
        self,
        data: bytes,
        flow: Flow,
        call_id: str,
        transaction: ClientTransaction | ServerTransaction | None = None,
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

    # Client transactions.

    def start_client(
        self, request: Request, flow: Flow, user: RequestUser | None, purpose: Purpose
    ) -> ClientTransaction:
        """
        Send a request in a client transaction of its own.

        A request that is too large for a datagram uses a connection (RFC 3261 18.1.1).
        """
        transaction = ClientTransaction(self, flow, request, user, purpose)
        branch = self._add_via(request, flow)
        data = serialise(request)
        if len(data) > self.max_udp_bytes and not flow.reliable:
            stream = self._tcp_fallback.stream_for(flow)
            if stream is not None:
                transaction.fallback = flow
                self._reroute(transaction, stream)
                self._tcp_fallback.watch(transaction)
                return transaction
        self._start_client(transaction, branch, data)
        return transaction

    def _reroute(self, transaction: ClientTransaction, flow: Flow) -> None:
        """Send a request that was not sent yet on another flow, with a new Via."""
        request, transaction.flow = transaction.request, flow
        request.headers.remove("Via")
        branch = self._add_via(request, flow)
        self._start_client(transaction, branch, serialise(request))

    def _start_client(self, transaction: ClientTransaction, branch: str, data: bytes) -> None:
        flow = transaction.flow
        self.trust(flow)
        method, now = transaction.request.method, self.clock.time()
        number = self._engine.start_client(data, method, branch, _where(flow), now)
        self._add_client(transaction, number, data)

    def _add_client(self, transaction: ClientTransaction, number: int, data: bytes) -> None:
        """Keep the handle of a transaction that the engine has started, and send its request."""
        transaction.number = number
        self._handles[number] = transaction
        if transaction.flow.reliable:
            transaction.flow.watch(transaction.on_flow_broken)
        self.send(data, transaction.flow, transaction.call_id, transaction)
        if self._engine.due_s < self._alarm_at:
            self._keep_time()

    def fall_back(self, transaction: ClientTransaction) -> bool:
        """
        Resend a request by UDP whose connection was never established; False if it may have been sent.

        Source: RFC 3261 18.1.1.
        """
        flow, transaction.fallback = transaction.fallback, None
        if flow is None or transaction.flow.established or not self._engine.is_wanted(transaction.number):
            return False
        self._tcp_fallback.note_refusal(transaction.flow.remote)
        self.end_client(transaction)
        self._reroute(transaction, flow)
        return True

    def resume_invite(self, invite: Request, flow: Flow, user: RequestUser) -> ClientTransaction:
        """Resume the client transaction of an INVITE that a previous process sent."""
        transaction = ClientTransaction(self, flow, invite, user, Purpose.INVITE)
        self.trust(flow)
        number = self._engine.resume_invite(serialise(invite), invite.via.branch or "", _where(flow))
        transaction.number = number
        self._handles[number] = transaction
        if flow.reliable:
            flow.watch(transaction.on_flow_broken)
        return transaction

    def cancel(self, transaction: ClientTransaction, reason: str | None = None) -> None:
        """
        Send the CANCEL of a pending INVITE on its flow, or on a new flow to the same address.

        `reason` is the value of its Reason header field.
        """
        if transaction.flow.closed:
            transaction.flow = transaction.flow.transport.flow_to(
                transaction.flow.remote, transaction.flow.name
            )
        number, data = self._engine.cancel(transaction.number, to_bytes(reason or ""), self.clock.time())
        if number == 0:
            return
        self.trust(transaction.flow)
        cancel = ClientTransaction(self, transaction.flow, transaction.request, None, transaction.purpose)
        self._add_client(cancel, number, data)

    def abandon(self, transaction: ClientTransaction, *, give_up: bool) -> None:
        """Stop retransmitting an INVITE or, with `give_up`, drop its transaction."""
        now = self.clock.time()
        if give_up:
            self.perform(self._engine.give_up(transaction.number, now))
        else:
            self._engine.abandon(transaction.number, now)

    def expire(self, transaction: ClientTransaction) -> None:
        """Drop an INVITE without a final response after the transaction timeout."""
        self._engine.expire(transaction.number, self.clock.time())
        self._keep_time()

    def end_client(self, transaction: ClientTransaction) -> None:
        """Remove a client transaction."""
        self._engine.release(transaction.number)
        self._handles.pop(transaction.number, None)
        transaction.end()

    def wanted_client(self, method: bytes, branch: bytes) -> ClientTransaction | None:
        """Return the transaction of a request over UDP that has no response yet and is not abandoned."""
        handle = self._handles.get(self._engine.find_wanted(method, branch))
        return handle if isinstance(handle, ClientTransaction) else None

    def wanted_clients(self) -> list[ClientTransaction]:
        """Return all transactions whose requests are repeated until a response comes."""
        clients = [handle for handle in self._handles.values() if isinstance(handle, ClientTransaction)]
        return list(filter(self.is_wanted, clients))

    def is_wanted(self, transaction: ClientTransaction) -> bool:
        """Return True while a request is repeated: it has no response yet and is not abandoned."""
        return self._engine.is_wanted(transaction.number)

    def _add_via(self, request: Request, flow: Flow) -> str:
        branch = MAGIC_COOKIE + make_token()
        # A server that trusts our certificate may use the connection for requests of its own (RFC 5923 4).
        alias = ";alias" if flow.secure else ""
        request.headers.push_via(f"{flow.transport.via_start};branch={branch};rport{alias}")
        return branch

    # Server transactions.

    def start_server(self, request: Request, flow: Flow) -> ServerTransaction:
        """Return the transaction of a request: the one that the engine has opened for it, or a new one."""
        opened, number = self._opened, 0
        if opened is not None and opened[0] is request:
            number, self._opened = opened[1], None
        else:
            fields, trying = fields_of_request(request), trying_of(request)
            number = self._engine.open_server(fields, trying, _where(flow), self.clock.time())
            self._keep_time()
        transaction = self._handles[number] = ServerTransaction(self, flow, request, number)
        return transaction

    def respond(self, transaction: ServerTransaction, response: Response) -> None:
        """Send a response in its transaction, unless it comes too late."""
        data = serialise(response)
        if self._engine.respond(transaction.number, response.status, data, self.clock.time()):
            transaction.send(data)
        if self._engine.due_s < self._alarm_at:
            self._keep_time()

    # What the engine says by itself.

    def fail_transport(self, transaction: ClientTransaction | ServerTransaction) -> None:
        """Report a broken flow, or bytes that were not sent."""
        self.perform(self._engine.fail_transport(transaction.number, self.clock.time()))
        self._keep_time()

    def perform(self, outputs: "Outputs") -> None:
        """Send what the engine sends by itself, and report what has ended."""
        for kind, number, data in outputs:
            handle = self._handles.get(number)
            if handle is None:
                continue
            if kind == SEND:
                if data is not None:
                    handle.send(data)
                continue
            del self._handles[number]
            handle.end()
            if isinstance(handle, ClientTransaction) and handle.user is not None:
                if kind == TIMED_OUT:
                    handle.user.on_failure(handle, Failure.TIMEOUT)
                elif kind == UNSENT:
                    handle.user.on_failure(handle, Failure.TRANSPORT)

    # What the watchdog has kept.

    def note_sent(self, data: bytes, flow: Flow, number: int) -> None:
        """Trace bytes that were sent while the loop stood still."""
        handle = self._handles.get(number)
        if self._trace is not None:
            self._note("out", data, flow, "" if handle is None else handle.call_id)

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
            self._trace(self.clock.time(), direction, flow.transport.address, flow.remote, data, call_id)
        except Exception:
            # A trace that fails must not lose the message.
            logger.exception("The trace callback failed")


def _trust_nobody(flow: Flow) -> None:
    """Stand in for `Guard.trust` of a user agent without a guard."""


def _where(flow: Flow, port: int | None = None) -> "tuple[int, str, int, bool]":
    """Return a flow as the engine has it; `port` replaces that of the peer."""
    host, own = flow.remote
    return (flow.transport.socket_number, host, own if port is None else port, flow.reliable)


def make_token() -> str:
    """Return 80 random bits as 20 hexadecimal digits, for tags, branches, Call-IDs and client nonces."""
    return os.urandom(10).hex()


draw_between = random.SystemRandom().uniform
"""Returns a random number between two bounds, for delays."""
