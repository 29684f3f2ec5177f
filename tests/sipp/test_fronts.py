"""Calls by way of a real Kamailio that no node takes, and those that are given up."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest

from tests.faults.oracle.sip_text import Message, answer
from tests.faults.oracle.sip_text import request as text_of
from tests.sipp.exchange import FORWARDED
from tests.support.kamailio import Front, asked, needs_kamailio
from tests.support.ports import free_port

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = needs_kamailio


class FullNode:
    """
    A node that is up and refuses all calls with 503.

    With `late` it does so only when they are cancelled; with `mute` it leaves them without an answer.
    """

    def __init__(self, *, late: bool = False, mute: bool = False) -> None:
        self.refused = 0
        self._late, self._mute = late, mute
        self._asked: dict[str, Message] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", free_port()))
        self.address = "sip:{}:{}".format(*self._socket.getsockname())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        self._socket.settimeout(0.1)
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                data, peer = self._socket.recvfrom(65_535)
                request = Message.read(data)
                if request is not None and request.method in ("OPTIONS", "INVITE", "CANCEL"):
                    self._answer(request, peer)

    def _answer(self, request: Message, peer: tuple[str, int]) -> None:
        if self._mute and request.method != "OPTIONS":
            return
        if request.method == "INVITE" and self._late:
            self._asked[request.first("call-id")] = request
            self._socket.sendto(answer(request, 180, "full"), peer)
            return
        invite = request if request.method == "INVITE" else self._asked.pop(request.first("call-id"), None)
        if request.method != "INVITE":
            self._socket.sendto(answer(request, 200, "full"), peer)
        if invite is not None:
            self.refused += 1
            self._socket.sendto(answer(invite, 503, "full"), peer)


@pytest.mark.parametrize("mute", [False, True])
def test_a_call_that_no_node_takes_is_refused_with_503(tmp_path: Path, mute: bool) -> None:
    """Every node is asked, and the caller learns that it may come again; it does not see a failure, 500."""
    nodes = [FullNode(mute=mute), FullNode(mute=mute)]
    try:
        with Front(tmp_path) as front:
            front.start([node.address for node in nodes])
            status, response = asked(front.address, "INVITE", f"sip:{FORWARDED}@{front.host}")
        assert status == 503 and "Retry-After: 5\r\n" in response
        assert [node.refused for node in nodes] == ([0, 0] if mute else [1, 1])
    finally:
        for node in nodes:
            node.close()


@pytest.mark.parametrize(
    ("mute", "status"),
    [
        pytest.param(False, 503, id="a refusal that crosses it"),
        pytest.param(True, 487, id="a node that is down"),
    ],
)
def test_a_caller_that_cancels_sees_no_failure(tmp_path: Path, mute: bool, status: int) -> None:
    """It has given up, so no other node is asked; and it does not see a failure, 500."""
    nodes = [FullNode(late=not mute, mute=mute), FullNode(late=not mute, mute=mute)]
    try:
        with Front(tmp_path) as front, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            front.start([node.address for node in nodes])
            caller.bind(("127.0.0.1", 0))
            caller.settimeout(15.0)
            caller.sendto(request_of(caller, "INVITE", front.host), (front.host, front.port))
            # Without a response of its node the front ends a call at its CANCEL, whatever the node says.
            for provisional in (100,) if mute else (100, 180):
                assert received(caller).status == provisional
            caller.sendto(request_of(caller, "CANCEL", front.host), (front.host, front.port))
            # In either order; a final one is repeated until its ACK.
            statuses: dict[str, int] = {}
            while statuses.keys() != {"CANCEL", "INVITE"}:
                response = received(caller)
                if response.status is not None and response.status >= 200:
                    statuses[response.method] = response.status
            assert statuses == {"CANCEL": 200, "INVITE": status}
            assert sum(node.refused for node in nodes) == (0 if mute else 1)
    finally:
        for node in nodes:
            node.close()


def test_a_final_response_is_repeated_until_its_ack(tmp_path: Path) -> None:
    """A caller that hears nothing for longer than a node may be silent still learns of the end."""
    nodes = [FullNode(), FullNode()]
    try:
        with Front(tmp_path) as front, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            front.start([node.address for node in nodes])
            caller.bind(("127.0.0.1", 0))
            caller.settimeout(15.0)
            caller.sendto(request_of(caller, "INVITE", front.host), (front.host, front.port))
            # After 0, 0.5, 1.5 and 3.5 s.
            copies = 0
            while copies < 4:
                copies += received(caller).status == 503
    finally:
        for node in nodes:
            node.close()


def test_a_carrier_may_take_longer_to_answer_than_a_node(tmp_path: Path) -> None:
    """It is asked for four seconds, as without a front; then its node learns that it is silent."""
    up = FullNode()
    try:
        with (
            Front(tmp_path) as front,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as node,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as carrier,
        ):
            for one in (node, carrier):
                one.bind(("127.0.0.1", 0))
                one.settimeout(15.0)
            front.start([up.address, "sip:{}:{}".format(*node.getsockname())])
            to = "{}:{}".format(*carrier.getsockname())
            node.sendto(request_of(node, "INVITE", to), (front.host, front.port))
            # After 0, 0.5, 1.5 and 3.5 s.
            for _ in range(4):
                assert received(carrier).method == "INVITE"
            responses = iter(lambda: received(node), None)
            finals = (told for told in responses if (told.status or 0) >= 200)
            assert next(finals).status == 408
    finally:
        up.close()


def test_a_cancel_of_nothing_is_answered(tmp_path: Path) -> None:
    """The front has forgotten the call, or was restarted: its caller need not wait for an end."""
    with Front(tmp_path) as front:
        node = FullNode()
        try:
            front.start([node.address])
            assert asked(front.address, "CANCEL", f"sip:{FORWARDED}@{front.host}")[0] == 481
        finally:
            node.close()


def received(party: socket.socket) -> Message:
    """The next message that the front sends."""
    message = Message.read(party.recv(65_535))
    assert message is not None
    return message


def request_of(party: socket.socket, method: str, to: str) -> bytes:
    """An INVITE of the socket's, or its CANCEL."""
    host, port = party.getsockname()
    uri = f"sip:{FORWARDED}@{to}"
    headers = [
        ("Via", f"SIP/2.0/UDP {host}:{port};branch=z9hG4bK{port};rport"),
        ("From", f"<sip:somebody@{host}>;tag={port}"),
        ("To", f"<{uri}>"),
        ("Call-ID", f"{port}@{host}"),
        ("CSeq", f"1 {method}"),
        ("Contact", f"<sip:somebody@{host}:{port}>"),
        ("Max-Forwards", "70"),
    ]
    return text_of(f"{method} {uri} SIP/2.0", headers)
