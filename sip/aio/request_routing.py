"""Routing of outbound requests: to an address at once, to a name by its targets (RFC 3263)."""

from collections.abc import Callable, Sequence

from sip.aio.endpoint import Endpoint
from sip.aio.resolver import Resolver, canonical, is_address, is_private
from sip.aio.server_failover import Attempt, prefer
from sip.aio.session import OutboundSession, Session
from sip.aio.transaction_io import DEAF
from sip.aio.transport import Flow, settle_contact
from sip.effects import Failure, Purpose, SendAck, StartRequest
from sip.location.failover import TargetRests
from sip.location.rfc3263 import Target, Wanted, default_port
from sip.message.message import Request, Response
from sip.session.outbound_invite import Destination

__all__ = ["SendOn", "Ways"]

SendOn = Callable[[Flow | None, Failure], None]


class Ways:
    """
    Resolves the flow of each request of a user agent.

    A request to an IP address costs no look-up and no object of its own. A request to a name makes an
    `Attempt`, which changes to the next target after a failure.
    """

    def __init__(self, endpoint: Endpoint, resolver: Resolver) -> None:
        self.endpoint = endpoint
        self.resolver = resolver
        self.rests = TargetRests()

    # Called by the user agent.

    def with_flow(self, destination: Destination, near: Flow | None, send: SendOn) -> None:
        """Call `send` with the flow to the first target of a destination, at once unless it is looked up."""
        self.with_wanted(_wanted(destination), near, send)

    def send_request(self, session: Session, effect: StartRequest) -> None:
        """Resolve the flow and start the transaction; failures are reported to the session."""
        purpose = effect.purpose
        if effect.next_hop is not None:
            wanted, near = Wanted.of(effect.next_hop), session.flow
        elif not isinstance(session, OutboundSession):
            return
        else:
            wanted, near = _wanted(session.invite.destination), None
            attempt = session.attempt if purpose is Purpose.INVITE else None
            if attempt is not None and attempt.wanted == wanted:
                attempt.send_again(effect.request)
                return
            if attempt is not None:
                session.attempt = None  # A redirect changed the destination.
        known, flow = self._known_flow(wanted, near)
        if flow is not None:
            if effect.next_hop is None:
                settle_contact(effect.request, flow.transport)
            session.on_started(self.endpoint.start_client(effect.request, flow, session, purpose))
        elif known:
            # Never report from within the command that sends.
            self.endpoint.clock.call_soon(session.on_unsent, purpose, Failure.TRANSPORT)
        else:
            started = Attempt(self, session, effect, wanted)
            if purpose is Purpose.INVITE and isinstance(session, OutboundSession):
                session.attempt = started
            started.start()

    def send_ack(self, session: Session, effect: SendAck) -> None:
        """Resolve the flow and send the ACK; a lost ACK makes the peer repeat the 2xx."""
        self.acknowledge(effect.request, Wanted.of(effect.next_hop), session.flow)

    def acknowledge(self, ack: Request, wanted: Wanted, near: Flow | None) -> None:
        """Send the ACK of a 2xx."""

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is not None:
                self.endpoint.send_ack(ack, flow)

        self.with_wanted(wanted, near, send)

    def send_alone(self, request: Request, wanted: Wanted, near: Flow | None) -> None:
        """Send a request whose outcome is ignored."""

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is not None:
                self.endpoint.start_client(request, flow, DEAF, Purpose.FORK_BYE)

        self.with_wanted(wanted, near, send)

    def note_outcome(self, destination: Destination, flow: Flow, failure: Response | Failure | None) -> None:
        """
        Record the outcome of a request outside sessions, for the next request to the same name.

        After a 503 or no response the target backs off. An address has no other target.

        Source: RFC 3263 4.3.
        """
        if is_address(destination.host):
            return
        target = Target(
            flow.transport.name, *flow.remote, flow.name or destination.verify or destination.host
        )
        if failure is None:
            self.rests.answered(target)
        else:
            retry_after_s = failure.retry_after_s if isinstance(failure, Response) else None
            self.rests.failed(target, self.endpoint.clock.time(), retry_after_s)

    # Flows.

    def with_wanted(self, wanted: Wanted, near: Flow | None, send: SendOn) -> None:
        """Call `send` with the flow to a lookup target, at once unless it is looked up."""
        known, flow = self._known_flow(wanted, near)
        if known:
            send(flow, Failure.TRANSPORT)
            return
        now = self.endpoint.clock.time

        def found(targets: Sequence[Target]) -> None:
            ordered = prefer(self.rests.order(targets, now()), near)
            if not ordered and near is not None and not near.closed:
                send(near, Failure.RESOLVE)  # The name does not resolve; use the peer's last flow.
            elif not ordered:
                send(None, Failure.RESOLVE)
            else:
                send(self.flow_to(ordered[0], near), Failure.TRANSPORT)

        self.resolver.locate(wanted, found)

    def _known_flow(self, wanted: Wanted, near: Flow | None) -> tuple[bool, Flow | None]:
        """
        Return True if no look-up is needed, and the flow, None when there is none.

        The session's connection is reused for the same host, and for a private one, since a peer behind a
        NAT gives its private address.
        """
        host = canonical(wanted.host)
        if near is not None and near.reliable and not near.closed and (near.secure or not wanted.secure):
            if host == near.remote[0] or is_private(host) or host in near.peer_names:
                return True, near
        if not is_address(host):
            return False, None
        transport = "tls" if wanted.secure else wanted.transport or "udp"
        remote = (host, wanted.port or default_port(transport))
        if near is None:
            return True, self.endpoint.flow_to(transport, remote, None, wanted.verify or host)
        if near.remote == remote and near.transport.name == transport and not near.closed:
            return True, near
        if not wanted.secure and self.endpoint.transport_for(transport, host, near.transport) is None:
            # The peer names a transport or an IP version that we lack, but sent by one that we have.
            return True, None if near.closed else near
        # The peer's proved name also proves an address it gave us: few certificates are for addresses.
        return True, self.endpoint.flow_to(
            transport, remote, near.transport, wanted.verify or near.name or host
        )

    def flow_to(self, target: Target, near: Flow | None) -> Flow | None:
        """Return a flow to a target: `near` if it leads there."""
        remote = (target.host, target.port)
        if near is not None and near.remote == remote and not near.closed:
            if near.transport.name == target.transport:
                return near
        transport = None if near is None else near.transport
        return self.endpoint.flow_to(target.transport, remote, transport, target.name)


def _wanted(destination: Destination) -> Wanted:
    return Wanted(destination.host, destination.port, destination.transport, verify=destination.verify)
