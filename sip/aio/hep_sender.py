"""Copies of SIP messages to a capture server over UDP; sending never waits."""

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sip.aio.trace import TraceRecord
from sip.hep import HepMessage, encode_hep
from sip.redaction import withhold_secrets

logger = logging.getLogger(__name__)

_MAX_UNSENT = 1000
_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HepSettings:
    """Address of the capture server, and the id and password of this sender."""

    host: str
    port: int
    capture_id: int = 2001
    password: str = field(default="", repr=False)


class HepSender:
    """
    Sends HEP version 3 packets to one server.

    `wall_us` turns a record's time into microseconds since 1970, `correlate` a Call-ID into an id shared by
    the legs of a call. It is called shortly after the message: the first message of a call creates the call.

    Packets that the socket cannot take wait in a short queue; beyond it they are dropped and counted. An
    unreachable server costs only its packets.
    """

    def __init__(
        self, settings: HepSettings, wall_us: Callable[[float], int], correlate: Callable[[str], str]
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self._settings = settings
        self._wall_us = wall_us
        self._correlate = correlate
        self._records: deque[TraceRecord] = deque()
        self._unsent: deque[bytes] = deque()
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        """Look up the server's name and open the socket; on failure all copies are dropped."""
        try:
            await self._open()
        except OSError as error:
            logger.error("cannot send HEP copies to %s: %s", self._settings.host, error)

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        host, port = self._settings.host, self._settings.port
        family, _, _, _, address = (await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM))[0]
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            with contextlib.suppress(OSError):  # The system may cap it.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            sock.connect(address)
        except OSError:
            sock.close()
            raise
        self._socket = sock

    def close(self) -> None:
        """Close the socket; unsent packets are dropped."""
        sock, self._socket = self._socket, None
        if sock is not None:
            self._loop.remove_writer(sock.fileno())
            sock.close()
        self.dropped += len(self._unsent) + len(self._records)
        self._unsent.clear()
        self._records.clear()

    def send(self, record: TraceRecord) -> None:
        """Queue a copy of a message."""
        if self._socket is None or len(self._records) >= _MAX_UNSENT:
            self.dropped += 1
            return
        if not self._records:
            self._loop.call_soon(self._pack)
        self._records.append(record)

    def _pack(self) -> None:
        while self._records and self._socket is not None:
            packet = self._packet(self._records.popleft())
            if self._unsent or not self._put(packet):
                self._keep(packet)

    def _packet(self, record: TraceRecord) -> bytes:
        peer = record.remote
        arrived = record.direction == "in"
        message = HepMessage(
            transport=record.transport,
            source=peer if arrived else record.local,
            target=record.local if arrived else peer,
            at_us=self._wall_us(record.at),
            payload=withhold_secrets(record.message),
            correlation=self._correlate(record.call_id),
        )
        return encode_hep(message, self._settings.capture_id, self._settings.password)

    def _put(self, packet: bytes) -> bool:
        """Send one packet; False if it must wait."""
        assert self._socket is not None
        try:
            self._socket.send(packet)
            self.sent += 1
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self.dropped += 1  # Nobody listens at the moment, or the packet is too long.
        return True

    def _keep(self, packet: bytes) -> None:
        if len(self._unsent) >= _MAX_UNSENT:
            self.dropped += 1
            return
        self._unsent.append(packet)
        if len(self._unsent) == 1 and self._socket is not None:
            self._loop.add_writer(self._socket.fileno(), self._writable)

    def _writable(self) -> None:
        while self._socket is not None and self._unsent:
            if not self._put(self._unsent[0]):
                return
            self._unsent.popleft()
        if self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())
