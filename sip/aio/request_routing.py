"""Routing of outbound requests: to an address at once, to a name by its targets (RFC 3263)."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from sip.aio.resolver import Resolver, canonical, is_address, is_private
from sip.aio.session import OutboundSession, Session
from sip.aio.transaction_io import ClientTransaction
from sip.aio.transaction_layer import TransactionLayer
from sip.aio.transport import Flow, Transport
from sip.effects import Failure, Purpose, StartRequest
from sip.location.failover import Failover, Outcome, ServerBackoff, Tried
from sip.location.rfc3263 import Destination, Target, default_port
from sip.message.message import Request, Response
from sip.session.dialog import Dialog
from sip.session.model import State

SendOn = Callable[[Flow | None, Failure], None]


class RequestRouter:
    """
    Resolves the flow of each request of a user agent.

    A request to an IP address costs no look-up and no object of its own. A request to a name makes an
    `ServerFailover`, which changes to the next target after a failure.
    """

    def __init__(self, layer: TransactionLayer, resolver: Resolver) -> None:
        self.layer = layer
        self.resolver = resolver
        self.backoff = ServerBackoff()

    # Called by sessions, registrations and the user agent.

    def send_request(self, session: Session, effect: StartRequest) -> None:
        """Resolve the flow and start the transaction; failures are reported to the session."""
        purpose = effect.purpose
        if effect.next_hop is not None:
            destination, current_flow = Destination.of(effect.next_hop), session.flow
        elif not isinstance(session, OutboundSession):
            return
        else:
            destination, current_flow = session.invite.destination, None
            failover = session.failover if purpose is Purpose.INVITE else None
            if failover is not None and failover.destination == destination:
                failover.send_again(effect.request)
                return
            if failover is not None:
                session.failover = None  # A redirect changed the destination.
        known, flow = self._known_flow(destination, current_flow)
        if flow is not None:
            if effect.next_hop is None:
                _settle_contact(effect.request, flow.transport)
            session.on_started(self.layer.start_client(effect.request, flow, session, purpose))
        elif known:
            # Never report from within the command that sends.
            self.layer.clock.call_soon(session.on_unsent, purpose, Failure.TRANSPORT)
        else:
            started = ServerFailover(self, session, effect, destination)
            if purpose is Purpose.INVITE and isinstance(session, OutboundSession):
                session.failover = started
            started.start()

    def acknowledge(self, ack: Request, destination: Destination, current_flow: Flow | None) -> None:
        """Resolve the flow and send the ACK of a 2xx; a lost ACK makes the peer repeat the 2xx."""
        known, flow = self._known_flow(destination, current_flow)
        if flow is not None:
            self.layer.send_ack(ack, flow)
        elif not known:
            self._look_up(destination, current_flow, partial(self._send_ack, ack))

    def _send_ack(self, ack: Request, flow: Flow | None, _: Failure) -> None:
        if flow is not None:
            self.layer.send_ack(ack, flow)

    def send_alone(self, request: Request, destination: Destination, current_flow: Flow | None) -> None:
        """Send a request whose outcome is ignored."""

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is not None:
                self.layer.start_client(request, flow, None, Purpose.FORK_BYE)

        self.resolve_flow(destination, current_flow, send)

    # Flows.

    def resolve_flow(self, destination: Destination, current_flow: Flow | None, send: SendOn) -> None:
        """Call `send` with the flow to the first target of a destination, at once unless it is looked up."""
        known, flow = self._known_flow(destination, current_flow)
        if known:
            send(flow, Failure.TRANSPORT)
        else:
            self._look_up(destination, current_flow, send)

    def _look_up(self, destination: Destination, current_flow: Flow | None, send: SendOn) -> None:
        now = self.layer.clock.time

        def found(targets: Sequence[Target]) -> None:
            ordered = prefer(self.backoff.order(targets, now()), current_flow)
            if not ordered and current_flow is not None and not current_flow.closed:
                send(current_flow, Failure.RESOLVE)  # The name does not resolve; use the peer's last flow.
            elif not ordered:
                send(None, Failure.RESOLVE)
            else:
                send(self.flow_to(ordered[0], current_flow), Failure.TRANSPORT)

        self.resolver.locate(destination, found)

    def _known_flow(self, destination: Destination, current_flow: Flow | None) -> tuple[bool, Flow | None]:
        """
        Return True if no look-up is needed, and the flow, None when there is none.

        The session's connection is reused for the same host, and for a private one, since a peer behind a
        NAT gives its private address.
        """
        host = canonical(destination.host)
        if (
            current_flow is not None
            and current_flow.reliable
            and not current_flow.closed
            and (current_flow.secure or not destination.secure)
        ):
            if host == current_flow.remote[0] or is_private(host) or host in current_flow.peer_names:
                return True, current_flow
        if not is_address(host):
            return False, None
        transport = "tls" if destination.secure else destination.transport or "udp"
        port = destination.port or default_port(transport)
        if current_flow is not None and _leads_to(current_flow, transport, host, port):
            return True, current_flow
        name = destination.verify
        if current_flow is not None:
            lacks = self.layer.transport_for(transport, host, current_flow.transport) is None
            if lacks and not destination.secure:
                # The peer names a transport or an IP version that we lack, but sent by one that we have.
                return True, None if current_flow.closed else current_flow
            # The peer's proved name also proves an address it gave us: few certificates are for addresses.
            name = name or current_flow.name
        return True, self.flow_to(Target(transport, host, port, name or host), current_flow)

    def flow_to(self, target: Target, current_flow: Flow | None) -> Flow | None:
        """Return a flow to a target: `current_flow` if it leads there."""
        if current_flow is not None and _leads_to(current_flow, target.transport, target.host, target.port):
            return current_flow
        transport = None if current_flow is None else current_flow.transport
        return self.layer.flow_to(target.transport, (target.host, target.port), transport, target.name)


def _leads_to(flow: Flow, transport: str, host: str, port: int) -> bool:
    return flow.remote == (host, port) and flow.transport.name == transport and not flow.closed


logger = logging.getLogger(__name__)

BYE_SILENCE_S = 4.0
"""Time without a response after which a BYE is also sent to the next target, if there is one."""
MAX_FORKED_ANSWERS = 16
"""Late answers to one request that get a BYE; others time out at the peer."""


class ServerFailover:
    """
    One request to a name: the user of its transactions, one for each target tried.

    The session receives the responses of the current target, and the last failure. A target that was given
    up gets an ACK and a BYE if it answers an INVITE late, and a CANCEL if it rings late.
    """

    def __init__(
        self, router: "RequestRouter", session: Session, effect: StartRequest, destination: Destination
    ) -> None:
        self._router = router
        self._session = session
        self._request = effect.request
        self._purpose = effect.purpose
        self.destination = destination
        self._current_flow = session.flow if effect.next_hop is not None else None
        self._failover: Failover | None = None
        self._transaction: ClientTransaction | None = None
        self._timer: int | None = None
        self._done = False
        self._late: dict[str, Request] = {}
        self._cancelled: set[ClientTransaction] = set()

    @property
    def tried(self) -> tuple[Tried, ...]:
        """Targets that were tried, with their outcome."""
        return () if self._failover is None else tuple(self._failover.tried)

    @property
    def _invites(self) -> bool:
        return self._purpose is Purpose.INVITE

    def start(self) -> None:
        """Look up the name and send."""
        self._router.resolver.locate(self.destination, self._found)

    def send_again(self, request: Request) -> None:
        """Send the changed request, with credentials for example, to the target that asked for it."""
        self._request = request
        self._done = False
        transaction = self._transaction
        assert transaction is not None
        self._send(transaction.flow)

    def on_silence(self) -> bool:
        """
        Try the next target after no response to the INVITE in time.

        Returns False if the session must handle the silence itself.
        """
        failover, transaction, session = self._failover, self._transaction, self._session
        if failover is None:
            self._await_response()  # The name is still being looked up; look-ups are short.
            return True
        if transaction is None or session.state >= State.CANCELLING:
            return False
        self._router.layer.abandon(transaction, give_up=False)
        if self._move("timeout"):
            return True
        if session.state is State.SETUP:
            return False
        # An earlier target sent a 100, so the session's own timer for silence has ended.
        session.on_unsent(self._purpose, Failure.TIMEOUT)
        return True

    # As the user of transactions.

    def on_response(self, transaction: ClientTransaction, response: Response) -> None:
        """Handle a response of one of the targets."""
        status = response.status
        if transaction is not self._transaction:
            self._receive_late(transaction, response)
            return
        failover = self._failover
        if self._done and not self._invites:
            return
        if failover is not None and failover.current is not None:
            if status == 503 and self._move("unavailable", response.retry_after_s):
                return
            self._note(failover, response)
        if status >= 200:
            self._finish()
        self._session.on_response(transaction, response)

    def on_failure(self, transaction: ClientTransaction, failure: Failure) -> None:
        """Handle a target that gave no final response."""
        if transaction is not self._transaction or self._done:
            return
        outcome: Outcome = "transport" if failure is Failure.TRANSPORT else "timeout"
        if not self._move(outcome):
            self._finish()
            self._session.on_failure(transaction, failure)

    def _on_bye_silence(self, _: int) -> None:
        """Send an unanswered BYE to the next target, which may know the dialog too."""
        self._timer = None
        if not self._done:
            self._move("timeout")

    # Targets.

    def _found(self, targets: Sequence[Target]) -> None:
        router, session = self._router, self._session
        now = router.layer.clock.time()
        self._failover = Failover(prefer(router.backoff.order(targets, now), self._current_flow), now)
        if self._invites and session.state >= State.CANCELLING:
            session.on_unsent(self._purpose, Failure.RESOLVE)  # Hung up while its name was looked up.
        elif self._try_next():
            return
        elif not targets and self._current_flow is not None and not self._current_flow.closed:
            self._send(self._current_flow)  # The name does not resolve; use the peer's last flow.
        else:
            failure = Failure.TRANSPORT if targets else Failure.RESOLVE
            router.layer.clock.call_soon(session.on_unsent, self._purpose, failure)

    def _try_next(self) -> bool:
        failover, router = self._failover, self._router
        assert failover is not None
        while (target := failover.next(router.layer.clock.time())) is not None:
            flow = router.flow_to(target, self._current_flow)
            if flow is not None:
                self._send(flow)
                return True
            failover.note("transport")
        return False

    def _move(self, outcome: Outcome, retry_after_s: int | None = None) -> bool:
        """Record the failure of the current target and try the next; False if none is left or we hung up."""
        failover, router = self._failover, self._router
        if failover is None:
            return False
        target = failover.current
        if target is not None:
            router.backoff.failed(target, router.layer.clock.time(), retry_after_s)
        failover.note(outcome, retry_after_s)
        if target is not None:
            logger.info(
                "A server of %s failed a request: %s",
                self.destination.host,
                failover.tried[-1],
                extra={"call_id": self._session.call_id},
            )
        if self._invites and self._session.state >= State.CANCELLING:
            return False
        return self._try_next()

    def _note(self, failover: Failover, response: Response) -> None:
        status, target = response.status, failover.current
        if target is not None and status != 503:
            self._router.backoff.answered(target)
        if status in (401, 407):
            return  # The request is sent again with credentials, and may fail then.
        failover.receive(status)
        if status >= 300:
            failover.note("response", response.retry_after_s)

    def _send(self, flow: Flow) -> None:
        request, router = self._request, self._router
        if request.headers.first("via") is not None:
            headers = request.headers.copy()
            headers.remove("Via")
            request = Request(request.method, request.uri, headers, request.body)
        if self._invites:
            # Requests within the dialog go to this Contact, which the machine reads from its own copy.
            _settle_contact(request, flow.transport)
            _settle_contact(self._request, flow.transport)
        transaction = self._transaction = router.layer.start_client(request, flow, self, self._purpose)
        session = self._session
        session.on_started(transaction)
        if self._invites:
            self._await_response()
        elif self._purpose is Purpose.BYE:
            self._timer = router.layer.arm(BYE_SILENCE_S, self._on_bye_silence)

    def _await_response(self) -> None:
        if isinstance(self._session, OutboundSession):
            self._session.await_response()

    def _finish(self) -> None:
        self._done = True
        timer, self._timer = self._timer, None
        if timer is not None:
            self._router.layer.timer_queue.disarm(timer)

    # Targets that were given up.

    def _receive_late(self, transaction: ClientTransaction, response: Response) -> None:
        status = response.status
        if not self._invites:
            if status >= 200 and status != 503 and not self._done:
                self._finish()
                self._session.on_response(transaction, response)
        elif status < 200:
            self._cancel_late(transaction)
        elif status < 300:
            self._end_late(transaction, response)

    def _cancel_late(self, transaction: ClientTransaction) -> None:
        if transaction in self._cancelled:
            return
        self._cancelled.add(transaction)
        self._router.layer.cancel(transaction)

    def _end_late(self, transaction: ClientTransaction, response: Response) -> None:
        """Send ACK and BYE to a target that answered after it was given up (RFC 3261 13.2.2.4)."""
        tag = response.to.tag or ""
        router, invite = self._router, transaction.request
        dialog = Dialog.from_response(invite, response)
        destination = Destination.of(dialog.next_hop())
        ack = self._late.get(tag)
        if ack is None:
            if len(self._late) >= MAX_FORKED_ANSWERS:
                return
            ack = self._late[tag] = dialog.request("ACK", cseq=invite.cseq.number)
            router.acknowledge(ack, destination, transaction.flow)
            bye = dialog.request("BYE")
            router.send_alone(bye, destination, transaction.flow)
        else:
            router.acknowledge(ack, destination, transaction.flow)


def prefer(targets: list[Target], current_flow: Flow | None) -> list[Target]:
    """Sort the target of the peer's last flow first, so that a dialog stays on its server."""
    if current_flow is None:
        return targets
    place = (current_flow.transport.name, *current_flow.remote)
    return sorted(targets, key=lambda item: (item.transport, item.host, item.port) != place)


def _settle_contact(request: Request, transport: Transport) -> None:
    """Set the Contact of a request to its actual transport: a name may resolve to the other IP version."""
    contact = transport.secure_contact if request.uri.scheme == "sips" else transport.contact
    if request.headers.first("contact") != contact:
        request.headers.set("Contact", contact)
