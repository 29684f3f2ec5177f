"""Sessions of the application: commands in, events out, none of them waits."""

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from sip.aio.transaction_io import ClientTransaction, ServerTransaction
from sip.aio.transport import Address, Flow
from sip.effects import (
    Arm,
    CancelInvite,
    CancelStep,
    Disarm,
    Done,
    Effect,
    Failure,
    Purpose,
    Respond,
    SendAck,
    StartRequest,
)
from sip.errors import InvalidValue
from sip.events import Failed, SessionEvent
from sip.location.failover import Outcome, Tried
from sip.location.rfc3263 import Destination, default_port
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request, Response
from sip.message.reason_header import reason_value
from sip.session.dialog import save_dialog, save_invite
from sip.session.inbound import InboundInviteSession, Reply
from sip.session.invite import InviteSession
from sip.session.model import Event, OutboundInvite, State
from sip.session.outbound import OutboundInviteSession
from sip.session.refer import refer_to
from sip.session.replaces import Replaces

if TYPE_CHECKING:
    from sip.aio.request_routing import ServerFailover
    from sip.aio.user_agent import UserAgent

logger = logging.getLogger(__name__)

OnEvent = Callable[[SessionEvent], None]

_CONFIRMED_STATES = (State.ACCEPTED, State.CONFIRMED, State.BYE_PENDING_ACK)
"""States in which a BYE ends the session."""


class Session:
    """
    One call leg in SIP.

    Commands return at once; `on_event` receives their outcome, never from within a command.
    Commands that come too late, because the peer was faster, do nothing. `data` belongs to the owner.
    """

    _PERFORM: "ClassVar[dict[type[Effect], Callable[[Session, Any], None]]]"

    def __init__(self, host: "UserAgent", machine: InviteSession, flow: Flow | None) -> None:
        self._host = host
        self._machine = machine
        self.call_id = machine.call_id
        """The Call-ID."""
        self.key = (machine.call_id, machine.local_tag)
        """Call-ID and our tag, the key by which requests within the session find it."""
        self.flow = flow
        """Flow on which the peer last sent a message."""
        self.on_event: OnEvent | None = None
        self.data: Any = None
        self.requests: set[int] = set()
        """Transactions of requests of the peer in the session, by number; over UDP each lasts for 32 s."""
        self._invite_transaction: ServerTransaction | None = None
        """Transaction of the INVITE of a peer."""
        self._timers: dict[int, int] = {}
        """Numbers of running timers by event."""
        self._transactions: dict[Purpose, ClientTransaction] = {}
        self._events: deque[SessionEvent] | None = None
        self._in_command = False
        self._held: Flow | None = None
        if flow is not None and flow.reliable:
            self._hold(flow)

    @property
    def state(self) -> State:
        """State of the session."""
        return self._machine.state

    @property
    def local(self) -> NameAddr:
        """Our address, with our tag."""
        raise NotImplementedError

    @property
    def remote(self) -> NameAddr:
        """The peer's address, with its tag if known."""
        raise NotImplementedError

    def is_with(self, tag: str | None) -> bool:
        """True if a peer's tag belongs to a dialog of this session, early dialogs included."""
        return self._machine.is_with(tag)

    # Commands.

    def hangup(
        self, *, reason: str | None = None, status: int = 603, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        """
        End the session by BYE, CANCEL or a final response, depending on its state.

        `reason` is the value of a Reason header field, such as `Q.850;cause=16;text="Normal"`; `status`
        refuses an inbound INVITE that is not answered yet. `headers` are further fields of a BYE.

        Raises:
            InvalidValue: The status is no refusal, or a header field cannot be set.
        """
        _check_range(status, 300, 699)
        bye_headers = tuple(headers)
        if bye_headers:
            self._machine.bye_headers = tuple(Headers(bye_headers).items())
        self._command(self._machine.hangup(reason, status))

    def reinvite(self, body: bytes) -> None:
        """Send a re-INVITE with an offer; `OfferAnswered` or `OfferFailed` follows."""
        self._command(self._machine.reinvite(body))

    def update(self, body: bytes = b"") -> None:
        """
        Send an offer as `reinvite` does, but by UPDATE where the peer allows it, even before the answer.

        Without a body nothing is offered: the request only shows the peer that we are alive.
        """
        self._command(self._machine.update(body))

    def accept_offer(self, body: bytes) -> None:
        """Answer the offer of an `OfferReceived`, an `Answered` or a `Progress`."""
        self._command(self._machine.accept_offer(body))

    def reject_offer(self, status: int = 488, warning: str | None = None) -> None:
        """
        Refuse an `OfferReceived`; `warning` is the value of a Warning header field.

        Raises:
            InvalidValue: The status is no refusal.
        """
        _check_range(status, 300, 699)
        self._command(self._machine.reject_offer(status, warning))

    def info(self, content_type: str, body: bytes) -> None:
        """Send an INFO."""
        self._command(self._machine.info(content_type, body))

    # Transfers.

    @property
    def allows_refer(self) -> bool:
        """True if the peer may transfer, by REFER or by replacing this session; False by default."""
        return self._machine.allows_refer

    @allows_refer.setter
    def allows_refer(self, allowed: bool) -> None:
        self._machine.allows_refer = allowed

    def refer(
        self, target: str, *, replaces: Replaces | None = None, referred_by: NameAddr | None = None
    ) -> None:
        """
        Send a REFER: the peer calls the target, a URI that is sent unchanged.

        `replaces` names the target's dialog that the peer's call replaces. `ReferAccepted` or `ReferFailed`
        follows, and `ReferProgress` with the status in the peer's NOTIFY requests.

        Raises:
            InvalidValue: The target is no ``sip:``, ``sips:`` or ``tel:`` URI.
        """
        machine, value = self._machine, refer_to(target, replaces)
        by = None if referred_by is None else str(referred_by)
        self._command(machine.referrals.refer(machine, value, by))

    def accept_refer(self) -> None:
        """Accept a `ReferReceived`: the peer gets 202, then NOTIFY requests with the progress."""
        self._command(self._machine.referrals.accept(self._machine))

    def reject_refer(self, status: int = 603) -> None:
        """
        Refuse a `ReferReceived`.

        Raises:
            InvalidValue: The status is no refusal.
        """
        _check_range(status, 300, 699)
        self._command(self._machine.referrals.reject(self._machine, status))

    def notify_refer(self, status: int, reason: str = "") -> None:
        """
        Send the peer a NOTIFY with the transfer's progress; a final status ends it.

        Raises:
            InvalidValue: The status is not one of 100 to 699.
        """
        _check_range(status, 100, 699)
        self._command(self._machine.referrals.report(self._machine, status, reason))

    def set_session_id(self, value: str) -> None:
        """Add a Session-ID field to all later messages of the dialog (RFC 7989 6)."""
        dialog = self._machine.dialog
        if dialog is not None:
            dialog.session_id = value

    def saved(self) -> dict[str, Any] | None:
        """Return the state for ending this session elsewhere (see `sip.recovery`); None once it is over."""
        machine, flow = self._machine, self.flow
        if machine.state in _CONFIRMED_STATES and machine.dialog is not None and flow is not None:
            return save_dialog(machine.dialog, flow.transport.name, flow.remote, flow.name)
        return self._saved_invite() if machine.state <= State.CANCELLING else None

    def _saved_invite(self) -> dict[str, Any] | None:
        """Return the saved state of an unanswered INVITE; inbound and outbound sessions differ."""
        raise NotImplementedError

    # Called by the user agent and its transactions.

    def on_request(self, request: Request, transaction: ServerTransaction | None, flow: Flow) -> None:
        """Handle a request within the session."""
        self.flow = flow
        if flow.reliable or self._held is not None:
            self._hold(flow)
        self._perform(self._machine.receive_request(request, transaction))

    def on_ack(self, request: Request) -> None:
        """Handle the ACK of a 2xx."""
        self._perform(self._machine.receive_request(request, None))

    def on_cancel(self, cancel: Request, transaction: ServerTransaction) -> None:
        """Handle a CANCEL of one of the peer's requests."""
        self._perform(self._machine.receive_cancel(transaction, reason_value(cancel.headers)))

    def on_response(self, transaction: ClientTransaction, response: Response) -> None:
        """Handle a response to a request of this session."""
        self.flow = flow = transaction.flow
        if flow.reliable or self._held is not None:
            self._hold(flow)
        self._perform(self._machine.receive_response(transaction.purpose, response))

    def on_stray_answer(self, response: Response) -> None:
        """Handle a 2xx that came after its transaction had ended."""
        self._perform(self._machine.receive_response(Purpose.INVITE, response))

    def on_failure(self, transaction: ClientTransaction, failure: Failure) -> None:
        """Handle a request that got no final response."""
        reason = transaction.refusal or transaction.flow.transport_error
        self.on_unsent(transaction.purpose, failure, reason)

    def on_unsent(self, purpose: Purpose, failure: Failure, transport_error: str | None = None) -> None:
        """Handle a request that was not sent or not answered; `transport_error` gives the reason."""
        effects = self._machine.fail_request(purpose, failure)
        if transport_error is not None and failure is Failure.TRANSPORT:
            effects = [_explained(effect, transport_error) for effect in effects]
        self._perform(effects)

    def on_timer(self, event: int) -> None:
        """Handle a timer event."""
        self._timers.pop(event, None)
        self._perform(self._machine.take_timer(event))

    def on_started(self, transaction: ClientTransaction) -> None:
        """Store the client transaction of a request of this session."""
        self._transactions[transaction.purpose] = transaction

    def _hold(self, flow: Flow | None) -> None:
        """Hold a connection open for the session and release the previous one."""
        held = self._held
        if held is flow or (flow is not None and self._machine.state is State.ENDED):
            return  # Messages after the end need no connection.
        if held is not None:
            held.release()
        self._held = flow if flow is not None and flow.reliable else None
        if self._held is not None:
            self._held.hold()

    # Effects.

    def _command(self, effects: Sequence[Effect]) -> None:
        if effects:
            outer, self._in_command = self._in_command, True
            try:
                self._perform(effects)
            finally:
                self._in_command = outer

    def _perform(self, effects: Sequence[Effect]) -> None:
        """Perform the machine's effects; events go to the owner last, after all other effects."""
        performers = self._PERFORM
        events: list[Any] = []
        for effect in effects:
            perform = performers.get(type(effect))
            if perform is None:  # Events alone have none.
                events.append(effect)
            else:
                perform(self, effect)
        for event in events:
            if isinstance(event, Failed):
                event = self._with_targets(event)
            if self._in_command or self._events:
                self._queue(event)
            else:
                self._call(event)

    def _respond(self, effect: Respond) -> None:
        response, dialog = effect.response, self._machine.dialog
        if dialog is not None and dialog.session_id and response.headers.first("session-id") is None:
            response.headers.entries.append(("session-id", "Session-ID", dialog.session_id))
        self._host.layer.respond(effect.transaction, response)

    def _disarm(self, effect: Disarm) -> None:
        timer = self._timers.pop(effect.event, None)
        if timer is not None:
            self._host.layer.timer_queue.disarm(timer)

    def _arm(self, effect: Arm) -> None:
        layer = self._host.layer
        old = self._timers.get(effect.event)
        if old is not None:
            layer.timer_queue.disarm(old)
        self._timers[effect.event] = layer.arm(effect.delay_s, self.on_timer, effect.event)

    def _cancel(self, effect: CancelInvite) -> None:
        transaction = self._transactions.get(effect.purpose)
        if transaction is None:
            return
        layer = self._host.layer
        if effect.step is CancelStep.CANCEL:
            layer.cancel(transaction, effect.reason)
        else:
            layer.abandon(transaction, give_up=effect.step is CancelStep.GIVE_UP)

    def _end(self, _: Done) -> None:
        for timer in self._timers.values():
            self._host.layer.timer_queue.disarm(timer)
        self._timers.clear()
        reinvite = self._transactions.get(Purpose.REINVITE)
        if reinvite is not None:
            self._host.layer.expire(reinvite)
        self._transactions.clear()
        if self._held is not None:
            self._hold(None)
        if self._invite_transaction is not None:
            # The transaction outlives the session by 32 s and must not keep it in memory.
            self._invite_transaction.user = None
            self._invite_transaction = None
        self._host.forget(self)

    def _with_targets(self, failed: Failed) -> Failed:
        """Add the targets that were tried."""
        return failed

    def _queue(self, event: SessionEvent) -> None:
        if self._events is None:
            self._events = deque()
        self._events.append(event)
        self._host.layer.clock.call_soon(self._notify_queued)

    def _notify_queued(self) -> None:
        if self._events:
            self._call(self._events.popleft())

    def _call(self, event: SessionEvent) -> None:
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:
            # A defect of the application must not stop the transaction that reports to it.
            logger.exception("A session's event callback failed", extra={"call_id": self.call_id})


Session._PERFORM = {
    Respond: Session._respond,
    Arm: Session._arm,
    Disarm: Session._disarm,
    SendAck: lambda session, effect: session._host.router.acknowledge(
        effect.request, Destination.of(effect.next_hop), session.flow
    ),
    StartRequest: lambda session, effect: session._host.router.send_request(session, effect),
    CancelInvite: Session._cancel,
    Done: Session._end,
}


class InboundSession(Session):
    """A session that a peer's INVITE opened; respond with `progress`, `answer` or `reject`."""

    _machine: InboundInviteSession

    def __init__(self, host: "UserAgent", machine: InboundInviteSession, flow: Flow) -> None:
        super().__init__(host, machine, flow)
        request = machine.request
        self.request = request
        self.replaces: Session | None = None
        """Session that this one replaces (RFC 3891): it ends when this one is answered."""
        self.identities: tuple[Hashable, ...] = ()
        """Identities of the caller, proved or known by its source, as the screen names them."""
        self.source: Address = flow.source
        self.transport = flow.transport.name
        self.peer_names = flow.peer_names
        """Names proved by the caller's TLS certificate; empty without one."""

    @property
    def local(self) -> NameAddr:
        """The address that was called, with our tag."""
        return self.request.to.with_tag(self._machine.local_tag)

    @property
    def remote(self) -> NameAddr:
        """The caller's address, with its tag."""
        return self.request.from_

    def _saved_invite(self) -> dict[str, Any] | None:
        flow, dialog = self.flow, self._machine.dialog
        if flow is None or dialog is None:
            return None
        return save_invite(self.request, flow.transport.name, flow.remote, None, dialog.local)

    def want_timer(self, interval_s: int) -> None:
        """Request session refreshes if the caller supports session timers but asks for none (RFC 4028 9)."""
        self._machine.want_timer(interval_s)

    def progress(
        self,
        status: int = 180,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        *,
        reliable: bool | None = None,
    ) -> None:
        """
        Send a provisional response; a body with SDP announces early media.

        `reliable` sends it with 100rel where the caller supports that; None does so when it has a body. A
        caller that requires 100rel gets every response reliably. The first SDP that was sent reliably is the
        answer: later responses omit it.

        Raises:
            InvalidValue: The status is not one of 101 to 199, or a header field cannot be set.
        """
        _check_range(status, 101, 199)
        self._command(self._machine.progress(Reply(status, None, body, tuple(headers), reliable)))

    def answer(self, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the 200; `Confirmed` follows with the ACK."""
        self._command(self._machine.answer(Reply(200, None, body, tuple(headers))))
        replaced, self.replaces = self.replaces, None
        if replaced is not None and self._machine.state is not State.ENDED:
            replaced.hangup()

    def reject(self, status: int, reason: str | None = None, headers: Iterable[tuple[str, str]] = ()) -> None:
        """
        Refuse with a final response.

        Raises:
            InvalidValue: The status is not one of 300 to 699, or a header field cannot be set.
        """
        _check_range(status, 300, 699)
        self._command(self._machine.reject(Reply(status, reason, b"", tuple(headers))))

    def start(self, transaction: ServerTransaction) -> None:
        """Start the session; called by the user agent."""
        self._invite_transaction = transaction
        self._perform(self._machine.start(transaction))


def _check_range(status: int, low: int, high: int) -> None:
    if not low <= status <= high:
        raise InvalidValue(f"The status must be between {low} and {high} here, not {status}")


class OutboundSession(Session):
    """A session that our INVITE opened."""

    _machine: OutboundInviteSession

    def __init__(self, host: "UserAgent", machine: OutboundInviteSession, invite: OutboundInvite) -> None:
        super().__init__(host, machine, None)
        self.invite = invite
        self.failover: ServerFailover | None = None
        """Failover over the servers of a name; None when the INVITE goes to an address."""

    @property
    def local(self) -> NameAddr:
        """Our address, with our tag."""
        return self.invite.from_.with_tag(self._machine.local_tag)

    @property
    def remote(self) -> NameAddr:
        """The address called, with the tag of the side that answered."""
        dialog = self._machine.dialog
        tag = None if dialog is None else dialog.remote_tag
        return self.invite.to if tag is None else self.invite.to.with_tag(tag)

    @property
    def attempt(self) -> int | None:
        """
        Number of the INVITE sent last, which is what `saved` returns before the answer; None without.

        An INVITE that is sent again on another way has another.
        """
        transaction = self._transactions.get(Purpose.INVITE)
        return None if transaction is None else transaction.number

    def _saved_invite(self) -> dict[str, Any] | None:
        transaction = self._transactions.get(Purpose.INVITE)
        if transaction is None:
            return None  # The name it goes to is still being looked up.
        flow = transaction.flow
        return save_invite(transaction.request, flow.transport.name, flow.remote, flow.name)

    def start(self) -> None:
        """Start the session; called by the user agent."""
        self._command(self._machine.start())

    def await_response(self) -> None:
        """Restart the wait for a response after failover to another target; called by the failover."""
        self._perform(self._machine.await_response())

    def on_timer(self, event: int) -> None:
        """Handle a timer event; after silence the INVITE may go to another target."""
        if event == Event.TIMER_SILENCE and self.failover is not None:
            self._timers.pop(event, None)
            if self.failover.on_silence():
                return
        super().on_timer(event)

    def _with_targets(self, failed: Failed) -> Failed:
        failover = self.failover
        tried = _tried(self.invite.destination, failed) if failover is None else failover.tried
        return replace(failed, tried=tried)


def _tried(destination: Destination, event: Failed) -> tuple[Tried, ...]:
    """Return the target that a failed call to an IP address tried; empty if nothing was sent."""
    if event.cause == "cancelled" or event.cause == "resolve":
        return ()
    outcome: Outcome = event.cause
    if outcome == "response" and event.status == 503:
        outcome = "unavailable"
    transport = destination.transport or "udp"
    port = destination.port or default_port(transport)
    return (Tried(transport, destination.host, port, outcome, event.retry_after_s),)


def _explained(effect: Effect, transport_error: str) -> Effect:
    """Add the transport's error text to the `Failed` event of a session."""
    return replace(effect, reason=transport_error) if isinstance(effect, Failed) else effect
