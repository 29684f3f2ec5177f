"""Datagrams are read and sent by the native module."""

import asyncio
import errno
import socket
from collections.abc import Iterator

import pytest

from sip._wire import DatagramReader, send_datagram
from sip.aio.transport import Address, Flow, Listen
from sip.aio.udp import UdpTransport
from sip.protection.rate_limits import Protection, ProtectionSettings
from tests.support.waiting import until

LOOPBACKS = ["127.0.0.1", "::1"]


@pytest.fixture(params=LOOPBACKS)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as near, socket.socket(family, socket.SOCK_DGRAM) as far:
        for sock in (near, far):
            sock.bind((request.param, 0))
            sock.setblocking(False)
        yield near, far


def address(sock: socket.socket) -> Address:
    host, port = sock.getsockname()[:2]
    return host, port


def send(sock: socket.socket, data: bytes, remote: Address) -> int:
    """Send one datagram; 0, or why it was refused."""
    return send_datagram(sock.fileno(), data, *remote)


def test_all_that_is_there_is_read_in_order_with_its_source(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    reader = DatagramReader(None)

    def receive(most: int) -> list[tuple[bytes, Address, bool]]:
        count = reader.receive(far.fileno(), most)
        found = [arrived for _ in range(count) if (arrived := reader.next(None, 1.0)) is not None]
        assert reader.next(None, 1.0) is None
        return found

    assert receive(32) == []
    sent = [b"zero", b"one", bytes(range(256)) * 200]
    for data in sent:
        assert send(near, data, address(far)) == 0
    assert receive(2) == [(data, address(near), True) for data in sent[:2]]
    assert receive(32) == [(sent[2], address(near), True)]
    assert receive(32) == []


def test_a_keep_alive_is_no_message(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reader = DatagramReader(None)
    for data in (b"", b"\r\n\r\n", b"\0", b"one"):
        assert send(near, data, address(far)) == 0
    assert reader.receive(far.fileno(), 32) == 4
    assert reader.next(None, 1.0) == (b"one", address(near), True)
    assert (reader.next(None, 1.0), reader.dropped) == (None, 0)


def test_each_datagram_is_judged_after_what_those_before_it_did(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    host = address(near)[0]
    guard = Protection(ProtectionSettings(), lambda _: False)
    reader = DatagramReader(guard.sources)
    for _ in range(3):
        assert send(near, b"INVITE", address(far)) == 0
    assert reader.receive(far.fileno(), 32) == 3
    assert reader.next(guard.asks, 1.0) == (b"INVITE", address(near), False)
    guard.trust(host, 1.0)
    assert reader.next(guard.asks, 1.0) == (b"INVITE", address(near), True)
    for _ in range(20):
        guard.on_auth_failure(host, 1.0)
    assert (reader.next(guard.asks, 1.0), reader.dropped) == (None, 1)
    assert guard.rejected["banned"] == 1


def test_an_application_that_fails_costs_one_datagram(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair

    def fails(host: str) -> bool:
        raise LookupError(host)

    guard = Protection(ProtectionSettings(), fails)
    reader = DatagramReader(guard.sources)
    for data in (b"one", b"two"):
        assert send(near, data, address(far)) == 0
    assert reader.receive(far.fileno(), 32) == 2
    with pytest.raises(LookupError):
        reader.next(guard.asks, 1.0)
    guard.trust(address(near)[0], 1.0)
    assert reader.next(guard.asks, 1.0) == (b"two", address(near), True)


def test_what_cannot_be_sent_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    assert send(near, b"x" * 70_000, address(far)) == errno.EMSGSIZE
    assert send(near, b"x", ("::1" if "." in address(near)[0] else "127.0.0.1", 5060)) != 0
    near.close()
    assert send(near, b"x", address(far)) == errno.EBADF


async def test_a_datagram_that_breaks_its_reader_costs_no_other() -> None:
    seen: list[bytes] = []

    def receive(data: bytes, flow: Flow, known: bool) -> None:
        seen.append(data)
        if data == b"bad":
            raise RuntimeError("a defect")

    transport = UdpTransport(Listen("udp", "127.0.0.1", 0), receive)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        await transport.open()
        try:
            for data in (b"first", b"bad", b"last"):
                peer.sendto(data, ("127.0.0.1", transport.address.port))
            await until(lambda: len(seen) == 3)
        finally:
            transport.close()
            await asyncio.sleep(0)
    assert seen == [b"first", b"bad", b"last"]


async def test_after_a_datagram_that_closes_its_socket_no_other_is_handed_over() -> None:
    seen: list[bytes] = []

    def receive(data: bytes, flow: Flow, known: bool) -> None:
        seen.append(data)
        transport.close()

    transport = UdpTransport(Listen("udp", "127.0.0.1", 0), receive)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        await transport.open()
        for data in (b"first", b"last"):
            peer.sendto(data, ("127.0.0.1", transport.address.port))
        await until(lambda: bool(seen))
    assert seen == [b"first"]


async def test_a_flood_does_not_keep_a_socket_from_being_read() -> None:
    """A turn reads on while all is dropped; what passes among that is handed over."""
    seen: list[bytes] = []
    guard = Protection(ProtectionSettings(), lambda host: host == "127.0.0.1")
    transport = UdpTransport(
        Listen("udp", "127.0.0.1", 0),
        lambda data, flow, known: seen.append(data),
        protection=guard,
    )
    await transport.open()
    target = ("127.0.0.1", transport.address.port)
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gateway,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        ):
            gateway.bind(("127.0.0.1", 0))
            stranger.bind(("127.0.0.9", 0))
            for turn in range(5):
                for _ in range(300):
                    stranger.sendto(b"OPTIONS x\r\nUser-Agent: friendly-scanner\r\n\r\n", target)
                gateway.sendto(b"good %d" % turn, target)
                await until(lambda: len(seen) == turn + 1)  # noqa: B023
            await until(lambda: sum(guard.rejected.values()) == 5 * 300)
    finally:
        transport.close()
    assert seen == [b"good %d" % turn for turn in range(5)]
    assert guard.rejected == {"scanner": 1, "banned": 5 * 300 - 1}
