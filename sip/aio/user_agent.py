"""The user agent: sessions, the requests that open them, and requests answered outside a session."""

import asyncio
import logging
import os
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from sip.aio.guard import Admission, Guard
from sip.aio.handover import SocketSharing
from sip.aio.icmp import take_error
from sip.aio.probes import Probes
from sip.aio.recovery import OnOver, RecoveredDialogs
from sip.aio.registrations import OnRegistration, RegistrationIO
from sip.aio.request_routing import RequestRouter
from sip.aio.resolver import Resolver, is_address
from sip.aio.session import InboundSession, OnEvent, OutboundSession, Session
from sip.aio.settings import Screen, Screened, ScreenVerdict, Source, UserAgentSettings
from sip.aio.tcp import TcpTransport
from sip.aio.tls import TlsContexts
from sip.aio.trace import OnMessage
from sip.aio.transaction_io import Key, ServerTransaction
from sip.aio.transaction_layer import TransactionLayer, make_token
from sip.aio.transport import Clock, Flow, Listen, Receive, Transport
from sip.aio.udp import UdpTransport
from sip.auth.digest import Credentials
from sip.auth.server import DigestServer, InboundAuthenticator
from sip.errors import ParseError
from sip.location.rfc3263 import Destination, SupportedFamilies
from sip.message.fields import NameAddr
from sip.message.message import Request, Response, reply
from sip.message.responses import ACCEPT, ALLOW, refusal, stateless_tag, supported_fields
from sip.recovery import Saved, restore
from sip.registration import OutboundRegistration
from sip.session.inbound import InboundInviteSession
from sip.session.model import OutboundInvite, State
from sip.session.outbound import OutboundInviteSession
from sip.session.replaces import Replaces, reject_status, replaces_of

logger = logging.getLogger(__name__)


_UNANSWERED = (State.SETUP, State.EARLY, State.CANCELLING)

OpenTransport = Callable[[Listen, Receive], Transport]


class UserAgent:
    """
    A SIP user agent on one or more local addresses.

    `invite` sends an INVITE. `on_invite` is called with each inbound session and must keep, answer or
    reject it. `on_message` receives every message on the wire. A `guard` filters messages by source,
    `has_room` limits new calls. Setting `draining` refuses them all.
    """

    def __init__(  # noqa: PLR0913 - each is a part that the application or a test provides.
        self,
        listens: Sequence[Listen],
        settings: UserAgentSettings | None = None,
        *,
        on_invite: Callable[[InboundSession], None],
        on_message: OnMessage | None = None,
        screen: Screen | None = None,
        guard: Guard | None = None,
        has_room: Callable[[], bool] | None = None,
        clock: Clock | None = None,
        open_transport: OpenTransport | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self.settings = settings or UserAgentSettings()
        self.on_invite = on_invite
        self.guard = guard
        self.draining = False
        self.addresses: list[Listen] = []
        self._listens = list(listens)
        self.on_message = on_message
        self._clock = clock
        self._open_transport = open_transport or self._open
        self._has_tls = any(listen.transport == "tls" for listen in self._listens)
        self._contexts: TlsContexts | None = None
        self._secret = os.urandom(32)
        self.admission = Admission(self.settings, self._secret, has_room, guard)
        digest = DigestServer(self.settings.digest, os.urandom(32), make_token)
        self._screen = screen
        self._authenticator = InboundAuthenticator(digest, self._note_credentials)
        self._resolver = resolver or Resolver(self.settings.name_servers)
        self.probes = Probes(self)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._no_sessions = asyncio.Event()
        self._no_sessions.set()
        self._invites: dict[Key, int] = {}
        """Transaction of each INVITE that opened a session, by what its copies have in common."""
        self._registrations: set[RegistrationIO] = set()
        self.sharing = SocketSharing(self._sessions, self._invites)
        """State shared with another process on the same addresses during a handover."""
        self.layer: TransactionLayer
        self.router: RequestRouter
        self._recovered: RecoveredDialogs

    # Life.

    async def start(self) -> None:
        """
        Bind all addresses.

        Raises:
            OSError: One of them cannot be bound; none is kept then.
            ValueError: One is a wildcard without an address to advertise, or of an unknown transport, or is
                for TLS and the certificate cannot be used.
        """
        settings = self.settings
        if settings.tls is not None and self._has_tls:
            self._contexts = TlsContexts(settings.tls)
        for listen in self._listens:
            if listen.host in ("0.0.0.0", "::") and listen.advertise is None:
                raise ValueError(f"Listening on {listen.host} needs an address to advertise")
        clock = self._clock or asyncio.get_running_loop()
        self.layer = TransactionLayer(self, clock, self.on_message)
        self.router = RequestRouter(self.layer, self._resolver)
        self._recovered = RecoveredDialogs(
            self.layer, self.router, lambda invite: _merge_key(invite) in self._invites
        )
        if self.guard is not None:
            self.guard.start(clock)
        self.sharing.start(self.layer, self._recovered, self.guard)
        try:
            for listen in self._listens:
                transport = self._open_transport(listen, self.layer.receive)
                await transport.open(self.sharing.inherited(listen))
                self.layer.transports.append(transport)
        except (OSError, ValueError):
            self._close_layer()
            raise
        self.addresses = [transport.address for transport in self.layer.transports]
        self._resolver.families = _families_of(self.addresses)

    async def wait_without_sessions(self, timeout_s: float) -> bool:
        """Wait until no session is left, not even for the end of its BYE or CANCEL; False after the time."""
        try:
            await asyncio.wait_for(self._no_sessions.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Free all addresses; sessions that are still active are dropped without a BYE."""
        self._resolver.close()
        self._close_layer()
        for run in list(self._registrations):
            run.abandon()
        self._registrations.clear()
        self._sessions.clear()
        self._no_sessions.set()
        self._invites.clear()

    def _close_layer(self) -> None:
        self.layer.close()
        if self.guard is not None:
            self.guard.close()

    def _open(self, listen: Listen, receive: Receive) -> Transport:
        if listen.transport == "udp":
            layer, guard = self.layer, self.guard
            waits, protection = (None, None) if guard is None else (guard.note_wait, guard.protection)
            on_error = partial(take_error, layer)
            return UdpTransport(listen, layer.receive_admitted, waits, layer.watchdog, protection, on_error)
        streams, limits, guard = self.settings.streams, self.settings.limits, self.guard
        if listen.transport == "tcp":
            return TcpTransport(listen, receive, streams, limits, None, guard)
        if listen.transport == "tls":
            if self._contexts is None:
                raise ValueError(f"Listening on tls:{listen.host} needs a certificate and its key")
            return TcpTransport(listen, receive, streams, limits, self._contexts, guard)
        raise ValueError(f"Unknown SIP transport {listen.transport!r}; use udp, tcp or tls")

    # Counts that reveal leaks.

    @property
    def sessions(self) -> int:
        """Sessions in the tables, including those that only wait for the end of their BYE or CANCEL."""
        return len(self._sessions)

    @property
    def transactions(self) -> int:
        """Transactions, including those that only absorb retransmissions (32 s each over UDP)."""
        return self.layer.transactions

    @property
    def timers(self) -> int:
        """Running timers."""
        return self.layer.running_timers

    # Outbound requests.

    def invite(self, invite: OutboundInvite, on_event: OnEvent) -> OutboundSession:
        """Send an INVITE. Every outcome, including failure to send, is reported to `on_event`."""
        contact = self.contact(invite.destination, secure=invite.uri.scheme == "sips")
        call_id = invite.call_id or make_token()
        machine = OutboundInviteSession(invite, call_id, contact, self.settings)
        session = OutboundSession(self, machine, invite)
        session.on_event = on_event
        self._enter(session)
        session.start()
        return session

    def register(
        self, registration: OutboundRegistration, on_change: OnRegistration, after_s: float = 0.0
    ) -> RegistrationIO:
        """Keep a registration at a registrar until its `stop`; `on_change` receives each change."""
        contact = registration.contact
        if contact is None:
            contact = NameAddr.parse(self.contact(registration.destination)).uri
            contact = contact.with_(user=registration.contact_user)
        run = RegistrationIO(self, registration, contact, on_change)
        self._registrations.add(run)
        run.start(after_s)
        return run

    def terminate_recovered(
        self, saved: Saved, reason: str, credentials: Credentials | None, on_over: OnOver
    ) -> None:
        """
        End a session of a previous process from the state that `Session.saved` returned, with a Reason.

        Many sessions are ended at a rate that leaves room for new calls. `credentials` answer a challenge
        of the peer; `on_over` is called when the session is over.

        Raises:
            ParseError: `saved` is no saved session.
        """
        self._recovered.end(restore(saved), reason, credentials, on_over)

    def forget_registration(self, run: RegistrationIO) -> None:
        """Remove an ended registration from the table."""
        self._registrations.discard(run)

    @property
    def connections(self) -> dict[str, int]:
        """Established and opening connections, by transport."""
        counts: dict[str, int] = {}
        for transport in self.layer.transports:
            if transport.reliable:
                counts[transport.name] = counts.get(transport.name, 0) + transport.connection_count
        return counts

    @property
    def receive_buffers(self) -> dict[str, tuple[int, int, int]]:
        """Per UDP address: unread bytes, the limit of unread bytes, and datagrams lost beyond it."""
        return {
            f"{transport.address.host}:{transport.address.port}": transport.receive_buffer()
            for transport in self.layer.transports
            if isinstance(transport, UdpTransport)
        }

    def _transport(self, destination: Destination) -> Transport | None:
        """Return the likely transport to a destination; a name may resolve to the other IP version."""
        name, host = destination.transport, destination.host
        if name is not None and is_address(host):
            return self.layer.transport_for(name, host)
        return next((found for found in self.layer.transports if name in (None, found.name)), None)

    def local_host(self, destination: Destination) -> str:
        """Return our address as a destination must write it."""
        transport = self._transport(destination)
        return "localhost" if transport is None else (transport.address.advertise or transport.address.host)

    def contact(self, destination: Destination, *, secure: bool = False) -> str:
        """Return the Contact of our requests to a destination."""
        transport = self._transport(destination)
        if transport is None:
            return "<sip:localhost>"
        return transport.secure_contact if secure else transport.contact

    # Called by sessions.

    def forget(self, session: Session) -> None:
        """Remove a session from the tables."""
        self._sessions.pop(session.key, None)
        if not self._sessions:
            self._no_sessions.set()

    def _enter(self, session: Session) -> None:
        self._sessions[session.key] = session
        self._no_sessions.clear()

    # Inbound messages.

    def on_ack(self, request: Request) -> None:
        """Handle the ACK of a 2xx."""
        session = self._session_of(request)
        if session is not None:
            session.on_ack(request)

    def on_stray_answer(self, response: Response, flow: Flow) -> None:
        """
        Handle a 2xx whose INVITE transaction has ended: its session acknowledges it again.

        A session that still waits for its answer has a transaction for it. A response without the branch
        of that transaction is forged, or comes from a target that was given up long ago.
        """
        session = self._sessions.get((response.call_id, response.from_.tag or ""))
        if session is not None and session.state not in _UNANSWERED:
            session.on_stray_answer(response)

    def on_request(self, request: Request, flow: Flow) -> None:
        """Handle a request that is neither an ACK nor a CANCEL nor a retransmission."""
        to_tag = request.to.tag
        new_call = request.method == "INVITE" and to_tag is None
        # Copies of one request that arrive by different paths share this key (RFC 3261 8.2.2.2).
        merged: Key = _merge_key(request) if new_call else ()
        # An INVITE that came by another path before gets only a 482, whoever sent it.
        identities = self._identify(request, flow) if new_call and merged not in self._invites else ()
        if identities is None:
            return
        refused = refusal(request, self.settings.min_se_s, flow.transport.name, has_tls=self._has_tls)
        if refused is not None:
            self._respond_statelessly(refused, request, flow)
        elif to_tag is not None:
            self._receive_within(request, flow)
        elif request.method == "INVITE":
            self._receive_invite(request, flow, merged, identities)
        elif request.method == "OPTIONS":
            self._respond_statelessly(self._capabilities(request), request, flow)
        else:
            self._respond_statelessly(reply(request, 481), request, flow)

    def _identify(self, request: Request, flow: Flow) -> tuple[Hashable, ...] | None:
        """Identify the caller before other checks, so that unknown sources learn nothing; None if refused."""
        admitted = () if self._screen is None else self._screened(self._screen, request, flow)
        if isinstance(admitted, Response):
            self._respond_statelessly(admitted, request, flow)
            return None
        if admitted is not None:
            self.layer.trust(flow)
        return admitted

    def _screened(
        self, screen: Screen, request: Request, flow: Flow
    ) -> tuple[Hashable, ...] | Response | None:
        """Return the identities of an admitted caller, the response of a refusal, or None for no response."""
        source = Source.of(request, flow)
        try:
            screened = screen(source, request)
            if isinstance(screened, ScreenVerdict):
                screened = Screened(screened)
            if screened.verdict is ScreenVerdict.CHALLENGE:
                now = self.layer.clock.time()
                return self._authenticator.authenticate(request, source.host, screened.secrets_of, now)
        except Exception:  # A defect of the application must not admit unknown sources or stop us.
            logger.exception("The screen failed; the INVITE is dropped", extra={"call_id": request.call_id})
            return None
        if screened.verdict is ScreenVerdict.FORBID:
            return reply(request, 403)
        return screened.identities if screened.verdict is ScreenVerdict.ACCEPT else None

    def _note_credentials(self, host: str, right: bool) -> None:
        if not right:
            logger.warning("wrong password or unknown user name from %s", host)
        if self.guard is not None:
            protection = self.guard.protection
            note = protection.on_auth_success if right else protection.on_auth_failure
            note(host, self.layer.clock.time())

    def session_of(self, replaces: Replaces) -> Session | None:
        """Return the session of a dialog that a Replaces header names, or None."""
        session = self._sessions.get((replaces.call_id, replaces.to_tag))
        return session if session is not None and session.is_with(replaces.from_tag) else None

    def _session_of(self, request: Request) -> Session | None:
        return self._sessions.get((request.call_id, request.to.tag or ""))

    def _receive_within(self, request: Request, flow: Flow) -> None:
        session = self._session_of(request)
        if session is None:
            status = 200 if self._recovered.ends(request) else 481
            self._respond_statelessly(reply(request, status), request, flow)
            return
        self.layer.trust(flow)
        # Active calls must be able to end when tables are full, but no single peer may fill the tables.
        full = request.method != "BYE" and self.transactions >= self.settings.max_transactions
        if full or len(session.requests) >= self.settings.max_requests_within:
            self._respond_statelessly(self.admission.overloaded(request), request, flow)
            return
        transaction = self.layer.start_server(request, flow)
        session.requests.add(transaction.number)
        # It may outlive the session by 32 s.
        transaction.on_end = partial(session.requests.discard, transaction.number)
        if request.method == "INVITE":
            transaction.user = session  # A CANCEL finds it by this.
        session.on_request(request, transaction, flow)

    def on_cancel(self, request: Request, flow: Flow, transaction: ServerTransaction | None) -> None:
        """
        Answer a CANCEL and pass it to the session of its INVITE, whose transaction is given.

        Source: RFC 3261 9.2.
        """
        if transaction is None:
            self._respond_statelessly(reply(request, 481), request, flow)
            return
        session = transaction.user
        self.layer.trust(flow)
        self._respond_statelessly(reply(request, 200, to_tag=transaction.tag), request, flow)
        if isinstance(session, Session):
            session.on_cancel(request, transaction)

    def _receive_invite(
        self, request: Request, flow: Flow, merged: Key, identities: tuple[Hashable, ...]
    ) -> None:
        """Accept or refuse a new INVITE; a refused one leaves no state."""
        settings = self.settings
        full = len(self._sessions) >= settings.max_sessions or self.transactions >= settings.max_transactions
        if self.draining or self.admission.refuses(request, self.layer.clock.time(), full=full):
            self._respond_statelessly(self.admission.overloaded(request), request, flow)
        elif merged in self._invites:
            self._respond_statelessly(reply(request, 482), request, flow)
        else:
            replaced = None if request.headers.first("replaces") is None else self._replaced_by(request)
            if isinstance(replaced, Response):
                self._respond_statelessly(replaced, request, flow)
                return
            session = self._open_session(request, flow, merged)
            if session is not None:
                session.identities, session.replaces = identities, replaced
                self._announce(session)

    def _replaced_by(self, request: Request) -> Session | Response:
        """
        Return the session that an INVITE with Replaces replaces, or the response that refuses it.

        The application decides whether the sender may replace it. A session whose peer may not transfer is
        never replaced.

        Source: RFC 3891 3.
        """
        try:
            named = replaces_of(request)
        except ParseError as error:
            return reply(request, 400, error.reason)
        session = self.session_of(named)
        if session is None:
            return reply(request, 481)
        if not session.allows_refer:
            return reply(request, 603)
        status = reject_status(named, session.state, called_by_us=isinstance(session, OutboundSession))
        return session if status is None else reply(request, status)

    def _open_session(self, request: Request, flow: Flow, merged: Key) -> InboundSession | None:
        tag = make_token()
        secure = request.uri.scheme == "sips"
        contact = flow.transport.secure_contact if secure else flow.transport.contact
        try:
            # The dialog is created before the transaction, so that a bad Contact leaves no state.
            machine = InboundInviteSession(request, tag, contact, self.settings)
        except ParseError as error:
            self._respond_statelessly(reply(request, 400, error.reason), request, flow)
            return None
        transaction = self.layer.start_server(request, flow)
        session = InboundSession(self, machine, flow)
        transaction.user, transaction.tag = session, tag
        self._invites[merged] = transaction.number
        transaction.on_end = partial(self._invites.pop, merged, None)
        self._enter(session)
        session.start(transaction)
        return session

    def _announce(self, session: InboundSession) -> None:
        try:
            self.on_invite(session)
        except Exception:
            # The caller gets a final response also when the application fails.
            logger.exception("The callback for new sessions failed", extra={"call_id": session.call_id})
            session.reject(500)

    # Stateless responses.

    def _respond_statelessly(self, response: Response, request: Request, flow: Flow) -> None:
        """Send a final response that is the same for every retransmission of the request."""
        if self.guard is not None:
            allowed = self.guard.answer_for(response, request, flow)
            if allowed is None:
                return
            response = allowed
        if response.to.tag is None:
            tag = stateless_tag(self._secret, request)
            response.headers.set("To", f"{response.headers.get('To')};tag={tag}")
        self.layer.send_response(response, flow)

    def _capabilities(self, request: Request) -> Response:
        """
        Build the response to an OPTIONS, with the status an INVITE would get.

        Source: RFC 3261 11.2.
        """
        if self.draining:
            return self.admission.overloaded(request)
        own = ("Server", self.settings.product)
        headers = (("Allow", ALLOW), ("Accept", ACCEPT), *supported_fields(), own)
        return reply(request, 200, headers=headers)


def _merge_key(request: Request) -> Key:
    """Key that the copies of an INVITE by different paths have in common (RFC 3261 8.2.2.2)."""
    return request.call_id, request.from_.tag, request.cseq.number


def _families_of(addresses: Sequence[Listen]) -> SupportedFamilies:
    """Return the IP versions each transport can send to; the first listener's version is preferred."""
    families: dict[str, tuple[int, ...]] = {}
    for listen in addresses:
        version = 6 if ":" in listen.host else 4
        known = families.get(listen.transport, ())
        if version not in known:
            families[listen.transport] = (*known, version)
    return families
