"""The audio of a far end: a packet now and then, which is enough to know from when to when it was heard."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time

from tests.faults.oracle.evidence import Leg

__all__ = ["EACH_S", "Audio"]

EACH_S = 0.2
"""Interval of packets: long enough for hundreds of calls in one Python process."""

_HEADER = struct.Struct("!BBHII")
_SILENCE = b"\xff" * 160


class Audio:
    """The RTP socket of one leg; what is sent and heard is counted in the leg."""

    def __init__(self, leg: Leg) -> None:
        self._leg = leg
        self._to: tuple[str, int] | None = None
        self._sequence = 0
        self._ssrc = int.from_bytes(leg.call_id.encode()[-4:], "big")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._socket, self._heard)

    def send_to(self, port: int | None) -> None:
        """Send packets to this port of 127.0.0.1 from now on."""
        if port is not None:
            self._to = ("127.0.0.1", port)

    def beat(self) -> None:
        """Send the next packet."""
        if self._to is None:
            return
        self._sequence += 1
        stamp = int(self._sequence * EACH_S * 8000)
        header = _HEADER.pack(0x80, 0, self._sequence & 0xFFFF, stamp & 0xFFFFFFFF, self._ssrc & 0xFFFFFFFF)
        # The port may be closed already: the call ends, or the server was killed.
        with contextlib.suppress(OSError):
            self._socket.sendto(header + _SILENCE, self._to)
            self._leg.rtp_sent += 1

    def close(self) -> None:
        """Hear no more."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _heard(self) -> None:
        try:
            data = self._socket.recv(2048)
        except OSError:
            return
        if len(data) < _HEADER.size or not data[1] & 0x7F < 64:
            return
        now = time.monotonic()
        if self._leg.first_rtp_at is None:
            self._leg.first_rtp_at = now
        elif self._leg.last_rtp_at is not None:
            silence_s = now - self._leg.last_rtp_at
            self._leg.longest_silence_s = max(self._leg.longest_silence_s, silence_s)
        self._leg.last_rtp_at = now
        self._leg.rtp_received += 1
