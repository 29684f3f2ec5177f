"""TCP connections that break in the middle of calls: a dialog does not belong to a connection."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.oracle.sip_text import Message, answer, describe
from tests.faults.peers import Peer, answers, deaf_after, invite, within
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

_RESET = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    with Exchange(tmp_path_factory.mktemp("connections")) as running:
        yield running


class Line:
    """One TCP connection, read message by message."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(PATIENCE_S)
        self._buffer = b""

    @classmethod
    def to(cls, port: int) -> Line:
        """Connect to the server."""
        return cls(socket.create_connection(("127.0.0.1", port)))

    def send(self, data: bytes) -> None:
        """Send a message."""
        self._connection.sendall(data)

    def read(self) -> Message:
        """The next message."""
        while True:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            message = Message.read(head + found) if found and head.strip() else None
            if message is not None:
                length = int(message.first("content-length") or 0)
                if len(rest) >= length:
                    self._buffer = rest[length:]
                    message.body = rest[:length].decode()
                    return message
            more = self._connection.recv(65536)
            assert more, "the connection was closed"
            self._buffer += more

    def read_until(self, status: int) -> Message:
        """The answer with a status; others are passed over."""
        while (message := self.read()).status != status:
            assert message.status is None or message.status < status, message
        return message

    def reset(self) -> None:
        """Break it: what was not read is lost, and the other side is told so."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._connection.close()


@contextmanager
def call_up(
    exchange: Exchange, call_id: str, *, broken_early: bool = False
) -> Iterator[tuple[Message, socket.socket]]:
    """A call over TCP whose connection breaks; its answer, and where the caller listens."""
    port = exchange.server.sip_port
    manner = deaf_after(180) if broken_early else answers
    with (
        Peer(manner, exchange.callee_port) as callee,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        listening.settimeout(PATIENCE_S)
        own = listening.getsockname()[1]
        line = Line.to(port)
        line.send(invite(own, port, FORWARDED, "tcp", call_id=call_id, transport="TCP"))
        if broken_early:
            line.read_until(180)
            line.reset()
            callee.manner = answers
            (_, ringing), *_ = callee.heard
            callee.say(ringing, ("127.0.0.1", port), 200, body=describe(free_port()))
            line = Line(listening.accept()[0])
        answered = line.read_until(200)
        line.send(within("ACK", answered, own, transport="TCP"))
        assert wait_until(lambda: exchange.calls(per_page=1)[0][0]["status"] == "in-progress", PATIENCE_S)
        line.reset()
        yield answered, listening
        exchange.assert_clean()
        (call,), _ = exchange.calls(per_page=1)
        assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING")


def test_a_caller_comes_back_by_another_connection(exchange: Exchange) -> None:
    """A call whose TCP connection is reset goes on, and is ended by its caller over another one."""
    with call_up(exchange, "back") as (answered, listening):
        line = Line.to(exchange.server.sip_port)
        line.send(within("BYE", answered, listening.getsockname()[1], 2, "TCP"))
        line.read_until(200)


def test_the_server_comes_back_by_another_connection(exchange: Exchange) -> None:
    """A call whose TCP connection is reset is ended by the server over one of its own, to the Contact."""
    with call_up(exchange, "ours") as (_, listening):
        (call,), _ = exchange.calls(per_page=1)
        path = f"/v1/Accounts/{exchange.account.account_sid}/Calls/{call['call_sid']}"
        assert exchange.server.request("DELETE", path, exchange.account.api_key).status < 300
        line = Line(listening.accept()[0])
        bye = line.read()
        assert bye.method == "BYE"
        line.send(answer(bye, 200, "tcp"))


def test_an_answer_finds_its_way_when_the_connection_of_the_question_broke(exchange: Exchange) -> None:
    """An answer whose connection broke while it rang comes over a new one, to the address in the Via."""
    with call_up(exchange, "early", broken_early=True) as (answered, listening):
        line = Line.to(exchange.server.sip_port)
        line.send(within("BYE", answered, listening.getsockname()[1], 2, "TCP"))
        line.read_until(200)
