"""The RTP of a telephone: it speaks, and keeps what it hears with the time at which the kernel got it."""

from __future__ import annotations

import asyncio
import math
import os
import random
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.support.ports import free_port

__all__ = ["FRAME_S", "Packet", "Rtp", "assert_unbroken", "from_ulaw", "level", "to_ulaw", "tone"]

FRAME_S: Final = 0.02
_FRAME: Final = 160
_PCMU: Final = 0
# Linux: the time of arrival comes with each datagram (asm-generic/socket.h); Python does not name it.
_SO_TIMESTAMPNS: Final = 35
_TIMESPEC: Final = struct.Struct("@ll")
_HEADER: Final = struct.Struct(">BBHII")
_LARGEST_GAP_S: Final = 0.06
# A machine that stood still sends packets late, and then at once all that it owes.
_LATEST_S: Final = 0.5
# The engine skips what it owes from before the last 100 ms; a busy machine makes it that late.
_MOST_HELD_UP: Final = 3
_KEYS: Final = "0123456789*#ABCD"


@dataclass(frozen=True, slots=True)
class Packet:
    """One RTP packet; `at_s` is its arrival by the system's clock (`time.time`)."""

    at_s: float
    payload_type: int
    marker: bool
    sequence: int
    timestamp: int
    ssrc: int
    payload: bytes


class Rtp:
    """
    One end of a PCMU stream.

    Attributes:
        packets: All that was heard, in the order of arrival.
        target: Address to which it speaks; None until the other side has told it.
        events: Payload type of telephone events, as negotiated.
    """

    def __init__(self, host: str) -> None:
        self.packets: list[Packet] = []
        self.target: tuple[str, int] | None = None
        self.events = 101
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind((host, free_port()))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._sequence = random.randrange(1 << 15)
        self._timestamp = random.randrange(1 << 31)
        self._ssrc = random.getrandbits(32)
        self._speaking: asyncio.Task[None] | None = None
        self._frames: list[bytes] = []
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def close(self) -> None:
        """Stop speaking and hearing."""
        if self._speaking is not None:
            self._speaking.cancel()
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._read()
            self._socket.close()

    def speak(self) -> None:
        """Send a packet every 20 ms from now on: silence, unless there is something to say."""
        if self._speaking is None:
            self._speaking = asyncio.create_task(self._speak())

    def say(self, pcm: Sequence[int]) -> None:
        """Say samples at 8 kHz after what is being said; `speak` must be on."""
        frames = (pcm[start : start + _FRAME] for start in range(0, len(pcm), _FRAME))
        self._frames += [bytes(map(to_ulaw, frame)).ljust(_FRAME, b"\xff") for frame in frames]

    def press(self, digit: str) -> None:
        """Press a key for 100 ms (RFC 4733); its packets are sent at once."""
        code, begun = _KEYS.index(digit), self._timestamp
        for number in range(1, 8):
            ends = number > 5
            duration = min(number, 5) * _FRAME
            event = struct.pack(">BBH", code, (0x80 if ends else 0) | 10, duration)
            self._send(self.events, event, begun, marker=number == 1)
        self._timestamp += 5 * _FRAME

    def audio(self) -> list[Packet]:
        """Heard packets of speech and silence, without telephone events."""
        return [packet for packet in self.packets if packet.payload_type == _PCMU]

    def heard(self, begin_s: float = 0.0, end_s: float = math.inf) -> list[int]:
        """Samples that arrived in a period."""
        packets = (packet for packet in self.audio() if begin_s <= packet.at_s <= end_s)
        return [from_ulaw(byte) for packet in packets for byte in packet.payload]

    @property
    def digits(self) -> str:
        """Keys that were heard as telephone events, each once."""
        found: dict[int, str] = {}
        for packet in self.packets:
            if packet.payload_type == self.events and packet.payload[0] < len(_KEYS):
                found.setdefault(packet.timestamp, _KEYS[packet.payload[0]])
        return "".join(found.values())

    async def _speak(self) -> None:
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while True:
            payload = self._frames.pop(0) if self._frames else b"\xff" * _FRAME
            self._send(_PCMU, payload, self._timestamp)
            self._timestamp += _FRAME
            next_s += FRAME_S
            await asyncio.sleep(max(0.0, next_s - loop.time()))

    def _send(self, payload_type: int, payload: bytes, timestamp: int, marker: bool = False) -> None:
        head = _HEADER.pack(
            0x80, (0x80 if marker else 0) | payload_type, self._sequence & 0xFFFF, timestamp, self._ssrc
        )
        self._sequence += 1
        if self.target is not None:
            try:
                self._socket.sendto(head + payload, self.target)
            except OSError:
                # The other side has closed its port, as it does at the end of a call.
                pass

    def _read(self) -> None:
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(2048, 64)
            except OSError:
                return
            if len(data) < _HEADER.size or data[0] >> 6 != 2 or 200 <= data[1] <= 207:
                continue
            at_s = time.time()
            for _, kind, value in ancillary:
                if kind == _SO_TIMESTAMPNS:
                    seconds, nanoseconds = _TIMESPEC.unpack(value[: _TIMESPEC.size])
                    at_s = seconds + nanoseconds / 1e9
            first, second, sequence, timestamp, ssrc = _HEADER.unpack_from(data)
            payload = data[_HEADER.size + 4 * (first & 0x0F) :]
            self.packets.append(
                Packet(at_s, second & 0x7F, second > 0x7F, sequence, timestamp, ssrc, payload)
            )


def assert_unbroken(rtp: Rtp, begin_s: float, end_s: float, whose: str = "the call") -> None:
    """
    Require one stream without a gap between two times: no pause over 60 ms, and nothing lost or repeated.

    A pause of up to 500 ms counts as late, not as a pause, if the packets that were due in it follow at once.
    Three others so short are forgiven while the machine has more to do than it has cores.

    Its first packet comes within half a second of the beginning, its last within a fifth of the end.
    """
    heard = [packet for packet in rtp.packets if packet.at_s <= end_s + FRAME_S]
    assert heard, f"{whose}: no RTP in {end_s - begin_s:.1f} s"
    assert {packet.ssrc for packet in heard} == {heard[0].ssrc}, f"{whose}: several streams"
    steps = [(later.sequence - earlier.sequence) & 0xFFFF for earlier, later in pairwise(heard)]
    assert set(steps) <= {1}, f"{whose}: packets were lost or came twice: {sorted(set(steps))}"
    times = [begin_s + 0.5 - _LARGEST_GAP_S, *(packet.at_s for packet in heard if packet.at_s > begin_s)]
    assert heard[0].at_s <= begin_s + 0.5, (
        f"{whose}: the first packet came after {heard[0].at_s - begin_s:.2f} s"
    )
    assert heard[-1].at_s >= end_s - 0.2, f"{whose}: silent for the last {end_s - heard[-1].at_s:.2f} s"
    times.sort()
    gaps = [
        (later - earlier, earlier - begin_s)
        for earlier, later in pairwise(times)
        if not _caught_up(times, earlier, later)
    ]
    gaps.sort(reverse=True)
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        held_up = [gap for gap in gaps if _LARGEST_GAP_S < gap[0] <= _LATEST_S][:_MOST_HELD_UP]
        gaps = [gap for gap in gaps if gap not in held_up]
    longest_s, at_s = gaps[0]
    assert longest_s <= _LARGEST_GAP_S, (
        f"{whose}: nothing for {longest_s:.3f} s, {at_s:.2f} s after the answer"
    )
    audio = [packet for packet in heard if packet.payload_type == _PCMU]
    ticks = [(later.timestamp - earlier.timestamp) & 0xFFFFFFFF for earlier, later in pairwise(audio)]
    assert all(0 < tick < 8000 for tick in ticks), f"{whose}: timestamps {set(ticks)}"
    spoken_s, passed_s = sum(ticks) / 8000, audio[-1].at_s - audio[0].at_s
    assert abs(spoken_s - passed_s) < 0.25, f"{whose}: timestamps of {spoken_s:.2f} s in {passed_s:.2f} s"


def _caught_up(times: Sequence[float], earlier_s: float, later_s: float) -> bool:
    """True if a pause between two arrivals was one of delivery: all that was due arrived right after it."""
    if not _LARGEST_GAP_S < later_s - earlier_s <= _LATEST_S:
        return False
    until_s = later_s + _LARGEST_GAP_S
    arrived = sum(earlier_s < at_s <= until_s for at_s in times)
    return arrived >= (until_s - earlier_s) / FRAME_S - 1


def level(samples: Sequence[int]) -> float:
    """Root mean square of samples; 0.0 without any."""
    return math.sqrt(sum(sample * sample for sample in samples) / len(samples)) if samples else 0.0


def tone(frequency_hz: float, duration_s: float, amplitude: int = 8000, rate: int = 8000) -> list[int]:
    """Samples of a sine tone."""
    step = 2 * math.pi * frequency_hz / rate
    return [round(amplitude * math.sin(step * index)) for index in range(round(duration_s * rate))]


def to_ulaw(sample: int) -> int:
    """Encode a sample of 16 bits (ITU-T G.711)."""
    sign = 0x80 if sample < 0 else 0
    magnitude = min(abs(sample), 32635) + 132
    exponent = magnitude.bit_length() - 8
    return ~(sign | exponent << 4 | (magnitude >> exponent + 3) & 0x0F) & 0xFF


def from_ulaw(byte: int) -> int:
    """Decode a sample (ITU-T G.711)."""
    byte = ~byte & 0xFF
    magnitude = (((byte & 0x0F) << 3) + 132 << (byte >> 4 & 7)) - 132
    return -magnitude if byte & 0x80 else magnitude
