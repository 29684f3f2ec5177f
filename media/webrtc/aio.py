"""
The UDP socket of all browsers' legs, which the media engine reads.

A datagram's first byte tells what it is (RFC 7983): those of ICE and DTLS come here; RTP and RTCP stay in the
engine, whose streams got the keys beforehand and send by the same socket.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from media import _engine
from media.aio.engine import MediaEngine
from media.sdp.crypto import CryptoLine
from media.types import Direction, OpusSettings, RemoteMedia
from media.webrtc.descriptions import (
    BrowserOffer,
    OfferRefused,
    check_change,
    make_answer,
    make_engine_offer,
)
from media.webrtc.dtls import DtlsIdentity, DtlsServer, SrtpKeys
from media.webrtc.ice import IceCredentials, IceLite
from media.webrtc.stun import Address, BindingRequest, parse_request

log = logging.getLogger(__name__)

MAX_LEGS: Final = 2000
"""Legs at one time."""

_BATCH: Final = 64
_DATAGRAM_BYTES: Final = 2048 + 19
_BUFFER_BYTES: Final = 1 << 20
_TICK_S: Final = 0.5
# Browsers repeat their checks every 5 s at the latest, and send RTP all the time (RFC 7675 5.1).
_SILENT_S: Final = 7.0
_UNSELECTED_S: Final = 2.0
_CONNECT_S: Final = 15.0
_CERTIFICATE_DAYS: Final = 365
_SOURCE: Final = struct.Struct("!BH16s")
"""Prefix of each datagram from the engine: version of IP, port and host."""
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class LegEnd(Enum):
    """Reason why a leg ended by itself."""

    NEVER_CONNECTED = "the browser did not connect"
    NO_KEYS = "the browser connected, but agreed on no keys"
    SILENT = "nothing comes from the browser any more"
    CLOSED = "the browser closed the connection"


class BrowserLeg:
    """
    One browser's leg: its path (ICE), its keys (DTLS), and its port of the engine.

    ``on_keys`` is called once, when the handshake is complete; ``on_end`` once, if the leg ends by itself.
    """

    def __init__(
        self,
        owner: BrowserSocket,
        native: _engine.BrowserLeg,
        offer: BrowserOffer,
        ice: IceLite,
        dtls: DtlsServer,
        on_keys: Callable[[SrtpKeys], None],
        on_end: Callable[[LegEnd], None],
    ) -> None:
        self.ice = ice
        self._owner = owner
        self._native = native
        self._packets = 0
        self._selected: Address | None = None
        self._offer = offer
        self._dtls = dtls
        self._on_keys = on_keys
        self._on_end = on_end
        self._began_s = self._heard_s = asyncio.get_running_loop().time()
        self._session_id = int.from_bytes(os.urandom(4)) >> 1
        self._version = 1
        self._connected = False
        self.heard = False
        """True once ICE or DTLS heard of the browser since the last look."""

    def answer(self) -> str:
        """Return the answer for the browser."""
        owner = self._owner
        return make_answer(
            self._offer,
            owner.advertised,
            self.ice.local,
            owner.fingerprint,
            (self._session_id, self._version),
        )

    @property
    def direction(self) -> Direction:
        """Direction that the browser wants."""
        return self._offer.direction

    @property
    def codec(self) -> str:
        """Name of the agreed codec."""
        return self._offer.formats.codec.name

    def change(self, offer: BrowserOffer) -> str:
        """
        Change the path by a restart of ICE, or the direction, or both; return the answer to the offer.

        The present path is used until the browser has found another. Keys and formats stay as they are.

        Raises:
            OfferRefused: The offer changes more than that, or the browser has not connected yet.
        """
        if not self._connected:
            raise OfferRefused("must wait until the browser has connected")
        check_change(self._offer, offer)
        former, self._offer, self._version = self._offer, offer, self._version + 1
        if former.ufrag != offer.ufrag:
            ice = IceLite(_credentials(), offer.ufrag)
            ice.succeed(self.ice)
            self._owner.rename(self, ice)
            # It needs time to find the path, and has shown that it is there.
            self.heard = True
        return self.answer()

    def engine_offer(self, keys: SrtpKeys, line: CryptoLine | None = None) -> bytes:
        """Return the offer that the engine gets, or the answer with the ``line`` of its offer."""
        session = (self._session_id, self._version)
        return make_engine_offer(self._offer, self._owner.address, keys.theirs, session, line)

    def engine_settings(self, keys: SrtpKeys) -> RemoteMedia:
        """Return the settings of a stream of the engine that only sends, to this browser and for no call."""
        host, port = self._owner.address
        formats = self._offer.formats
        return RemoteMedia(
            host,
            port,
            formats.codec.name,
            formats.payload_type,
            clock_rate=formats.codec.clock_rate,
            direction="sendonly",
            opus=formats.opus or OpusSettings(),
            srtp_send=keys.ours,
            srtp_receive=keys.theirs,
        )

    def connect_engine(self, port: int) -> None:
        """Join the leg to the stream of the engine that receives at a port."""
        if not self._native.connect(self._owner.address[0], port):
            log.info("no stream receives at port %d, which a browser's leg was to be joined to", port)

    def close(self) -> None:
        """End the leg; the browser is told. Idempotent."""
        self._send(self._dtls.close())
        self._release()

    def receive_check(self, request: BindingRequest, source: Address) -> bytes | None:
        """Return the response to a check of the browser; None for a request of anybody else."""
        response = self.ice.receive(request, source)
        if response is None:
            return None
        self.heard = True
        self._native.learn(*source)
        if self.ice.selected is not None and self.ice.selected != self._selected:
            self._selected = self.ice.selected
            self._native.select(*self._selected)
        return response

    def receive_dtls(self, datagram: bytes) -> None:
        """Handle a datagram of the handshake, or the browser's end of it."""
        self._send(self._dtls.receive(datagram))
        if self._dtls.problem is not None:
            log.info("a browser's leg has no keys: %s", self._dtls.problem)
            self._finish(LegEnd.NO_KEYS)
        elif self._dtls.closed:
            self._finish(LegEnd.CLOSED)
        elif self._dtls.keys is not None and not self._connected:
            self._connected = True
            self._on_keys(self._dtls.keys)

    def look(self, now_s: float) -> None:
        """Send again what is due, and end the leg if nothing comes from the browser."""
        self._send(self._dtls.retransmit())
        before, self._packets = self._packets, self._native.packets
        if self.heard or self._packets != before:
            self.heard = False
            self._heard_s = now_s
        silent_s = now_s - self._heard_s
        if not self._connected and now_s - self._began_s > _CONNECT_S:
            self._finish(LegEnd.NEVER_CONNECTED)
        elif self._connected and silent_s > _SILENT_S:
            self._finish(LegEnd.SILENT)
        elif silent_s > _UNSELECTED_S:
            self.ice.forget_selection()

    def _send(self, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            if self.ice.selected is not None:
                self._owner.send(datagram, self.ice.selected)

    def _finish(self, end: LegEnd) -> None:
        self._release()
        self._on_end(end)

    def _release(self) -> None:
        self._owner.forget(self)
        self._native.close()


class BrowserSocket:
    """
    The socket and its legs; it is bound when the first leg opens.

    Args:
        engine: Media engine that reads it; its addresses are used.
        port: Port to bind; another one if it is taken, as in a hot restart, or with 0.
    """

    def __init__(self, engine: MediaEngine, port: int = 0) -> None:
        settings = engine.settings
        self._engine = engine
        self._listen = settings.listen
        self._advertise = settings.advertise or _ANY.get(settings.listen, settings.listen)
        self._port = port
        self._native: _engine.BrowserSocket | None = None
        self._upward: socket.socket | None = None
        self._bound_port = 0
        self._identity: DtlsIdentity | None = None
        self._legs: dict[str, BrowserLeg] = {}
        self._of_browser: dict[Address, BrowserLeg] = {}
        self._ticking: asyncio.TimerHandle | None = None

    @property
    def legs(self) -> int:
        """Number of legs."""
        return len(self._legs)

    @property
    def address(self) -> Address:
        """Address that streams of the engine know for that of browsers."""
        return _ANY.get(self._listen, self._listen), self._bound_port

    @property
    def advertised(self) -> Address:
        """Address at which browsers reach the socket."""
        return self._advertise, self._bound_port

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of our certificate."""
        assert self._identity is not None
        return self._identity.fingerprint

    def open_leg(
        self, offer: BrowserOffer, on_keys: Callable[[SrtpKeys], None], on_end: Callable[[LegEnd], None]
    ) -> BrowserLeg:
        """
        Open a leg for an offer.

        Raises:
            OSError: There are too many legs, or no socket can be bound.
        """
        if len(self._legs) >= MAX_LEGS:
            raise OSError("too many browsers' legs")
        if self._identity is None:
            self._identity = make_identity()
        if self._native is None:
            self._native = self._bind()
        native = self._native.open_leg()
        if native is None:
            raise OSError("the media engine has been closed")
        ice = IceLite(_credentials(), offer.ufrag)
        dtls = DtlsServer(self._identity.context(), offer.fingerprint)
        leg = BrowserLeg(self, native, offer, ice, dtls, on_keys, on_end)
        self._legs[ice.local.ufrag] = leg
        if self._ticking is None:
            self._tick()
        return leg

    def rename(self, leg: BrowserLeg, ice: IceLite) -> None:
        """Replace a leg's agent of ICE, by which its browser finds it from now on."""
        self._legs.pop(leg.ice.local.ufrag, None)
        leg.ice = ice
        self._legs[ice.local.ufrag] = leg

    def forget(self, leg: BrowserLeg) -> None:
        """Handle nothing of a leg any more."""
        self._legs.pop(leg.ice.local.ufrag, None)
        for address in leg.ice.addresses:
            if self._of_browser.get(address) is leg:
                del self._of_browser[address]

    def send(self, datagram: bytes, to: Address) -> None:
        """Send a datagram; one that cannot be sent is lost, as on any network."""
        if self._native is not None and not self._native.send(datagram, *to):
            log.debug("a datagram to %s:%d was not sent", *to)

    def close(self) -> None:
        """Free the socket. Idempotent."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        if self._upward is not None:
            asyncio.get_running_loop().remove_reader(self._upward)
            self._upward.close()
            self._upward = None
        if self._native is not None:
            self._native.release()
            self._native = None

    def _bind(self) -> _engine.BrowserSocket:
        bound = self._bound()
        upward, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._bound_port = bound.getsockname()[1]
            far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            upward.setblocking(False)
            native = self._engine.open_browser_socket(bound, far)
        except BaseException:
            for made in (bound, upward, far):
                made.close()
            raise
        self._upward = upward
        asyncio.get_running_loop().add_reader(upward, self._read)
        return native

    def _bound(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._listen else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_DGRAM)
        try:
            bound.setblocking(False)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                bound.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            try:
                bound.bind((self._listen, self._port))
            except OSError as error:
                if self._port == 0:
                    raise
                log.warning("browsers reach another port than %d: %s", self._port, error)
                bound.bind((self._listen, 0))
        except BaseException:
            bound.close()
            raise
        return bound

    def _read(self) -> None:
        """Handle what ICE and DTLS have got, a batch at a time, so that nothing else waits long."""
        for _ in range(_BATCH):
            if self._upward is None:
                return
            try:
                record = self._upward.recv(_DATAGRAM_BYTES)
            except BlockingIOError:
                return
            version, port, host = _SOURCE.unpack_from(record)
            family, size = (socket.AF_INET6, 16) if version == 6 else (socket.AF_INET, 4)
            source = (socket.inet_ntop(family, host[:size]), port)
            datagram = record[_SOURCE.size :]
            if datagram[0] < 4:
                self._receive_check(datagram, source)
                continue
            leg = self._of_browser.get(source)
            if leg is not None:
                leg.heard = True
                leg.receive_dtls(datagram)

    def _receive_check(self, datagram: bytes, source: Address) -> None:
        request = parse_request(datagram)
        if request is None:
            return
        leg, known = self._legs.get(request.username.partition(":")[0]), self._of_browser.get(source)
        if leg is None or (known is not None and known is not leg and known.ice.selected == source):
            # The path of a call is not another's, whose page might forge its source.
            return
        response = leg.receive_check(request, source)
        if response is not None:
            self._of_browser[source] = leg
            self.send(response, source)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        for leg in list(self._legs.values()):
            leg.look(now_s)
        self._ticking = loop.call_later(_TICK_S, self._tick) if self._legs else None


def _credentials() -> IceCredentials:
    return IceCredentials(secrets.token_hex(8), secrets.token_hex(16))


def make_identity() -> DtlsIdentity:
    """Make a key and a certificate for handshakes; nobody but a description's reader trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Trunkline")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_CERTIFICATE_DAYS))
        .sign(key, SHA256())
    )
    return DtlsIdentity(certificate, key)
