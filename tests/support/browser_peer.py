"""A browser's side of WebRTC without a browser: ICE, DTLS, SRTP by libsrtp, and a tone in G.711."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
from collections.abc import Callable, Sequence
from hashlib import sha1
from hmac import digest
from typing import Final

from OpenSSL import SSL
from pylibsrtp import Error, Policy, Session

from media.audio.g711 import l16_to_mulaw, mulaw_to_l16
from media.webrtc.aio import make_identity
from media.webrtc.dtls import DtlsIdentity
from media.webrtc.stun import Address

__all__ = ["BrowserPeer", "binding_request", "offer_lines"]

_COOKIE: Final = 0x2112A442
_PACKET_SAMPLES: Final = 160
_PACKET_S: Final = 0.02
_CHECK_EVERY: Final = 25
"""Packets between two checks of ICE."""

_CLIENT_KEY, _SERVER_KEY = slice(0, 16), slice(16, 32)
_CLIENT_SALT, _SERVER_SALT = slice(32, 46), slice(46, 60)


def binding_request(
    username: str, password: str, *, nominates: bool = True, priority: int = 1845501695, extra: bytes = b""
) -> bytes:
    """Return a signed Binding request, as a browser sends it; `extra` are further attributes."""
    body = b"".join(
        [
            _attribute(0x0006, username.encode()),
            _attribute(0x0024, struct.pack("!I", priority)),
            _attribute(0x0025, b"") if nominates else b"",
            extra,
        ]
    )
    head = struct.pack("!HHI", 1, len(body) + 24, _COOKIE) + os.urandom(12)
    return head + body + _attribute(0x0008, digest(password.encode(), head + body, sha1))


def _attribute(name: int, value: bytes) -> bytes:
    return struct.pack("!HH", name, len(value)) + value + bytes(-len(value) % 4)


def offer_lines(fingerprint: bytes, *, codec: str = "0 PCMU/8000", events: str = "101") -> list[str]:
    """Return the lines of an offer; a test changes them."""
    number, _, name = codec.partition(" ")
    return [
        "v=0",
        "o=- 4611733 2 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0",
        f"m=audio 9 UDP/TLS/RTP/SAVPF {number} {events}",
        "c=IN IP4 0.0.0.0",
        "a=mid:0",
        f"a=rtpmap:{number} {name}",
        f"a=rtpmap:{events} telephone-event/{name.split('/')[1]}",
        "a=sendrecv",
        "a=rtcp-mux",
        "a=ice-ufrag:peer",
        "a=ice-pwd:0123456789abcdef01234567",
        f"a=fingerprint:sha-256 {fingerprint.hex(':').upper()}",
        "a=setup:actpass",
    ]


class BrowserPeer(asyncio.DatagramProtocol):
    """
    One peer connection.

    Attributes:
        heard: Decoded audio that has come, L16 at 8 kHz.
        digits: Keys to send, one after the other.
        connected: Set once the handshake is complete.
        closed: Set once the server has closed the connection.
    """

    def __init__(self, sound: bytes, *, shown: DtlsIdentity | None = None) -> None:
        self._identity = make_identity()
        self._shown = shown or self._identity
        self._sound = sound
        self._dtls = SSL.Connection(self._context())
        self._dtls.set_connect_state()
        self._dtls.set_ciphertext_mtu(1200)
        self._transport: asyncio.DatagramTransport | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._to: Address | None = None
        self._username = self._password = ""
        self._protect: Session | None = None
        self._unprotect: Session | None = None
        self._events: list[bytes] = []
        self._digit = -1
        self._sequence, self._timestamp, self._ssrc = 1, 0, int.from_bytes(os.urandom(4))
        self.heard = bytearray()
        self.packets = 0
        self.unreadable = 0
        self.cut = False
        """True while nothing reaches the server."""
        self.responded = asyncio.Event()
        self.connected = asyncio.Event()
        self.closed = asyncio.Event()

    def _context(self) -> SSL.Context:
        context = SSL.Context(SSL.DTLS_CLIENT_METHOD)
        context.set_options(SSL.OP_NO_QUERY_MTU)
        context.use_certificate(self._shown.certificate)
        context.use_privatekey(self._shown.key)
        context.set_tlsext_use_srtp(b"SRTP_AES128_CM_SHA1_80")
        return context

    def offer(self, change: Callable[[list[str]], Sequence[str]] = list) -> str:
        """Return the offer."""
        return "\r\n".join([*change(offer_lines(self._identity.fingerprint)), ""])

    async def connect(self, answer: str) -> None:
        """Begin checks, handshake and audio with the server of an answer."""
        self._read(answer, "peer")
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self._tasks.append(loop.create_task(self._run()))

    async def move(self, answer: str, ufrag: str) -> None:
        """Go on from another address, as after a change of the network, with the answer to a restart."""
        former = self._transport
        assert former is not None
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        former.close()
        self._read(answer, ufrag)
        self.send(binding_request(self._username, self._password))

    def _read(self, answer: str, ufrag: str) -> None:
        found = dict(
            line[2:].split(":", 1)
            for line in answer.splitlines()
            if line.startswith(("a=ice-ufrag", "a=ice-pwd", "a=candidate"))
        )
        _, _, _, _, host, port, *_ = found["candidate"].split()
        self._to = (host, int(port))
        self._username, self._password = f"{found['ice-ufrag']}:{ufrag}", found["ice-pwd"]

    def press(self, digit: int, *, packets: int = 5) -> None:
        """Send a key as telephone events (RFC 4733), in place of audio."""
        event = [struct.pack("!BBH", digit, 10, _PACKET_SAMPLES * (place + 1)) for place in range(packets)]
        last = struct.pack("!BBH", digit, 0x80 | 10, _PACKET_SAMPLES * packets)
        self._events += [*event, last, last, last]

    @property
    def sent(self) -> int:
        """Packets of audio and keys that were sealed so far."""
        return self._sequence - 1

    def hang_up(self) -> None:
        """Close the connection, as a page does that is left."""
        self._dtls.shutdown()
        self._flush()

    async def leave(self) -> None:
        """Free the socket without a word."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._transport is not None:
            self._transport.close()

    def send(self, datagram: bytes) -> None:
        """Send a datagram to the server, unless the network is cut."""
        assert self._transport is not None
        if not self.cut:
            self._transport.sendto(datagram, self._to)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Handle a datagram of the server."""
        if data[0] < 4:
            self.responded.set()
        elif data[0] < 64:
            self._take_dtls(data)
        elif data[1] not in range(192, 224):
            self._take_rtp(data)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due_s, turn = loop.time(), 0
        while True:
            if turn % _CHECK_EVERY == 0:
                self.send(binding_request(self._username, self._password))
            if self.responded.is_set() and not self.connected.is_set():
                self._shake_hands()
            if self._protect is not None:
                self.send(self.seal())
            turn += 1
            due_s += _PACKET_S
            await asyncio.sleep(max(0.0, due_s - loop.time()))

    def _shake_hands(self) -> None:
        try:
            self._dtls.do_handshake()
            self._agree()
        except SSL.WantReadError:
            if self._dtls.DTLSv1_get_timeout() == 0:
                self._dtls.DTLSv1_handle_timeout()
        self._flush()

    def _take_dtls(self, data: bytes) -> None:
        self._dtls.bio_write(data)
        if not self.connected.is_set():
            self._shake_hands()
            return
        try:
            self._dtls.recv(1500)
        except SSL.WantReadError:
            pass
        except (SSL.ZeroReturnError, SSL.Error):
            self.closed.set()

    def _flush(self) -> None:
        try:
            while True:
                # One record at a time is small enough for a datagram each.
                written = self._dtls.bio_read(65536)
                while written:
                    size = 13 + int.from_bytes(written[11:13])
                    self.send(written[:size])
                    written = written[size:]
        except SSL.WantReadError:
            pass

    def _agree(self) -> None:
        keys = self._dtls.export_keying_material(b"EXTRACTOR-dtls_srtp", 60)
        mine, theirs = keys[_CLIENT_KEY] + keys[_CLIENT_SALT], keys[_SERVER_KEY] + keys[_SERVER_SALT]
        self._protect = Session(Policy(key=mine, ssrc_type=Policy.SSRC_ANY_OUTBOUND))
        self._unprotect = Session(Policy(key=theirs, ssrc_type=Policy.SSRC_ANY_INBOUND))
        self.connected.set()

    def seal(self) -> bytes:
        """Return the next packet of the sound, or of a key that was pressed, encrypted."""
        assert self._protect is not None
        if self._events:
            payload, kind = self._events.pop(0), 101
            if payload[0] != self._digit:
                self._digit = payload[0]
                self._timestamp += 2 * _PACKET_SAMPLES * 8
        else:
            start = self._sequence * 2 * _PACKET_SAMPLES % (len(self._sound) - 2 * _PACKET_SAMPLES)
            payload, kind = l16_to_mulaw(self._sound[start : start + 2 * _PACKET_SAMPLES]), 0
            self._timestamp += _PACKET_SAMPLES
            self._digit = -1
        head = struct.pack("!BBHII", 0x80, kind, self._sequence & 0xFFFF, self._timestamp, self._ssrc)
        self._sequence += 1
        return self._protect.protect(head + payload)

    def talk_alone(self, packets: int, patience_s: float) -> int:
        """
        Send audio, though nothing else of this process runs, until so many packets have come.

        Returns how many came.
        """
        assert self._transport is not None and self._to is not None
        before, descriptor = self.packets, self._transport.get_extra_info("socket").fileno()
        with socket.socket(fileno=os.dup(descriptor)) as own:
            for _ in range(round(patience_s / _PACKET_S)):
                own.sendto(self.seal(), self._to)
                while self.packets - before < packets and select.select([own], [], [], _PACKET_S)[0]:
                    self.datagram_received(own.recv(2048), self._to)
                if self.packets - before >= packets:
                    break
        return self.packets - before

    def _take_rtp(self, data: bytes) -> None:
        if self._unprotect is None:
            return
        try:
            packet = self._unprotect.unprotect(data)
        except Error:
            self.unreadable += 1
            return
        self.packets += 1
        if packet[1] & 0x7F == 0:
            self.heard += mulaw_to_l16(packet[12:])
