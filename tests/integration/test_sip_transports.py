"""User agents over real loopback sockets, UDP and TCP."""

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import AsyncIterator

import pytest

from sip import (
    Answered,
    Destination,
    Ended,
    Failed,
    NameAddr,
    OutboundInvite,
    SessionEvent,
    SipUri,
    Timers,
)
from sip.aio import InboundSession, Listen, OutboundSession, StreamLimits, UserAgent, UserAgentSettings
from sip.aio.resolver import Found, Resolver
from sip.aio.udp import DATAGRAMS_PER_WAKE, UdpTransport
from tests.support.waiting import time_passes, until

SDP = b"v=0\r\n"
FAST = Timers(t1_s=0.05, t2_s=0.2, t4_s=0.05, trying_s=0.02, completed_invite_s=0.2)
"""Timers short enough for a test to see every transaction run out."""
DEADLINE_S = 40.0


class Party:
    """A user agent on loopback that rings and answers, and keeps what it is told."""

    def __init__(self, settings: UserAgentSettings) -> None:
        self.inbound: list[InboundSession] = []
        self.events: list[SessionEvent] = []
        self.ua = UserAgent(
            [Listen("udp", "127.0.0.1", 0), Listen("tcp", "127.0.0.1", 0)], settings, on_invite=self.take
        )

    def take(self, session: InboundSession) -> None:
        self.inbound.append(session)
        session.on_event = self.events.append
        session.progress()
        session.answer(SDP)

    def port(self, transport: str) -> int:
        return next(listen.port for listen in self.ua.addresses if listen.transport == transport)

    def call(
        self, port: int, transport: str, host: str = "127.0.0.1", body: bytes = SDP
    ) -> tuple[OutboundSession, list[SessionEvent]]:
        events: list[SessionEvent] = []
        invite = OutboundInvite(
            uri=SipUri("sip", "bob", host="127.0.0.1", port=port),
            from_=NameAddr.parse("<sip:alice@127.0.0.1>"),
            to=NameAddr.parse("<sip:bob@127.0.0.1>"),
            destination=Destination(transport, host, port),
            body=body,
        )
        return self.ua.invite(invite, events.append), events


@contextlib.asynccontextmanager
async def parties(*, run_out: bool = False, **settings: object) -> AsyncIterator[tuple[Party, Party]]:
    """
    Two parties; at the end every session and port must be free.

    With `run_out` the test waits until every transaction and timer has ended by itself, too.
    """
    options = UserAgentSettings(timers=FAST, **settings)  # type: ignore[arg-type]
    alice, bob = Party(options), Party(options)
    await alice.ua.start()
    await bob.ua.start()
    try:
        yield alice, bob
        await until(lambda: not alice.ua.sessions and not bob.ua.sessions)
        if run_out:
            uas = (alice.ua, bob.ua)
            await until(lambda: not any(ua.transactions or ua.timers for ua in uas))
    finally:
        await alice.ua.close()
        await bob.ua.close()
    for listen in (*alice.ua.addresses, *bob.ua.addresses):
        kind = socket.SOCK_DGRAM if listen.transport == "udp" else socket.SOCK_STREAM
        with socket.socket(socket.AF_INET, kind) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((listen.host, listen.port))


@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_a_call_in_both_directions(transport: str) -> None:
    async with parties() as (alice, bob):
        session, events = alice.call(bob.port(transport), transport)
        await until(lambda: any(isinstance(event, Answered) for event in events))
        session.hangup()
        await until(lambda: bob.events and isinstance(bob.events[-1], Ended))
        back, back_events = bob.call(alice.port(transport), transport)
        await until(lambda: any(isinstance(event, Answered) for event in back_events))
        alice.inbound[0].hangup()
        await until(lambda: back_events and isinstance(back_events[-1], Ended))
        assert back.state.name == "ENDED"


@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_two_hundred_calls_at_once(transport: str) -> None:
    async with parties(run_out=True) as (alice, bob):
        calls = [alice.call(bob.port(transport), transport) for _ in range(200)]
        await until(lambda: all(isinstance(events[-1], Answered) for _, events in calls if events))
        await until(lambda: all(events for _, events in calls))
        for session, _ in calls:
            session.hangup()
        await until(lambda: sum(isinstance(event, Ended) for event in bob.events) == 200)


async def test_tcp_calls_share_one_connection() -> None:
    async with parties() as (alice, bob):
        calls = [alice.call(bob.port("tcp"), "tcp") for _ in range(5)]
        await until(lambda: all(events and isinstance(events[-1], Answered) for _, events in calls))
        assert alice.ua.layer.transports[1].connection_count == 1
        # The called side uses the connection it was called over, in spite of the port in the Contact.
        for session in bob.inbound:
            session.hangup()
        await until(lambda: all(isinstance(events[-1], Ended) for _, events in calls))
        assert bob.ua.layer.transports[1].connection_count == 1


async def test_a_name_is_looked_up() -> None:
    async with parties() as (alice, bob):
        session, events = alice.call(bob.port("udp"), "udp", host="localhost")
        await until(lambda: events and isinstance(events[-1], Answered | Failed))
        assert isinstance(events[-1], Answered)
        session.hangup()


async def test_a_name_that_does_not_exist_fails() -> None:
    async with parties() as (alice, _):
        _, events = alice.call(5060, "udp", host="no-such-host.invalid")
        await until(lambda: events)
        assert isinstance(events[0], Failed)
        assert events[0].cause == "resolve"


async def test_a_call_that_is_hung_up_while_its_name_is_looked_up() -> None:
    class Slow(Resolver):
        def locate(self, wanted: Destination, found: Found) -> None:
            asyncio.get_running_loop().call_later(0.1, super().locate, wanted, found)

    async with parties() as (alice, bob):
        slow = Slow()
        slow.families = {"udp": (4,)}
        alice.ua.router.resolver = slow
        session, events = alice.call(bob.port("udp"), "udp", host="localhost")
        session.hangup()
        await until(lambda: events)
        assert isinstance(events[0], Failed)
        assert events[0].cause == "cancelled"
        await until(lambda: not alice.ua.sessions)
        assert bob.inbound == [], "the INVITE never left"


async def test_a_refused_connection_fails_at_once() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Bound but not listening: connections are refused.
        async with parties() as (alice, _):
            _, events = alice.call(held.getsockname()[1], "tcp")
            await until(lambda: events)
            assert isinstance(events[0], Failed)
            assert (events[0].status, events[0].cause) == (503, "transport")


async def test_keep_alives_are_answered_and_messages_come_in_pieces() -> None:
    async with parties() as (_, bob):
        reader, writer = await asyncio.open_connection("127.0.0.1", bob.port("tcp"))
        writer.write(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.readexactly(2), DEADLINE_S) == b"\r\n"
        request = (
            b"OPTIONS sip:127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1:1;branch=z9hG4bKx;rport\r\n"
            b"From: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\n"
            b"Max-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
        )
        for at in range(0, len(request), 50):
            writer.write(request[at : at + 50])
            await writer.drain()
            await time_passes(0.002)
        assert (await asyncio.wait_for(reader.readline(), DEADLINE_S)).startswith(b"SIP/2.0 200")
        writer.close()
        await writer.wait_closed()


async def test_a_stream_that_cannot_be_framed_is_closed() -> None:
    async with parties() as (_, bob):
        reader, writer = await asyncio.open_connection("127.0.0.1", bob.port("tcp"))
        writer.write(b"x" * 200_000)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), DEADLINE_S) == b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_connections_beyond_the_limit_are_closed() -> None:
    async with parties(streams=StreamLimits(max_connections=2)) as (_, bob):
        opened = [await asyncio.open_connection("127.0.0.1", bob.port("tcp")) for _ in range(3)]
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(opened[2][0].read(), DEADLINE_S) == b""
        assert bob.ua.layer.transports[1].connection_count == 2
        for _, writer in opened:
            writer.close()


async def test_a_silent_connection_makes_room_for_a_new_one() -> None:
    limits = StreamLimits(max_connections=1, evict_after_s=0.0)
    async with parties(streams=limits) as (_, bob):
        first = await asyncio.open_connection("127.0.0.1", bob.port("tcp"))
        await until(lambda: bob.ua.layer.transports[1].connection_count == 1)
        second = await asyncio.open_connection("127.0.0.1", bob.port("tcp"))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(first[0].read(), DEADLINE_S) == b""
        second[1].write(b"\r\n\r\n")
        assert await asyncio.wait_for(second[0].readexactly(2), DEADLINE_S) == b"\r\n"
        for _, writer in (first, second):
            writer.close()


async def test_datagrams_wait_while_the_socket_is_full_and_go_out_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.setblocking(False)
        transport = UdpTransport(Listen("udp", "127.0.0.1", 0), lambda data, flow, known: None)
        await transport.open()
        flow = transport.flow_to(peer.getsockname())
        with monkeypatch.context() as full:
            full.setattr("sip.aio.udp.wire.send_datagram", lambda *_: errno.EAGAIN)
            assert flow.send(b"one")
            assert flow.send(b"two")
        loop = asyncio.get_running_loop()
        assert await asyncio.wait_for(loop.sock_recv(peer, 100), DEADLINE_S) == b"one"
        assert await asyncio.wait_for(loop.sock_recv(peer, 100), DEADLINE_S) == b"two"
        with monkeypatch.context() as full:
            full.setattr("sip.aio.udp.wire.send_datagram", lambda *_: errno.EAGAIN)
            assert flow.send(b"three")
            transport.close()
        assert not flow.send(b"four")


async def test_an_idle_connection_is_closed() -> None:
    async with parties(streams=StreamLimits(idle_s=0.1)) as (_, bob):
        reader, writer = await asyncio.open_connection("127.0.0.1", bob.port("tcp"))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), DEADLINE_S) == b""
        writer.close()


async def test_an_address_in_use_is_an_error_that_leaves_nothing_bound() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        first = Listen("tcp", "127.0.0.1", 0)
        ua = UserAgent([first, Listen("udp", *held.getsockname())], on_invite=lambda session: None)
        with pytest.raises(OSError):
            await ua.start()


@pytest.mark.parametrize("wildcard", ["0.0.0.0", "::"])
async def test_a_wildcard_needs_an_address_to_tell_peers(wildcard: str) -> None:
    ua = UserAgent([Listen("udp", wildcard, 0)], on_invite=lambda session: None)
    with pytest.raises(ValueError, match="advertise"):
        await ua.start()
    told = UserAgent([Listen("udp", "0.0.0.0", 0, advertise="127.0.0.1")], on_invite=lambda session: None)
    await told.start()
    await told.close()


async def test_an_unknown_transport_is_refused_by_name() -> None:
    ua = UserAgent([Listen("sctp", "127.0.0.1", 0)], on_invite=lambda session: None)
    with pytest.raises(ValueError, match="sctp"):
        await ua.start()


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0, 0.0])
async def test_a_clock_that_is_set_says_nothing_of_how_long_datagrams_waited(
    monkeypatch: pytest.MonkeyPatch, set_by_s: float
) -> None:
    waits: list[float] = []
    read: list[bytes] = []
    transport = UdpTransport(
        Listen("udp", "127.0.0.1", 0), lambda data, flow, known: read.append(data), waits.append
    )
    await transport.open()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        # More than are read in one go: of the first of the next turn it is asked how long it waited.
        for _ in range(2 * DATAGRAMS_PER_WAKE):
            sender.sendto(b"x", ("127.0.0.1", transport.address.port))
        now = time.time
        monkeypatch.setattr("sip.aio.udp.time.time", lambda: now() + set_by_s)
        await until(lambda: len(read) == 2 * DATAGRAMS_PER_WAKE)
        monkeypatch.undo()
    transport.close()
    told = [wait for wait in waits if wait != 0.0]
    assert all(0.0 <= wait < DEADLINE_S for wait in waits) and bool(told) == (set_by_s == 0.0)
