"""
A bad network between the server and everybody else: SIP and RTP are lost, doubled, overtaken and late.

Each end is represented on the other side by a socket of the relay's, and the messages that pass are rewritten
to say so, as a NAT with an eye for SIP does. So nothing finds a way around the relay: requests within dialogs
follow Contacts, audio follows the session descriptions, and both lead here.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from tests.support.impaired_link import Fate, Impairment, LinkStats, fates
from tests.support.ports import free_port

__all__ = ["BadNetwork", "Weather"]

_HOST: Final = "127.0.0.1"
_ADDRESS: Final = re.compile(rb"127\.0\.0\.1:(\d{5})\b")
_AUDIO: Final = re.compile(rb"^m=audio (\d{5}) ", re.MULTILINE)
_FIRST_RTP_BYTE: Final = 0x80
_SWEEP_S, _IDLE_S = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class Weather:
    """Faults of signalling and audio, the same in both directions."""

    sip: Impairment
    rtp: Impairment


class BadNetwork:
    """
    The relay, with a thread and a loop of its own; what it loses depends on the seed alone.

    Attributes:
        server_port: Where callers send to reach the server.
        callee_port: Where the server sends to reach the callees.
        sip, rtp: What was done to both.
    """

    def __init__(self, weather: Weather, seed: int) -> None:
        self.server_port, self.callee_port = free_port(), free_port()
        self.sip, self.rtp = LinkStats(), LinkStats()
        self._fates = {"sip": fates(weather.sip, seed), "rtp": fates(weather.rtp, seed + 1)}
        self._ends: dict[int, _End] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bad network", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._loop.call_soon_threadsafe(self._sweep)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def connect(self, server_port: int, callee_port: int) -> None:
        """Say where the server and the callees really are."""
        asyncio.run_coroutine_threadsafe(self._connect(server_port, callee_port), self._loop).result()

    async def _connect(self, server_port: int, callee_port: int) -> None:
        self._represent(server_port, self.server_port, lasting=True)
        self._represent(callee_port, self.callee_port, lasting=True)

    def _represent(self, real: int, shown: int = 0, *, lasting: bool = False) -> _End:
        """Open a socket that stands for the end at a port, on the side where that end is not."""
        end = _End(self, real, shown, lasting=lasting)
        self._ends[real] = self._ends[end.shown] = end
        return end

    def _represent_audio(self, real: int) -> None:
        """Open two consecutive ports that stand for those of audio and RTCP."""
        while True:
            first = self._represent(real)
            try:
                self._represent(real + 1, first.shown + 1)
                return
            except OSError:  # Somebody has that port.
                self._forget(first)

    def _forget(self, end: _End) -> None:
        end.close()
        self._ends.pop(end.real, None)
        self._ends.pop(end.shown, None)

    async def _close(self) -> None:
        for end in set(self._ends.values()):
            end.close()

    def _sweep(self) -> None:
        """Close what stands for audio of calls that are over."""
        now = self._loop.time()
        for end in set(self._ends.values()):
            if not end.lasting and now - end.used_at > _IDLE_S:
                self._forget(end)
        self._loop.call_later(_SWEEP_S, self._sweep)

    # What passes.

    def take(self, end: _End, data: bytes, source: int) -> None:
        """A datagram to an end, from a port of the other side."""
        rtp = data[0] >= _FIRST_RTP_BYTE
        stats, chances = (self.rtp, self._fates["rtp"]) if rtp else (self.sip, self._fates["sip"])
        fate = next(chances)
        _count(stats, fate)
        if not fate.delays_ms:
            return
        if not rtp:
            for found in _AUDIO.finditer(data):
                if int(found[1]) not in self._ends:
                    self._represent_audio(int(found[1]))
            data = _AUDIO.sub(self._swap, _ADDRESS.sub(self._swap, data))
        sender = self._ends.get(source) or self._represent(source)
        sender.used_at = end.used_at = self._loop.time()
        for delay_ms in fate.delays_ms:
            self._loop.call_later(delay_ms / 1000, sender.send, data, end.real)

    def _swap(self, found: re.Match[bytes]) -> bytes:
        """The port of an end becomes the one that stands for it, and the reverse."""
        port = int(found[1])
        end = self._ends.get(port)
        if end is None:
            return found[0]
        other = end.shown if port == end.real else end.real
        return found[0].replace(found[1], b"%d" % other)


class _End:
    """One end of the network, as the other side sees it."""

    def __init__(self, network: BadNetwork, real: int, shown: int, *, lasting: bool) -> None:
        self.real, self.lasting = real, lasting
        self._network = network
        self._loop = asyncio.get_running_loop()
        self.used_at = self._loop.time()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind((_HOST, shown))
        except OSError:
            self._socket.close()
            raise
        self.shown: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket, self._readable)

    def _readable(self) -> None:
        # It may be that nothing is there, or news of a datagram that nobody took.
        with contextlib.suppress(OSError):
            data, source = self._socket.recvfrom(65535)
            if data:
                self._network.take(self, data, source[1])

    def send(self, data: bytes, to: int) -> None:
        """Send what this end said; it is lost when the end is not there any more."""
        with contextlib.suppress(OSError):
            self._socket.sendto(data, (_HOST, to))

    def close(self) -> None:
        """Stand for it no more."""
        self._loop.remove_reader(self._socket)
        self._socket.close()


def _count(stats: LinkStats, fate: Fate) -> None:
    stats.taken += 1
    stats.lost += not fate.delays_ms
    stats.duplicated += max(0, len(fate.delays_ms) - 1)
