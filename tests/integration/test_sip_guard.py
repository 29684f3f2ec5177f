"""The guard over real sockets, from several addresses of the loopback; and copies for a capture server."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sip import Answered, Destination, Ended, NameAddr, OutboundInvite, SessionEvent, SipUri
from sip.aio import (
    Guard,
    HepSettings,
    InboundSession,
    Listen,
    OutboundSession,
    ScreenVerdict,
    UserAgent,
)
from sip.protection.overload import OverloadSettings
from sip.protection.rate_limits import ProtectionSettings
from tests.support.phone import eventually
from tests.support.waiting import look_again
from tests.support.world import running
from tests.unit.sip.test_hep import read_chunks

GATEWAY, FLOOD, SCANNER = "127.0.0.1", "127.0.0.9", "127.0.0.8"
SDP = b"v=0\r\n"
PATIENCE_S = 40.0


async def until(condition: Callable[[], bool]) -> None:
    assert await eventually(condition, PATIENCE_S)


@contextlib.asynccontextmanager
async def guarded() -> AsyncIterator[UserAgent]:
    """A user agent that answers whatever its only gateway asks."""

    def answer(session: InboundSession) -> None:
        session.on_event = lambda event: None
        session.answer(SDP)

    server = UserAgent(
        [Listen("udp", "127.0.0.1", 0), Listen("tcp", "127.0.0.1", 0)],
        on_invite=answer,
        screen=lambda source, request: (
            ScreenVerdict.ACCEPT if source.host == GATEWAY else ScreenVerdict.FORBID
        ),
        # A slow machine is no overload here.
        guard=Guard(ProtectionSettings(), lambda host: host == GATEWAY, OverloadSettings(wait_s=60.0)),
    )
    await server.start()
    try:
        yield server
    finally:
        await server.close()


def datagram_socket(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


def request(method: str, sock: socket.socket, number: int, user: str = "100", agent: str = "x") -> bytes:
    host, port = sock.getsockname()
    return (
        f"{method} sip:{user}@127.0.0.1 SIP/2.0\r\n"
        f"Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK{number};rport\r\n"
        f"From: <sip:{user}@{host}>;tag=1\r\nTo: <sip:{user}@127.0.0.1>\r\nCall-ID: {number}@{host}\r\n"
        f"CSeq: 1 {method}\r\nMax-Forwards: 70\r\nContact: <sip:x@{host}:{port}>\r\n"
        f"User-Agent: {agent}\r\n\r\n"
    ).encode()


async def flood(server: UserAgent, count: int, per_second: int) -> int:
    """Send bad requests from one address at a rate; how many answers came back."""
    loop = asyncio.get_running_loop()
    target = (GATEWAY, server.addresses[0].port)
    answers = 0
    with datagram_socket(FLOOD) as sock:
        began = loop.time()
        sent = 0
        while sent < count:
            for _ in range(min(count, int((loop.time() - began) * per_second) + 1) - sent):
                sent += 1
                with contextlib.suppress(BlockingIOError):
                    sock.sendto(request("INVITE", sock, sent), target)
            await look_again()
        with contextlib.suppress(BlockingIOError):
            while sock.recv(65535):
                answers += 1
    return answers


class Caller:
    """The gateway: calls the server and keeps what it is told."""

    def __init__(self, server: UserAgent) -> None:
        self.server = server
        self.ua = UserAgent([Listen("udp", GATEWAY, 0)], on_invite=lambda session: session.reject(486))

    def call(self) -> tuple[OutboundSession, list[SessionEvent]]:
        events: list[SessionEvent] = []
        port = self.server.addresses[0].port
        invite = OutboundInvite(
            uri=SipUri("sip", "bob", host=GATEWAY, port=port),
            from_=NameAddr.parse("<sip:alice@127.0.0.1>"),
            to=NameAddr.parse("<sip:bob@127.0.0.1>"),
            destination=Destination("udp", GATEWAY, port),
            body=SDP,
        )
        return self.ua.invite(invite, events.append), events

    async def whole_call(self) -> None:
        session, events = self.call()
        await until(lambda: any(isinstance(event, Answered) for event in events))
        session.hangup()
        await until(lambda: isinstance(events[-1], Ended))


async def test_calls_go_on_under_five_thousand_bad_requests_a_second() -> None:
    async with guarded() as server:
        caller = Caller(server)
        await caller.ua.start()
        guard = server.guard
        assert guard is not None
        flooding = asyncio.create_task(flood(server, 10_000, 5000))
        calls = 0
        while not flooding.done():
            await caller.whole_call()
            calls += 1
        assert calls >= 10
        assert await flooding <= 1
        assert list(guard.banned) == [FLOOD]
        # The kernel may have lost some of them before anybody could judge.
        assert guard.rejected["banned"] > 1000
        await caller.ua.close()


async def test_answers_to_strangers_do_not_tell_numbers_apart() -> None:
    async with guarded() as server:
        answers = []
        for host, user in (("127.0.0.31", "100"), ("127.0.0.32", "101")):
            with datagram_socket(host) as sock:
                sent = request("INVITE", sock, 1, user)
                sock.sendto(sent, (GATEWAY, server.addresses[0].port))
                loop = asyncio.get_running_loop()
                answer = await asyncio.wait_for(loop.sock_recv(sock, 65535), PATIENCE_S)
                assert answer.startswith(b"SIP/2.0 403 ")
                assert len(answer) <= len(sent)
                answers.append(len(answer) - len(str(sock.getsockname()[1])) * 2)
        assert answers[0] == answers[1]


async def test_a_banned_source_gets_no_connection() -> None:
    async with guarded() as server:
        guard = server.guard
        assert guard is not None
        udp, tcp = (listen.port for listen in server.addresses)
        with datagram_socket(SCANNER) as sock:
            sock.sendto(request("OPTIONS", sock, 1, agent="friendly-scanner"), (GATEWAY, udp))
        await until(lambda: SCANNER in guard.banned)
        reader, writer = await asyncio.open_connection(GATEWAY, tcp, local_addr=(SCANNER, 0))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        reader, writer = await asyncio.open_connection(GATEWAY, tcp, local_addr=("127.0.0.33", 0))
        writer.write(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.read(2), PATIENCE_S) == b"\r\n"
        writer.close()


async def test_a_connection_is_cut_when_its_source_is_banned() -> None:
    async with guarded() as server:
        tcp = server.addresses[1].port
        reader, writer = await asyncio.open_connection(GATEWAY, tcp, local_addr=("127.0.0.34", 0))
        with datagram_socket("127.0.0.34") as sock:
            scan = request("OPTIONS", sock, 1, agent="sipcli/1.8").replace(b"/UDP", b"/TCP")
        writer.write(scan.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n"))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()


@pytest.mark.parametrize("password", ["", "secret"])
async def test_every_message_of_a_call_is_copied_to_the_capture_server(tmp_path: Path, password: str) -> None:
    with datagram_socket("127.0.0.1") as capture:
        settings = HepSettings("127.0.0.1", capture.getsockname()[1], 77, password)
        async with running(tmp_path, hep=settings) as world:
            await world.place({"verb": "hangup"})
            record = await world.ended()

            def parted() -> bool:
                last = world.control.trace(record.call_sid)[-1].message
                return last.startswith("SIP/2.0 200") and " BYE\r\n" in last

            # The record is there before the answer to the BYE is.
            assert await eventually(parted)
            entries = world.control.trace(record.call_sid)
            assert world.control.hep is not None
            assert world.control.hep.dropped == 0
        packets = []
        with contextlib.suppress(BlockingIOError):
            while packet := capture.recv(65535):
                packets.append(read_chunks(packet))
        assert [chunks[15].decode() for chunks in packets] == [entry.message for entry in entries]
        assert {chunks[17].decode() for chunks in packets} == {record.call_sid}
        assert {chunks.get(14, b"").decode() for chunks in packets} == {password}
        assert {int.from_bytes(chunks[12], "big") for chunks in packets} == {77}
        server_port = world.port
        for chunks, entry in zip(packets, entries, strict=True):
            ports = (int.from_bytes(chunks[7], "big"), int.from_bytes(chunks[8], "big"))
            assert ports[entry.direction == "in"] == server_port
            assert entry.peer.endswith(f":{ports[entry.direction == 'out']}")
            sent_at_us = int.from_bytes(chunks[9], "big") * 10**6 + int.from_bytes(chunks[10], "big")
            assert abs(sent_at_us - entry.at.timestamp() * 1e6) <= 1001


async def test_a_capture_server_that_is_away_costs_nothing_but_its_packets(tmp_path: Path) -> None:
    with datagram_socket("127.0.0.1") as closed:
        settings = HepSettings("127.0.0.1", closed.getsockname()[1])
    async with running(tmp_path, hep=settings) as world:
        await world.place({"verb": "hangup"})
        await world.ended()
