"""User agents and raw peers on an in-memory network, and what tests assert about them."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from sip import (
    Destination,
    NameAddr,
    OutboundInvite,
    ParseError,
    Replaces,
    Request,
    Response,
    SessionEvent,
    SipUri,
    parse_message,
    reply,
    serialise,
)
from sip.aio import InboundSession, Listen, Session, UserAgent, UserAgentSettings
from sip.aio.resolver import Found, Resolver
from sip.aio.transport import Address
from tests.support.sip_network import Network
from tests.support.virtual_clock import VirtualClock

SDP = b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
OTHER_SDP = SDP.replace(b"4000", b"5000")


class Side:
    """One session seen from its owner: the session and the events it reported."""

    def __init__(self, session: Session | None = None) -> None:
        self.events: list[SessionEvent] = []
        self._session = session

    @property
    def session(self) -> Any:
        assert self._session is not None
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        self._session = session

    def take(self, event: SessionEvent) -> None:
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def last(self, kind: type[Any]) -> Any:
        found = [event for event in self.events if isinstance(event, kind)]
        assert found, f"no {kind.__name__} among {self.names}"
        return found[-1]


class NoNames(Resolver):
    """A resolver that knows no name and asks nobody: virtual time does not wait for a real one."""

    def locate(self, wanted: Destination, found: Found) -> None:
        found(())


class Agent:
    """A user agent on the network, with a handler for what comes in that tests may replace."""

    def __init__(
        self,
        network: Network,
        address: Address,
        settings: UserAgentSettings | None = None,
        *,
        transports: Iterable[str] = ("udp", "tcp"),
        **options: Any,
    ) -> None:
        self.network = network
        self.address = address
        self.inbound: list[Side] = []
        self.answer: Callable[[InboundSession], None] = lambda session: session.answer(SDP)
        self.ua = UserAgent(
            [Listen(transport, *address) for transport in transports],
            settings,
            on_invite=self._on_invite,
            clock=network.clock,
            open_transport=network.opener(),
            resolver=NoNames(),
            **options,
        )

    async def start(self) -> "Agent":
        await self.ua.start()
        return self

    def _on_invite(self, session: InboundSession) -> None:
        side = Side(session)
        session.on_event = side.take
        self.inbound.append(side)
        self.answer(session)

    def call(self, peer: Address, transport: str = "udp", **options: Any) -> Side:
        side = Side()
        host, port = peer
        options.setdefault("body", SDP)
        options.setdefault("uri", SipUri.parse(f"sip:bob@{host}:{port}" if port else f"sip:bob@{host}"))
        invite = OutboundInvite(
            from_=NameAddr.parse("<sip:alice@example.net>"),
            to=NameAddr.parse("<sip:bob@example.net>"),
            destination=Destination(transport, host, port),
            **options,
        )
        side.session = self.ua.invite(invite, side.take)
        return side

    def assert_clean(self) -> None:
        counts = (self.ua.sessions, self.ua.transactions, self.ua.timers)
        assert counts == (0, 0, 0), f"left behind: sessions, transactions, timers = {counts}"


class RawPeer:
    """A peer that says exactly what a test wants, and remembers what it is told."""

    def __init__(self, network: Network, address: Address, target: Address) -> None:
        self.network = network
        self.address = address
        self.target = target
        self.received: list[Request | Response] = []
        network.bind("udp", address, self._take)

    def _take(self, data: bytes, source: Address) -> None:
        with contextlib.suppress(ParseError):  # Answers to nonsense repeat it.
            self.received.append(parse_message(data))

    def send(self, message: Request | Response | bytes) -> None:
        data = message if isinstance(message, bytes) else serialise(message)
        self.network.carry(data, self.address, self.target)

    def request(self, method: str, *, branch: str, **changes: str | bytes) -> Request:
        """Make a request outside any dialog; header fields by their Python-like names."""
        host, port = self.address
        fields = {
            "Via": f"SIP/2.0/UDP {host}:{port};branch=z9hG4bK{branch};rport",
            "Max-Forwards": "70",
            "From": "<sip:raw@example.net>;tag=raw",
            "To": "<sip:ua@example.net>",
            "Call-ID": "raw-call",
            "CSeq": f"1 {method}",
            "Contact": f"<sip:raw@{host}:{port}>",
        }
        body = b""
        for name, value in changes.items():
            if name == "body":
                assert isinstance(value, bytes)
                body = value
                fields.setdefault("Content-Type", "application/sdp")
            elif value == "":
                fields.pop(name.replace("_", "-"), None)
            else:
                assert isinstance(value, str)
                fields[name.replace("_", "-")] = value
        request = Request(method, SipUri.parse(f"sip:ua@{self.target[0]}:{self.target[1]}"), body=body)
        for name, text in fields.items():
            request.headers.add(name, text)
        return request

    def respond(
        self, request: Request, status: int, tag: str = "peer", body: bytes = b"", **fields: str
    ) -> None:
        response = reply(request, status, to_tag=tag)
        host, port = self.address
        if 101 <= status < 300:
            response.headers.add("Contact", fields.pop("Contact", f"<sip:raw@{host}:{port}>"))
        for name, value in fields.items():
            response.headers.add(name.replace("_", "-"), value)
        if body:
            response.headers.add("Content-Type", "application/sdp")
            response.body = body
        self.send(response)

    def requests(self, method: str) -> list[Request]:
        return [m for m in self.received if isinstance(m, Request) and m.method == method]

    def responses(self, method: str, status: int | None = None) -> list[Response]:
        return [
            m
            for m in self.received
            if isinstance(m, Response) and m.cseq.method == method and status in (None, m.status)
        ]


def make_network(**options: Any) -> Network:
    return Network(VirtualClock(), **options)


def replaces_of(session: Session) -> Replaces:
    """Return the Replaces by which another INVITE names this session's dialog to its peer."""
    return Replaces(session.call_id, session.remote.tag or "", session.local.tag or "")
