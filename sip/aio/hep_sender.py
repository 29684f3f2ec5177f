"""Copies of SIP messages for a capture server, by UDP, without ever waiting for it."""

import asyncio
import contextlib
import logging
import socket
from collections import deque

from sip.aio.endpoint import TraceRecord
from sip.hep import HepMessage, encode_hep
from sip.redaction import withhold_secrets

__all__ = ["HepSender"]

logger = logging.getLogger(__name__)

_MAX_UNSENT = 1000
_BUFFER_BYTES = 1024 * 1024


class HepSender:
    """
    Sends HEP version 3 packets to one server.

    What the socket does not take waits in a short queue; beyond it packets are dropped and counted. A server
    that is away costs nothing but its packets.
    """

    def __init__(self, host: str, port: int, capture_id: int, password: str = "") -> None:
        self.sent = 0
        self.dropped = 0
        self._target = (host, port)
        self._capture_id = capture_id
        self._password = password
        self._unsent: deque[bytes] = deque()
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        """
        Look the server's name up and open the socket.

        Raises:
            OSError: The name leads nowhere.
        """
        self._loop = asyncio.get_running_loop()
        host, port = self._target
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
        """Close the socket; what is unsent is dropped."""
        sock, self._socket = self._socket, None
        if sock is not None:
            self._loop.remove_writer(sock.fileno())
            sock.close()
        self.dropped += len(self._unsent)
        self._unsent.clear()

    def send(self, record: TraceRecord, at_us: int, correlation: str) -> None:
        """Send a copy of a message; `at_us` is its wall-clock time in microseconds."""
        if self._socket is None:
            return
        host, _, port = record.peer.rpartition(":")
        peer = (host, int(port))
        arrived = record.direction == "in"
        message = HepMessage(
            transport=record.transport,
            source=peer if arrived else record.local,
            target=record.local if arrived else peer,
            at_us=at_us,
            payload=withhold_secrets(record.message),
            correlation=correlation,
        )
        packet = encode_hep(message, self._capture_id, self._password)
        if self._unsent or not self._put(packet):
            self._keep(packet)

    def _put(self, packet: bytes) -> bool:
        """Give one packet to the socket; False when it must wait."""
        assert self._socket is not None
        try:
            self._socket.send(packet)
            self.sent += 1
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self.dropped += 1  # Nobody listens there at the moment, or it is too long.
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
