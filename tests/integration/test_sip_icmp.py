"""Requests to ports at which nobody listens, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from sip import Destination, Ended, Failed, NameAddr, OutboundInvite, SessionEvent, SipUri
from sip.aio import InboundSession, Listen, UserAgent
from sip.aio.icmp import IcmpError
from sip.aio.transport import Flow
from sip.aio.udp import UdpTransport
from tests.support.ports import free_port
from tests.support.virtual_time import VirtualTimeLoop
from tests.support.waiting import PATIENCE_S, time_passes, until

SDP = b"v=0\r\n"
LOOPBACKS = ["127.0.0.1", "::1"]


class Party:
    """A user agent on loopback that answers calls, and the events of all its sessions."""

    def __init__(self, listen: Listen) -> None:
        self.events: list[SessionEvent] = []
        self.ua = UserAgent([listen], on_invite=self._answer)

    def _answer(self, session: InboundSession) -> None:
        session.on_event = self.events.append
        session.answer(SDP)

    def call(self, transport: str, host: str, port: int) -> "tuple[list[SessionEvent], Callable[[], None]]":
        events: list[SessionEvent] = []
        address = NameAddr.parse("<sip:alice@127.0.0.1>")
        destination = Destination(transport, host, port)
        uri = SipUri("sip", "bob", host=host, port=port)
        invite = OutboundInvite(uri=uri, from_=address, to=address, destination=destination, body=SDP)
        session = self.ua.invite(invite, events.append)
        return events, session.hangup


@asynccontextmanager
async def party(listen: Listen) -> AsyncIterator[Party]:
    party = Party(listen)
    await party.ua.start()
    try:
        yield party
        await until(lambda: not party.ua.sessions)
    finally:
        await party.ua.close()


@pytest.mark.parametrize("host", LOOPBACKS)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_a_call_to_a_dead_port_ends_within_a_second(transport: str, host: str) -> None:
    clock = asyncio.get_running_loop().time
    async with party(Listen(transport, host, 0)) as alice:
        began_s = clock()
        events, _ = alice.call(transport, host, free_port())
        await until(lambda: events)
        [failed] = events
        assert isinstance(failed, Failed)
        assert (failed.status, failed.cause) == (503, "transport")
        assert "refused" in failed.reason
        assert clock() - began_s < 1.0  # By the virtual clock.


async def test_a_ping_of_a_dead_port_ends_within_a_second() -> None:
    clock = asyncio.get_running_loop().time
    async with party(Listen("udp", "127.0.0.1", 0)) as alice:
        began_s = clock()
        assert await alice.ua.probes.probe(Destination("udp", "127.0.0.1", free_port())) is None
        assert clock() - began_s < 1.0


async def test_a_port_that_is_back_within_300_ms_gets_the_call() -> None:
    port = free_port()
    async with party(Listen("udp", "127.0.0.1", 0)) as alice:
        events, hang_up = alice.call("udp", "127.0.0.1", port)
        await time_passes(0.3)
        assert events == []
        async with party(Listen("udp", "127.0.0.1", port)) as bob:
            await until(lambda: events)
            assert type(events[0]).__name__ == "Answered"
            hang_up()
            await until(lambda: bob.events and isinstance(bob.events[-1], Ended))


@pytest.mark.parametrize("absence_s", [0.3, 5.0])
async def test_a_restart_of_the_far_end_costs_no_bye(absence_s: float) -> None:
    async with party(Listen("udp", "127.0.0.1", 0)) as alice, party(Listen("udp", "127.0.0.1", 0)) as bob:
        events, hang_up = alice.call("udp", "127.0.0.1", bob.ua.addresses[0].port)
        await until(lambda: bob.events)
        [transport] = bob.ua.layer.transports
        transport.close()
        hang_up()
        await time_passes(absence_s)
        assert not any(isinstance(event, Ended) for event in bob.events)
        await transport.open()
        await until(lambda: isinstance(bob.events[-1], Ended))


@pytest.mark.parametrize("new_loop", [VirtualTimeLoop, asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("host", LOOPBACKS)
def test_errors_are_reported_and_hinder_no_other_datagram(
    host: str, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Every loop goes on watching the socket, which polls as broken while an error waits."""
    errors: list[IcmpError] = []
    received: list[bytes] = []

    def receive(data: bytes, flow: Flow, known: bool) -> None:
        received.append(data)

    async def run() -> None:
        transport = UdpTransport(Listen("udp", host, 0), receive, on_error=errors.append)
        await transport.open()
        loop, dead = asyncio.get_running_loop(), (host, free_port())
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as peer:
            peer.bind((host, 0))
            peer.setblocking(False)
            for turn in range(5):
                assert transport.flow_to(dead).send(b"lost %d" % turn)
                assert transport.flow_to(dead).send(b"again %d" % turn)
                assert transport.flow_to(peer.getsockname()[:2]).send(b"there %d" % turn)
                assert await asyncio.wait_for(loop.sock_recv(peer, 100), PATIENCE_S) == b"there %d" % turn
                peer.sendto(b"back %d" % turn, (host, transport.address.port))
                # The lambda is called within its turn only.
                await until(lambda: len(errors) == 2 * turn + 2 and len(received) == turn + 1)  # noqa: B023
        transport.close()
        assert received == [b"back %d" % turn for turn in range(5)]
        assert {error.remote for error in errors} == {dead}
        assert [error.quoted for error in errors[-2:]] == [b"lost 4", b"again 4"]
        assert {error.reason for error in errors} == {"Connection refused"}

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
