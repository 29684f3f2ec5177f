"""The user agent: sessions, the requests that make them, and all that is answered without one."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

from sip.aio.endpoint import SIP_PORT, Endpoint, TraceRecord
from sip.aio.guard import Guard
from sip.aio.replacing import find_replaced
from sip.aio.resolver import Resolver, is_address, is_private
from sip.aio.runs import ClientRun
from sip.aio.session import InboundSession, OnEvent, OutboundSession, Session
from sip.aio.settings import Screen, ScreenVerdict, UserAgentSettings
from sip.aio.stream import TcpTransport
from sip.aio.tokens import Tokens
from sip.aio.transport import Clock, Flow, Listen, Receive, Transport
from sip.aio.udp import UdpTransport
from sip.effects import Failure, Purpose, SendAck, StartRequest
from sip.errors import ParseError
from sip.fields import NameAddr
from sip.headers import Headers
from sip.inbound import InboundInviteSession
from sip.invite import Destination, OutboundInvite
from sip.message import Request, Response
from sip.outbound import OutboundInviteSession
from sip.replaces import Replaces
from sip.responses import ACCEPT, ALLOW, refusal, reply, stateless_tag, supported_fields
from sip.session_model import SessionSettings, State
from sip.transactions.table import Key, merge_key, server_key
from sip.uri import SipUri

__all__ = ["UserAgent"]

logger = logging.getLogger(__name__)


OpenTransport = Callable[[Listen, Receive], Transport]


class UserAgent:
    """
    A SIP user agent on one or more local addresses.

    `invite` calls out, `on_invite` is called with each call that comes in and must keep, answer or
    reject it. `on_message` sees every message on the wire. A `guard`, set before the start,
    decides who is heard at all. Setting `draining` refuses new calls.
    """

    def __init__(
        self,
        listens: Sequence[Listen],
        settings: UserAgentSettings | None = None,
        *,
        on_invite: Callable[[InboundSession], None],
        on_message: Callable[[TraceRecord], None] | None = None,
        screen: Screen | None = None,
        clock: Clock | None = None,
        open_transport: OpenTransport | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self.settings = settings or UserAgentSettings()
        self.on_invite = on_invite
        self.screen = screen
        self.guard: Guard | None = None
        self.draining = False
        self.addresses: list[Listen] = []
        self._listens = list(listens)
        self._on_message = on_message
        self._clock = clock
        self._open_transport = open_transport or self._open
        self._tokens = Tokens()
        self._secret = os.urandom(32)
        self._resolver = resolver or Resolver()
        self._sessions: dict[tuple[str, str], Session] = {}
        self._invites: dict[Key, Key] = {}
        self._session_settings = SessionSettings(
            timers=self.settings.timers,
            product=self.settings.product,
            pick=self._tokens.pick,
            token=self._tokens.token,
            max_ringing_s=self.settings.max_ringing_s,
            first_response_timeout_s=self.settings.first_response_timeout_s,
        )
        self.endpoint: Endpoint

    # Life.

    async def start(self) -> None:
        """
        Bind all addresses.

        Raises:
            OSError: One of them cannot be had; none is kept then.
            ValueError: One is a wildcard without an address to advertise, or of an unknown transport.
        """
        settings = self.settings
        for listen in self._listens:
            if listen.host in ("0.0.0.0", "::") and listen.advertise is None:
                raise ValueError(
                    f"To listen on {listen.host}, say which address peers are to be told (advertise)"
                )
        clock = self._clock or asyncio.get_running_loop()
        self.endpoint = Endpoint(
            self,
            clock,
            settings.timers,
            settings.limits,
            self._tokens.token,
            self._on_message,
            self.guard,
        )
        if self.guard is not None:
            self.guard.start(clock)
        try:
            for listen in self._listens:
                transport = self._open_transport(listen, self.endpoint.receive)
                transport.admits = None if self.guard is None else self.guard.admits_connection
                await transport.open()
                self.endpoint.transports.append(transport)
        except OSError:
            self._close_endpoint()
            raise
        self.addresses = [transport.address for transport in self.endpoint.transports]
        self._resolver.families = frozenset(
            socket.AF_INET6 if ":" in listen.host else socket.AF_INET for listen in self.addresses
        )

    async def close(self) -> None:
        """Free all addresses; sessions that are still up are forgotten without a word."""
        self._resolver.close()
        self._close_endpoint()
        self._sessions.clear()
        self._invites.clear()

    def _close_endpoint(self) -> None:
        self.endpoint.close()
        if self.guard is not None:
            self.guard.close()

    def _open(self, listen: Listen, receive: Receive) -> Transport:
        if listen.transport == "udp":
            return UdpTransport(listen, receive)
        if listen.transport == "tcp":
            return TcpTransport(listen, receive, self.settings.streams, self.settings.limits)
        raise ValueError(f"There is no SIP transport {listen.transport!r} here; use udp or tcp")

    # Counts, to see that nothing is left behind.

    @property
    def sessions(self) -> int:
        """Sessions in the tables, those included that only wait for the end of their BYE or CANCEL."""
        return len(self._sessions)

    @property
    def transactions(self) -> int:
        """Transactions, those included that only absorb repetitions (32 s each over UDP)."""
        return self.endpoint.transaction_count

    @property
    def timers(self) -> int:
        """Timers that are running."""
        return self.endpoint.timer_count

    # Calling out.

    def invite(self, invite: OutboundInvite, on_event: OnEvent) -> OutboundSession:
        """Send an INVITE; whatever comes of it, and be it that it cannot be sent, is told to `on_event`."""
        call_id = invite.call_id or self._tokens.token()
        contact = self._contact(invite.destination.transport)
        machine = OutboundInviteSession(invite, call_id, contact, self._session_settings)
        session = OutboundSession(self, machine, invite)
        session.on_event = on_event
        self._sessions[session.key] = session
        session.start()
        return session

    def options(self, destination: Destination, uri: SipUri) -> Awaitable[Response | None]:
        """Ask a peer whether it is alive; None when it does not answer."""
        question = _Question(asyncio.get_running_loop().create_future())
        local = NameAddr(None, SipUri("sip", host=self._host(destination.transport)))
        request = Request("OPTIONS", uri, Headers())
        for name, value in (
            ("Max-Forwards", "70"),
            ("From", str(local.with_tag(self._tokens.token()))),
            ("To", f"<{uri}>"),
            ("Call-ID", self._tokens.token()),
            ("CSeq", "1 OPTIONS"),
            ("Contact", self._contact(destination.transport)),
            ("Accept", ACCEPT),
            ("User-Agent", self.settings.product),
        ):
            request.headers.add(name, value)

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is None:
                question.settle(None)
            else:
                self.endpoint.start_client(request, flow, question, Purpose.INFO)

        self._with_flow(destination, None, send)
        return question.future

    def _transport(self, name: str) -> Transport | None:
        for transport in self.endpoint.transports:
            if transport.name == name:
                return transport
        return None

    def _host(self, transport_name: str) -> str:
        transport = self._transport(transport_name)
        return "localhost" if transport is None else (transport.address.advertise or transport.address.host)

    def _contact(self, transport_name: str) -> str:
        transport = self._transport(transport_name)
        return "<sip:localhost>" if transport is None else _contact_of(transport)

    # What sessions ask for.

    def forget(self, session: Session) -> None:
        """Take a session out of the tables."""
        self._sessions.pop(session.key, None)

    def send_request(self, session: Session, effect: StartRequest) -> None:
        """Find the way and start the transaction; failures come back to the session."""
        purpose, request = effect.purpose, effect.request

        def send(flow: Flow | None, failure: Failure) -> None:
            if purpose is Purpose.INVITE and session.state >= State.CANCELLING:
                session.on_unsent(purpose, Failure.RESOLVE)  # Hung up while its name was looked up.
            elif flow is not None:
                session.on_started(self.endpoint.start_client(request, flow, session, purpose))
            else:
                # Never from within the command that wanted it sent.
                self.endpoint.clock.call_soon(session.on_unsent, purpose, failure)

        if effect.next_hop is not None:
            self._with_flow(self._next(effect.next_hop, session), session.flow, send)
        elif isinstance(session, OutboundSession):
            self._with_flow(session.invite.destination, None, send)

    def send_ack(self, session: Session, effect: SendAck) -> None:
        """Find the way and send the ACK; the 2xx comes again when it is lost."""

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is not None:
                self.endpoint.send_ack(effect.request, flow)

        self._with_flow(self._next(effect.next_hop, session), session.flow, send)

    def _next(self, uri: SipUri, session: Session) -> Destination:
        """
        Where a URI leads.

        A connection the session came by is used again for the same host, and for a private one, which
        is how a peer behind a NAT names itself.
        """
        flow = session.flow
        host = uri.host
        if flow is not None and flow.reliable and not flow.closed:
            if host == flow.remote[0] or is_private(host):
                return Destination(flow.transport.name, *flow.remote)
        return Destination(uri.transport or "udp", host, uri.port or SIP_PORT)

    def _with_flow(
        self, destination: Destination, near: Flow | None, send: Callable[[Flow | None, Failure], None]
    ) -> None:
        """Call `send` with the way to a destination, at once unless its name must be looked up."""
        if near is not None and near.remote == (destination.host, destination.port) and not near.closed:
            if near.transport.name == destination.transport:
                send(near, Failure.TRANSPORT)
                return

        def found(host: str | None) -> None:
            if host is None:
                send(None, Failure.RESOLVE)
                return
            transport = None if near is None else near.transport
            remote = (host, destination.port)
            send(self.endpoint.flow_to(destination.transport, remote, transport), Failure.TRANSPORT)

        if is_address(destination.host):
            found(destination.host)
        else:
            self._resolver.find(destination.host, found)

    # What comes in.

    def on_ack(self, request: Request) -> None:
        """Take the ACK of a 2xx."""
        session = self._session_of(request)
        if session is not None:
            session.on_ack(request)

    def on_stray_answer(self, response: Response, flow: Flow) -> None:
        """Take a 2xx whose INVITE transaction is gone: its session acknowledges it again."""
        session = self._sessions.get((response.call_id, response.from_.tag or ""))
        if session is not None:
            session.on_stray_answer(response)

    def on_request(self, request: Request, flow: Flow, key: Key) -> None:
        """Take a request that is not a repetition."""
        if request.method == "CANCEL":
            self._receive_cancel(request, flow)
            return
        new_call = request.method == "INVITE" and request.to.tag is None
        if new_call and not self._pass_screen(request, flow):
            return
        refused = refusal(request)
        if refused is not None:
            self._say(refused, request, flow)
        elif request.to.tag is not None:
            self._receive_within(request, flow, key)
        elif request.method == "INVITE":
            self._receive_invite(request, flow, key)
        elif request.method == "OPTIONS":
            self._say(self._capabilities(request), request, flow)
        else:
            self._say(reply(request, 481), request, flow)

    def _pass_screen(self, request: Request, flow: Flow) -> bool:
        """Ask the application about the source, first of all: strangers learn nothing from other answers."""
        if self.screen is None:
            return True
        try:
            verdict = self.screen(flow.remote[0], flow.remote[1], flow.transport.name, request)
        except Exception:
            logger.exception("The screen failed; the INVITE is dropped")
            return False
        if verdict is ScreenVerdict.FORBID:
            self._say(reply(request, 403), request, flow)
        elif verdict is ScreenVerdict.ACCEPT:
            self.endpoint.vouch(flow)
        return verdict is ScreenVerdict.ACCEPT

    def session_of(self, replaces: Replaces) -> Session | None:
        """The session that has a dialog as its peer names it, None when there is none."""
        session = self._sessions.get((replaces.call_id, replaces.to_tag))
        return session if session is not None and session.remote.tag == replaces.from_tag else None

    def _session_of(self, request: Request) -> Session | None:
        return self._sessions.get((request.call_id, request.to.tag or ""))

    def _receive_within(self, request: Request, flow: Flow, key: Key) -> None:
        session = self._session_of(request)
        if session is None:
            self._say(reply(request, 481), request, flow)
            return
        self.endpoint.vouch(flow)
        # Calls that are up must be able to end, however full it is.
        if request.method != "BYE" and self.transactions >= self.settings.max_transactions:
            self._say(self._overloaded(request), request, flow)
            return
        run = self.endpoint.start_server(request, flow, key)
        if request.method == "INVITE":
            run.user = session  # A CANCEL finds it by this.
        session.on_request(request, run, flow)

    def _receive_cancel(self, request: Request, flow: Flow) -> None:
        """
        Answer a CANCEL and pass it to the session of its INVITE.

        Source: RFC 3261 9.2.
        """
        run = self.endpoint.server(server_key(request, "INVITE"))
        if run is None:
            self._say(reply(request, 481), request, flow)
            return
        session = run.user
        self.endpoint.vouch(flow)
        self._say(reply(request, 200, to_tag=run.tag), request, flow)
        if isinstance(session, Session):
            session.on_cancel(request, run)

    def _receive_invite(self, request: Request, flow: Flow, key: Key) -> None:
        """Judge a new INVITE; nothing is kept of one that is refused here."""
        merged = merge_key(request)
        full = len(self._sessions) >= self.settings.max_sessions
        if self.draining or full or self.transactions >= self.settings.max_transactions:
            self._say(self._overloaded(request), request, flow)
        elif merged in self._invites:
            self._say(reply(request, 482), request, flow)
        else:
            replaced = find_replaced(request, self._sessions)
            if isinstance(replaced, Response):
                self._say(replaced, request, flow)
            else:
                self._open_session(request, flow, key, merged, replaced)

    def _open_session(
        self, request: Request, flow: Flow, key: Key, merged: Key, replaced: Session | None
    ) -> None:
        tag = self._tokens.token()
        contact = _contact_of(flow.transport)
        try:
            # The dialog is made before the transaction, so that a bad Contact leaves nothing behind.
            machine = InboundInviteSession(request, tag, contact, self._session_settings)
        except ParseError as error:
            self._say(reply(request, 400, error.reason), request, flow)
            return
        run = self.endpoint.start_server(request, flow, key)
        session = InboundSession(self, machine, flow)
        session.replaces = replaced
        run.user, run.tag = session, tag
        self._invites[merged] = key
        run.on_end = lambda: self._forget_invite(merged)
        self._sessions[session.key] = session
        session.start(run)
        try:
            self.on_invite(session)
        except Exception:
            logger.exception("The callback for new sessions failed; call_id=%s", session.call_id)
            session.reject(500)

    def _forget_invite(self, merged: Key) -> None:
        self._invites.pop(merged, None)

    # Answers without memory.

    def _say(self, response: Response, request: Request, flow: Flow) -> None:
        """Send a final response that is the same for every repetition of the request."""
        if self.guard is not None:
            allowed = self.guard.answer_for(response, request, flow)
            if allowed is None:
                return
            response = allowed
        if response.to.tag is None:
            tag = stateless_tag(self._secret, request)
            response.headers.set("To", f"{response.headers.get('To')};tag={tag}")
        self.endpoint.send_response(response, flow)

    def _overloaded(self, request: Request) -> Response:
        return reply(request, 503, headers=(("Retry-After", str(self.settings.retry_after_s)),))

    def _capabilities(self, request: Request) -> Response:
        """
        Answer an OPTIONS as an INVITE would be answered.

        Source: RFC 3261 11.2.
        """
        if self.draining:
            return self._overloaded(request)
        # An empty Supported says that there are no extensions, which is something too (RFC 3261 11.2).
        supported = supported_fields() or (("Supported", ""),)
        headers = (("Allow", ALLOW), ("Accept", ACCEPT), *supported, ("Server", self.settings.product))
        return reply(request, 200, headers=headers)


class _Question:
    """An OPTIONS on its way."""

    def __init__(self, future: "asyncio.Future[Response | None]") -> None:
        self.future = future

    def settle(self, response: Response | None) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def on_response(self, run: ClientRun, response: Response) -> None:
        if response.status >= 200:
            self.settle(response)

    def on_failure(self, run: ClientRun, failure: Failure) -> None:
        self.settle(None)


def _contact_of(transport: Transport) -> str:
    if transport.name == "udp":
        return f"<sip:{transport.sent_by}>"
    return f"<sip:{transport.sent_by};transport={transport.name}>"
