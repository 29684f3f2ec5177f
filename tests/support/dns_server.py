"""A small real name server on loopback: a zone of records, and everything a bad day does to answers."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
from typing import Literal

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from tests.support.background import Background
from tests.support.ports import free_port

Mode = Literal["well", "silent", "failing", "garbage", "truncated"]


class DnsServer(Background):
    """
    Answers over UDP and TCP on one port of 127.0.0.1, in a thread of its own.

    `add` fills the zone; names of other types, and other names, get a negative answer with an SOA record
    whose minimum is `negative_ttl`. `asked` lists the questions as `NAME TYPE`, with `/tcp` if so.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self.port = port or free_port()
        self.mode: Mode = "well"
        self.delay_s = 0.0
        self.negative_ttl: int | None = 30
        self.asked: list[str] = []
        self._zone: dict[tuple[str, str], tuple[int, list[str]]] = {}
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    def open(self) -> None:
        """Open the port."""
        self._tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._udp.bind(self.address)
        self._tcp.bind(self.address)
        self._tcp.listen()

    def close(self) -> None:
        """Leave the port."""
        self._udp.close()
        self._tcp.close()

    def add(self, name: str, kind: str, *values: str, ttl: int = 60) -> None:
        """Set the records of a name and type."""
        self._zone[(name.lower().rstrip("."), kind)] = (ttl, list(values))

    def remove(self, name: str, kind: str) -> None:
        self._zone.pop((name.lower().rstrip("."), kind), None)

    def count(self, question: str) -> int:
        return self.asked.count(question)

    def work(self) -> None:
        """Answer questions."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._udp, selectors.EVENT_READ)
            selector.register(self._tcp, selectors.EVENT_READ)
            while not self.over.is_set():
                for key, _ in selector.select(0.02):
                    with contextlib.suppress(OSError, dns.exception.DNSException):
                        if key.fileobj is self._udp:
                            self._take_datagram()
                        else:
                            self._take_connection()

    def _take_datagram(self) -> None:
        data, source = self._udp.recvfrom(4096)
        reply = self._reply(data, "")
        if reply is not None:
            self._udp.sendto(reply, source)

    def _take_connection(self) -> None:
        connection, _ = self._tcp.accept()
        with connection:
            connection.settimeout(1.0)
            (length,) = struct.unpack("!H", connection.recv(2))
            reply = self._reply(connection.recv(length), "/tcp")
            if reply is not None:
                connection.sendall(struct.pack("!H", len(reply)) + reply)

    def _reply(self, data: bytes, over: str) -> bytes | None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        kind = dns.rdatatype.to_text(question.rdtype)
        self.asked.append(f"{name} {kind}{over}")
        if self.over.wait(self.delay_s) or self.mode == "silent":
            return None
        if self.mode == "garbage":
            return data[:2] + b"\xff" * 40
        reply = dns.message.make_response(query)
        if self.mode == "failing":
            reply.set_rcode(dns.rcode.SERVFAIL)
        elif self.mode == "truncated" and not over:
            reply.flags |= dns.flags.TC
        else:
            self._fill(reply, name, kind)
        return reply.to_wire()

    def _fill(self, reply: dns.message.Message, name: str, kind: str) -> None:
        for _ in range(20):  # A loop of aliases ends here, with the loop in the answer.
            alias = self._zone.get((name, "CNAME"))
            if alias is None or (name, kind) in self._zone:
                break
            reply.answer.append(dns.rrset.from_text(name + ".", alias[0], "IN", "CNAME", *alias[1]))
            name = alias[1][0].lower().rstrip(".")
        found = self._zone.get((name, kind))
        if found is not None:
            reply.answer.append(dns.rrset.from_text(name + ".", found[0], "IN", kind, *found[1]))
            return
        if not any(known == name for known, _ in self._zone):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        if self.negative_ttl is not None:
            soa = f"ns.test. admin.test. 1 3600 600 86400 {self.negative_ttl}"
            reply.authority.append(dns.rrset.from_text("test.", 3600, "IN", "SOA", soa))
