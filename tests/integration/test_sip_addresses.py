"""IPv4 and IPv6 side by side on real sockets, addresses behind a NAT, connections that dialogs hold."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from sip import (
    Answered,
    Destination,
    Ended,
    NameAddr,
    OutboundInvite,
    Response,
    SessionEvent,
    SipUri,
    Timers,
    parse_message,
)
from sip.aio import (
    InboundSession,
    Listen,
    OutboundSession,
    StreamLimits,
    TlsSettings,
    UserAgent,
    UserAgentSettings,
)
from tests.support.certificates import Authority
from tests.support.waiting import time_passes, until

SDP = b"v=0\r\n"
FAST = Timers(t1_s=0.05, t2_s=0.2, t4_s=0.05, trying_s=0.02, completed_invite_s=0.2)
DEADLINE_S = 40.0
TRANSPORTS = ("udp", "tcp", "tls")
HOSTS = ("127.0.0.1", "::1")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    directory: Path = tmp_path_factory.mktemp("ca")
    authority = Authority(directory)
    issued = authority.issue("loopback", addresses=HOSTS)
    return TlsSettings(issued.certificate, issued.key, authority.file)


class Party:
    """A user agent on every transport of both families, which answers every call."""

    def __init__(
        self,
        tls: TlsSettings | None = None,
        streams: StreamLimits | None = None,
        listens: Sequence[Listen] | None = None,
    ) -> None:
        self.inbound: list[InboundSession] = []
        self.events: list[SessionEvent] = []
        every = [Listen(transport, host, 0) for transport in TRANSPORTS for host in HOSTS]
        self.ua = UserAgent(
            listens or [listen for listen in every if tls is not None or listen.transport != "tls"],
            UserAgentSettings(timers=FAST, tls=tls, streams=streams or StreamLimits()),
            on_invite=self.take,
        )

    def take(self, session: InboundSession) -> None:
        self.inbound.append(session)
        session.on_event = self.events.append
        session.answer(SDP)

    def port(self, transport: str, host: str) -> int:
        return next(at.port for at in self.ua.addresses if (at.transport, at.host) == (transport, host))

    async def call(
        self, peer: "Party", transport: str, host: str
    ) -> tuple[OutboundSession, list[SessionEvent]]:
        events: list[SessionEvent] = []
        port = peer.port(transport, host)
        invite = OutboundInvite(
            uri=SipUri("sip", "bob", host=host, port=port),
            from_=NameAddr.parse("<sip:alice@example.net>"),
            to=NameAddr.parse("<sip:bob@example.net>"),
            destination=Destination(transport, host, port),
            body=SDP,
        )
        session = self.ua.invite(invite, events.append)
        await until(lambda: events)
        assert isinstance(events[0], Answered), events
        return session, events


@contextlib.asynccontextmanager
async def running(*parties: Party) -> AsyncIterator[None]:
    for party in parties:
        await party.ua.start()
    try:
        yield
    finally:
        for party in parties:
            await party.ua.close()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_transport_speaks_both_families(tls: TlsSettings, transport: str, host: str) -> None:
    alice, bob = Party(tls), Party(tls)
    async with running(alice, bob):
        session, events = await alice.call(bob, transport, host)
        [inbound] = bob.inbound
        request = inbound.request
        assert request.contact is not None
        ours = alice.port(transport, host)
        assert (request.via.host, request.via.port) == (host, ours)
        assert (request.contact.uri.host, request.contact.uri.port) == (host, ours)
        assert (request.via.received, request.via.rport) == (host, inbound.source[1])
        inbound.hangup()
        await until(lambda: isinstance(events[-1], Ended))
        assert session.state.name == "ENDED"


async def test_an_address_in_another_spelling_takes_the_same_connection(tls: TlsSettings) -> None:
    alice, bob = Party(tls), Party(tls)
    async with running(alice, bob):
        port = bob.port("tcp", "::1")
        for host in ("::1", "0:0:0:0:0:0:0:1", "0::1"):
            events: list[SessionEvent] = []
            invite = OutboundInvite(
                uri=SipUri("sip", "bob", host="::1", port=port),
                from_=NameAddr.parse("<sip:alice@example.net>"),
                to=NameAddr.parse("<sip:bob@example.net>"),
                destination=Destination("tcp", host, port),
                body=SDP,
            )
            alice.ua.invite(invite, events.append)
            await until(lambda: events)  # noqa: B023 - awaited at once.
        assert alice.ua.connections == {"tcp": 1, "tls": 0}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ("SIP/2.0/UDP 192.0.2.9:5099;branch=z9hG4bKa;rport", "received={host};rport={port}"),
        ("SIP/2.0/UDP [2001:db8::9]:5099;branch=z9hG4bKa;rport", "received={host};rport={port}"),
        (
            "SIP/2.0/UDP pbx.example.net;branch=z9hG4bKa;rport=1;received=192.0.2.1",
            "received={host};rport={port}",
        ),
    ],
)
async def test_answers_go_where_the_request_came_from(host: str, via: str, expected: str) -> None:
    """RFC 3581 4: the port too, when the sender asks for that."""
    bob = Party()
    async with running(bob):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as peer:
            peer.bind((host, 0))
            peer.setblocking(False)
            request = (
                f"OPTIONS sip:ua@example.net SIP/2.0\r\nVia: {via}\r\nMax-Forwards: 70\r\n"
                "From: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\n\r\n"
            )
            loop = asyncio.get_running_loop()
            peer.sendto(request.encode(), (host, bob.port("udp", host)))
            data = await asyncio.wait_for(loop.sock_recv(peer, 65536), DEADLINE_S)
            response = parse_message(data)
            assert isinstance(response, Response) and response.status == 200
            top = str(response.via)
            assert expected.format(host=host, port=peer.getsockname()[1]) in top


@pytest.mark.parametrize(("host", "public"), [("127.0.0.1", "203.0.113.5"), ("::1", "2001:db8::5")])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_behind_a_nat_peers_are_told_the_public_address(transport: str, host: str, public: str) -> None:
    alice = Party(listens=[Listen(transport, host, 0, public)])
    bob = Party()
    async with running(alice, bob):
        session, events = await alice.call(bob, transport, host)
        [inbound] = bob.inbound
        request = inbound.request
        told = f"[{public}]" if ":" in public else public
        port = alice.port(transport, host)
        assert (request.via.host, request.via.received) == (public, host)
        assert request.contact is not None
        assert str(request.contact.uri).startswith(f"sip:{told}:{port}")
        assert str(request.via).startswith(f"SIP/2.0/{transport.upper()} {told}:{port};")
        session.hangup()
        await until(lambda: bob.events and isinstance(bob.events[-1], Ended))


async def test_both_families_share_a_wildcard_port() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("0.0.0.0", 0))
        port = probe.getsockname()[1]
    listens = [Listen("udp", "0.0.0.0", port, "127.0.0.1"), Listen("udp", "::", port, "::1")]
    alice, bob = Party(listens=listens), Party()
    async with running(alice, bob):
        for host in HOSTS:
            await alice.call(bob, "udp", host)
        assert [inbound.source for inbound in bob.inbound] == [("127.0.0.1", port), ("::1", port)]


@pytest.mark.parametrize("transport", ["tcp", "tls"])
async def test_a_dialog_keeps_its_connection_and_keeps_it_alive(tls: TlsSettings, transport: str) -> None:
    limits = StreamLimits(idle_s=0.3, keepalive_s=0.1)
    alice, bob = Party(tls, limits), Party(tls, limits)
    async with running(alice, bob):
        session, events = await alice.call(bob, transport, "127.0.0.1")
        await until(lambda: not bob.ua.transactions)
        await time_passes(1.0)
        assert alice.ua.connections[transport] == bob.ua.connections[transport] == 1
        flow = session.flow
        bob.inbound[0].hangup()
        await until(lambda: isinstance(events[-1], Ended))
        assert session.flow is flow, "the BYE came by it"
        await until(lambda: alice.ua.connections[transport] == bob.ua.connections[transport] == 0)


async def test_a_bye_opens_a_connection_again(tls: TlsSettings) -> None:
    """The peer is still where its Contact says, though the connection of the call is gone."""
    alice, bob = Party(tls), Party(tls)
    async with running(alice, bob):
        session, _ = await alice.call(bob, "tls", "127.0.0.1")
        await until(lambda: not bob.ua.transactions)
        flow = session.flow
        assert flow is not None
        flow.abort()
        await until(lambda: bob.ua.connections["tls"] == 0)
        session.hangup()
        await until(lambda: bob.events and isinstance(bob.events[-1], Ended))
        assert alice.ua.connections["tls"] == 1
