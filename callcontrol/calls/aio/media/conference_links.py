"""
SIP legs between nodes: a call of one node takes part in a conference of another.

They have a socket of their own, which hears nobody but living nodes. So they pass no front, count under no
limit, and are in no list of calls. Each carries its ticket; see ``callcontrol.calls.conference_ticket``.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final, Literal

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.aio.media.conferences import ConferenceMember
from callcontrol.calls.aio.media.leg import MediaRefusal, MediaTable
from callcontrol.calls.aio.media.negotiation import Descriptions
from callcontrol.calls.conference_ticket import ConferenceTicket
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import (
    ConferenceBegan,
    ConferenceEntered,
    ConferenceOver,
    ConferenceRefused,
)
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.ids import A_LEG, LegId
from callcontrol.models.trunks import MediaPolicy
from media.aio import MediaEngine, RtpStream
from media.errors import MediaError
from media.types import MediaEvent, MediaTimeout
from sip import (
    Answered,
    Cancelled,
    Confirmed,
    Destination,
    Ended,
    Failed,
    InfoReceived,
    NameAddr,
    OutboundInvite,
    Request,
    SessionEvent,
    SipUri,
    State,
)
from sip.aio import InboundSession, Listen, Screened, ScreenVerdict, Session, Source, UserAgent
from sip.aio import UserAgentSettings as SipSettings
from sip.aio.transport import Address, Receive
from sip.aio.udp import UdpTransport

log = logging.getLogger(__name__)

TICKET_HEADER: Final = "X-Trunkline-Conference"
"""Field of an INVITE with its ticket, and of the 2xx with the state of the conference."""

_STATE: Final = "application/x-trunkline-conference"
_WAITING, _BEGUN = "waiting", "begun"
# As long as a lease: each side sends without a gap, so the node is dead, or the network between is.
_SILENT_S: Final = 8.0
_FIRST_RESPONSE_S: Final = 2.0
_ANSWER_S: Final = 10.0
_FULL, _NO_MEDIA, _NOT_HERE, _LATER = 486, 488, 410, 503
_REASON_OF: Final[dict[int, Literal["full", "media"]]] = {_FULL: "full", _NO_MEDIA: "media"}
_G711: Final = ("PCMU", "PCMA")


class LinkMedia:
    """The stream of a leg between nodes; ``on_silent`` is called when nothing comes from the other node."""

    def __init__(
        self, engine: MediaEngine, on_silent: Callable[[], None], near: RtpStream | None = None
    ) -> None:
        self._engine = engine
        self._near = near
        self._on_silent = on_silent
        self._legs: MediaTable = {}

    @property
    def descriptions(self) -> Descriptions:
        """Negotiation with the other node; created on each access, to avoid a reference cycle."""
        return Descriptions(self._legs, self._open, self._legs.__setitem__, lambda media: None)

    @property
    def stream(self) -> RtpStream:
        """The stream, once there is an offer."""
        return self._legs[A_LEG].stream

    def watch(self) -> None:
        """Report silence from now on."""
        self.stream.set_media_timeout(_SILENT_S)

    def close(self) -> None:
        """Free the stream. Idempotent."""
        for media in self._legs.values():
            media.stream.close()
        # The stream refers to this object by its callback.
        self._legs.clear()
        self._on_silent = _nothing

    def _open(self, leg: LegId, near: RtpStream | None) -> RtpStream:
        stream = self._engine.open_stream(self._on_event, self._near)
        listen = self._engine.settings.listen
        if listen not in ("0.0.0.0", "::"):
            # Nodes share a network; the advertised address is for carriers, outside it.
            stream.local = (listen, stream.local[1])
        return stream

    def _on_event(self, event: MediaEvent) -> None:
        if isinstance(event, MediaTimeout):
            self._on_silent()


class OutboundLink:
    """Leg to the node that has a conference, linked with the stream of ``member``, which gets its events."""

    def __init__(self, engine: MediaEngine, member: ConferenceMember) -> None:
        self._member = member
        self._media = LinkMedia(engine, self._silent, member.stream)
        self._session: Session | None = None
        self._decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def offer(self) -> bytes:
        """
        Return the offer: the party's codec if it is G.711, which is then relayed, or else linear audio.

        Raises:
            MediaRefusal: No port is free.
        """
        remote = self._member.stream.remote
        codec = remote.codec if remote is not None and remote.codec in _G711 else "L16"
        return self._media.descriptions.offer(A_LEG, None, MediaPolicy(codecs=(codec,)))

    async def decided(self, session: Session) -> bool:
        """Wait until the other node has decided; False if it did not, or has no such conference."""
        self._session = session
        return await self._decided

    def close(self) -> None:
        """End the leg. Idempotent; the member gets no more events."""
        session, self._session = self._session, None
        if session is not None:
            session.on_event = None
            session.hangup(reason=NORMAL_CLEARING.reason_header())
        self._media.close()
        self._decide(True)

    def on_event(self, event: SessionEvent) -> None:
        """Handle an event of the session."""
        leg = self._member.leg
        match event:
            case Answered():
                self._connect(event)
            case InfoReceived(content_type=kind) if kind == _STATE:
                self._member.post(ConferenceBegan(leg))
            case Failed(status=status):
                reason = _REASON_OF.get(status) if event.cause == "response" else None
                if reason is None:
                    log.info("a conference leg was refused: %d %s", status, event.reason)
                    self._decide(False)
                else:
                    self._member.post(ConferenceRefused(leg, reason))
                self.close()
            case Ended():
                self._over()

    def _connect(self, event: Answered) -> None:
        try:
            self._media.descriptions.apply_answer(A_LEG, event.body)
            self._member.stream.link(self._media.stream)
        except (MediaError, MediaRefusal) as error:
            log.warning("a conference leg has no media: %s", error)
            self._member.post(ConferenceRefused(self._member.leg, "media"))
            self.close()
            return
        self._media.watch()
        # Posted here, so that it comes before what happens to the conference later.
        waits = event.headers.get(TICKET_HEADER) == _WAITING
        self._member.post(ConferenceEntered(self._member.leg, waits))
        self._decide(True)

    def _silent(self) -> None:
        log.warning(
            "the node of a conference sends nothing any more", extra={"call_sid": self._member.call_sid}
        )
        self._over()

    def _over(self) -> None:
        self.close()
        self._member.post(ConferenceOver(self._member.leg))

    def _decide(self, decided: bool) -> None:
        if not self._decided.done():
            self._decided.set_result(decided)


class InboundLink:
    """Leg of another node into a conference here; ``on_left`` is called once, when it has ended."""

    def __init__(
        self,
        engine: MediaEngine,
        session: InboundSession,
        ticket: ConferenceTicket,
        on_left: "Callable[[InboundLink], None]",
    ) -> None:
        self.ticket = ticket
        self.member: ConferenceMember | None = None
        """The member that the leg makes, once ``open`` has."""
        self.took_part = False
        """True once the other node has acknowledged the answer."""
        self._media = LinkMedia(engine, self.hang_up)
        self._session = session
        self._on_left: Callable[[InboundLink], None] | None = on_left
        self._begun = False
        session.on_event = self._on_event

    def open(self) -> ConferenceMember | None:
        """Open its media and return the member; None if the leg has ended meanwhile, or cannot have any."""
        if self._session.state >= State.CANCELLING:
            return None
        try:
            self._media.descriptions.take_offer(
                A_LEG, self._session.request.body, MediaPolicy(codecs=("L16", *_G711))
            )
        except MediaRefusal as refusal:
            log.warning("a conference leg has no media: %s", refusal)
            self.refuse(_NO_MEDIA)
            return None
        ticket = self.ticket
        self.member = ConferenceMember(
            ticket.call_sid, A_LEG, self._media.stream, self._post, link=ticket.call_id
        )
        return self.member

    def entered(self, event: Event) -> None:
        """Answer the other node with the outcome of joining."""
        match event:
            case ConferenceEntered(waits=waits):
                state = _WAITING if waits else _BEGUN
                self._session.answer(self._media.descriptions.tell(A_LEG), [(TICKET_HEADER, state)])
                self._media.watch()
            case ConferenceRefused(problem=problem):
                self.refuse(_FULL if problem == "full" else _NO_MEDIA)

    def refuse(self, status: int) -> None:
        """Refuse the leg."""
        self._end()
        self._session.reject(status)

    def not_here(self) -> None:
        """Refuse the leg: another node has the conference."""
        self.refuse(_NOT_HERE)

    def not_now(self) -> None:
        """Refuse the leg: the node of the conference cannot be determined now."""
        self.refuse(_LATER)

    def hang_up(self) -> None:
        """End the leg, whose member leaves the conference."""
        self._end()
        self._session.hangup(reason=NORMAL_CLEARING.reason_header(), status=_LATER)

    def _post(self, event: Event) -> None:
        """Pass an event of the membership on to the other node."""
        match event:
            case ConferenceBegan():
                self._begun = True
                self._tell_begun()
            case ConferenceOver():
                self.hang_up()

    def _tell_begun(self) -> None:
        # Before the ACK, an INFO would overtake the answer.
        if self._begun and self.took_part:
            self._session.info(_STATE, _BEGUN.encode())

    def _on_event(self, event: SessionEvent) -> None:
        match event:
            case Confirmed():
                self.took_part = True
                self._tell_begun()
            case Cancelled() | Ended():
                self._end()

    def _end(self) -> None:
        on_left, self._on_left = self._on_left, None
        if on_left is not None:
            self._session.on_event = None
            on_left(self)
            self._media.close()
            self.member = None


class LinkEndpoint:
    """
    The socket of legs between nodes.

    Args:
        hosts: Addresses of the other living nodes.
        accept: Returns the ticket of an INVITE from an address, or None.
        on_link: Called with each accepted INVITE and its ticket.
    """

    def __init__(
        self,
        settings: SipSettings,
        hosts: Callable[[], Collection[Address]],
        accept: Callable[[str, str, Address], ConferenceTicket | None],
        on_link: Callable[[InboundSession, ConferenceTicket], None],
    ) -> None:
        # All requests fit in datagrams of a private network, and only a datagram has the socket's address.
        self._settings = replace(
            settings,
            max_udp_request_bytes=0,
            tls=None,
            first_response_timeout_s=_FIRST_RESPONSE_S,
            max_ringing_s=_ANSWER_S,
        )
        self._hosts = hosts
        self._accept = accept
        self._on_link = on_link
        self._user_agent: UserAgent | None = None
        self.address: Address | None = None
        """Address that other nodes send to; None while there is none."""

    @property
    def sessions(self) -> int:
        """Number of legs, those included that only wait for the end of their BYE."""
        return 0 if self._user_agent is None else self._user_agent.sessions

    async def start(self, listen: Listen) -> None:
        """Bind the socket; if its port is in use, as in a hot restart, any free one."""
        for port in dict.fromkeys((listen.port, 0)):
            user_agent = UserAgent(
                [replace(listen, port=port)],
                self._settings,
                on_invite=self._on_invite,
                screen=self._screen,
                open_transport=lambda address, receive: _NodesTransport(address, receive, self._hosts),
            )
            try:
                await user_agent.start()
            except OSError as error:
                log.warning("cannot listen for other nodes on %s:%d: %s", listen.host, port, error)
                continue
            self._user_agent = user_agent
            self.address = (listen.advertise or listen.host, user_agent.addresses[0].port)
            return

    async def close(self) -> None:
        """Free the socket."""
        self.address = None
        if self._user_agent is not None:
            await self._user_agent.close()

    def invite(
        self, to: Address, ticket: str, call_id: str, offer: bytes, on_event: Callable[[SessionEvent], None]
    ) -> Session:
        """Send the INVITE of a leg to a node."""
        assert self._user_agent is not None and self.address is not None
        return self._user_agent.invite(
            OutboundInvite(
                uri=_uri(to),
                from_=NameAddr(None, _uri(self.address)),
                to=NameAddr(None, _uri(to)),
                destination=Destination("udp", *to),
                headers=[(TICKET_HEADER, ticket)],
                body=offer,
                call_id=call_id,
            ),
            on_event,
        )

    def _screen(self, source: Source, request: Request) -> Screened:
        sealed = request.headers.get(TICKET_HEADER) or ""
        ticket = self._accept(sealed, request.call_id, (source.host, source.port))
        if ticket is None:
            log.warning("a conference leg without a valid ticket came from %s:%d", source.host, source.port)
            return Screened(ScreenVerdict.DROP)
        return Screened(ScreenVerdict.ACCEPT, (ticket,))

    def _on_invite(self, session: InboundSession) -> None:
        (ticket,) = session.identities
        assert isinstance(ticket, ConferenceTicket)
        self._on_link(session, ticket)


class _NodesTransport(UdpTransport):
    """Socket that hears the addresses of living nodes alone."""

    def __init__(self, listen: Listen, receive: Receive, hosts: Callable[[], Collection[Address]]) -> None:
        super().__init__(
            listen, lambda data, flow, known: receive(data, flow) if flow.remote in hosts() else None
        )


def _nothing() -> None:
    """Handle the silence of a leg that is over."""


def now_s() -> float:
    """Wall-clock time, for tickets."""
    return utc_now().timestamp()


def parse_address(text: str | None) -> Address | None:
    """Return the host and the port of a node's SIP address; None for none."""
    host, colon, port = (text or "").rpartition(":")
    return (host, int(port)) if colon and host and port.isdecimal() else None


def _uri(address: Address) -> SipUri:
    host, port = address
    return SipUri("sip", user="conference", host=host, port=port)
