"""
Far ends that misbehave: gateways and callers in a thread, which do to a message what their manner says.

A manner is a function of the peer, a message and where it came from. It answers with `Peer.say`, or does not.
"""

from __future__ import annotations

import random
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from tests.faults.oracle.sip_text import Message, answer, branch, describe, request
from tests.support.background import Background
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

__all__ = [
    "Manner",
    "Peer",
    "answers",
    "deaf_after",
    "every_second",
    "invite",
    "refuses",
    "rubbish",
    "silent",
    "within",
]

_HOST: Final = "127.0.0.1"
_POLL_S: Final = 0.1
Fields = Sequence[tuple[str, str]]


class Peer(Background):
    """
    A SIP address by UDP on 127.0.0.1.

    Attributes:
        heard: Every request and answer, with the moment it came (monotonic).
        manner: What it does about them.
    """

    def __init__(self, manner: Manner, port: int = 0) -> None:
        super().__init__()
        self.port = port or free_port()
        self.manner = manner
        self.heard: list[tuple[float, Message]] = []
        self.tag = secrets.token_hex(4)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def open(self) -> None:
        """Open the port."""
        self._socket.bind((_HOST, self.port))
        self._socket.settimeout(_POLL_S)

    def close(self) -> None:
        """Leave the port."""
        self._socket.close()

    def came(self, method: str) -> list[float]:
        """When requests of a method came, repetitions included."""
        return [at for at, message in list(self.heard) if message.status is None and message.method == method]

    def told(self, method: str) -> list[int]:
        """The statuses of answers to a method."""
        found = [message for _, message in list(self.heard) if message.method == method]
        return [message.status for message in found if message.status is not None]

    def is_told(self, method: str, status: int) -> bool:
        """Return True if an answer arrives within the patience."""
        return wait_until(lambda: status in self.told(method), PATIENCE_S)

    # What it says.

    def say(
        self, to: Message, where: tuple[str, int], status: int, headers: Fields = (), body: str = ""
    ) -> None:
        """Answer a request."""
        contact = [("Contact", f"<sip:peer@{_HOST}:{self.port}>")] if 100 < status < 300 else []
        self.send(answer(to, status, self.tag, [*contact, *headers], body), where)

    def send(self, data: bytes, where: tuple[str, int]) -> None:
        """Send anything."""
        self._socket.sendto(data, where)

    def call(self, server_port: int, number: str, call_id: str = "") -> bytes:
        """Send an INVITE, once; it is returned for those who send it again."""
        data = invite(self.port, server_port, number, self.tag, call_id=call_id)
        self.send(data, (_HOST, server_port))
        return data

    def within(self, method: str, answered: Message, where: tuple[str, int], cseq: int = 1) -> None:
        """Send a request within the dialog that an answer to our INVITE has made."""
        self.send(within(method, answered, self.port, cseq), where)

    def work(self) -> None:
        """Hear what comes, and do what the manner says."""
        while not self.over.is_set():
            try:
                data, where = self._socket.recvfrom(65535)
            except TimeoutError:
                continue
            except OSError:
                continue  # Somebody we sent to is not there any more.
            message = Message.read(data)
            if message is not None:
                self.heard.append((time.monotonic(), message))
                self.manner(self, message, where)


def invite(
    own_port: int, server_port: int, number: str, tag: str, *, call_id: str = "", transport: str = "UDP"
) -> bytes:
    """An INVITE of who listens on a port of 127.0.0.1."""
    own, to = f"{_HOST}:{own_port}", f"sip:{number}@{_HOST}:{server_port}"
    headers = [
        ("Via", f"SIP/2.0/{transport} {own};branch={branch()};rport"),
        ("Max-Forwards", "70"),
        ("From", f"<sip:+919876543210@{own}>;tag={tag}"),
        ("To", f"<{to}>"),
        ("Call-ID", call_id or secrets.token_hex(8)),
        ("CSeq", "1 INVITE"),
        ("Contact", f"<sip:peer@{own};transport={transport.lower()}>"),
    ]
    return request(f"INVITE {to} SIP/2.0", headers, describe(free_port()))


def within(method: str, answered: Message, own_port: int, cseq: int = 1, transport: str = "UDP") -> bytes:
    """A request within the dialog that an answer to an INVITE has made."""
    via = ("Via", f"SIP/2.0/{transport} {_HOST}:{own_port};branch={branch()};rport")
    kept = [(name, answered.first(name.lower())) for name in ("From", "To", "Call-ID")]
    headers = [via, ("Max-Forwards", "70"), *kept, ("CSeq", f"{cseq} {method}")]
    return request(f"{method} {answered.target} SIP/2.0", headers)


Manner = Callable[[Peer, Message, tuple[str, int]], None]


def silent(peer: Peer, message: Message, where: tuple[str, int]) -> None:
    """Say nothing."""


def answers(peer: Peer, message: Message, where: tuple[str, int]) -> None:
    """Accept every call at once and answer all requests; as a caller acknowledge the answer."""
    if message.status is not None:
        if message.method == "INVITE" and 200 <= message.status < 300:
            peer.within("ACK", message, where)
    elif message.method == "INVITE":
        peer.say(message, where, 200, body=describe(free_port()))
    elif message.method != "ACK":
        peer.say(message, where, 200)


def refuses(status: int, headers: Fields = ()) -> Manner:
    """Refuse every request with a status."""

    def manner(peer: Peer, message: Message, where: tuple[str, int]) -> None:
        if message.status is None and message.method != "ACK":
            peer.say(message, where, status, headers)

    return manner


def every_second(manner: Manner) -> Manner:
    """Leave the first, the third, the fifth INVITE unanswered, repetitions included."""

    def sometimes(peer: Peer, message: Message, where: tuple[str, int]) -> None:
        if message.status is not None or message.method != "INVITE" or len(peer.came("INVITE")) % 2 == 0:
            manner(peer, message, where)

    return sometimes


def rubbish(seed: int) -> Manner:
    """Answer every request with what is no answer to it: noise, half a response, one to somebody else."""
    chance = random.Random(seed)

    def manner(peer: Peer, message: Message, where: tuple[str, int]) -> None:
        if message.status is not None:
            return
        good = answer(message, 200, peer.tag, [("Contact", f"<sip:peer@{_HOST}:{peer.port}>")])
        for data in (
            chance.randbytes(chance.randrange(1, 400)),
            good[: chance.randrange(1, 80)],
            good.replace(b"branch=z9hG4bK", b"branch=z9hG4bKx"),
            good.replace(b"\r\nCseq: ", b"\r\nCseq: x"),
            good.replace(b"SIP/2.0 200", b"SIP/2.0 99999"),
            good.replace(b"\r\nVia:", b"\r\nVia: \xff\x00;"),
        ):
            peer.send(data, where)

    return manner


def deaf_after(*statuses: int, headers: Fields = ()) -> Manner:
    """Answer an INVITE with these responses, and ignore everything after them, as if switched off."""

    def manner(peer: Peer, message: Message, where: tuple[str, int]) -> None:
        if message.status is None and message.method == "INVITE" and len(peer.came("INVITE")) == 1:
            for status in statuses:
                described = describe(free_port()) if status == 200 else ""
                peer.say(message, where, status, headers if status == 200 else (), described)

    return manner
