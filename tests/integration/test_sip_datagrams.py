"""Datagrams are read and sent by the native module."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from sip.aio import udp
from sip.aio.transport import Address, Flow, Listen
from sip.aio.udp import UdpTransport
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


def test_all_that_is_there_is_read_in_order_with_its_source(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    receive, send = udp.receive_datagrams, udp.send_datagram
    assert receive(far, 32) == []
    sent = [b"", b"one", bytes(range(256)) * 200]
    for data in sent:
        assert send(near, data, address(far)) is True
    assert receive(far, 2) == [(data, address(near)) for data in sent[:2]]
    assert receive(far, 32) == [(sent[2], address(near))]
    assert receive(far, 32) == []


def test_what_cannot_be_sent_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    send = udp.send_datagram
    assert send(near, b"x" * 70_000, address(far)) is False
    assert send(near, b"x", ("::1" if "." in address(near)[0] else "127.0.0.1", 5060)) is not True
    near.close()
    assert send(near, b"x", address(far)) is False


async def test_a_datagram_that_breaks_its_reader_costs_no_other() -> None:
    seen: list[bytes] = []

    def receive(data: bytes, flow: Flow) -> None:
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
