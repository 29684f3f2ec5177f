"""Streams of a real engine over loopback, with what they have told."""

from __future__ import annotations

import asyncio
import math
import os
import struct
from collections.abc import Callable
from typing import TypeVar

from media.aio import MediaEngine, RtpStream
from media.types import MediaEvent, RemoteMedia

__all__ = ["PATIENCE", "MediaBench", "amplitude_at", "level", "sine", "towards", "until"]

# How much longer than usual a slow machine may take, and how long anything may take at all.
PATIENCE = float(os.environ.get("TRUNKLINE_TEST_PATIENCE", "1"))
PATIENCE_S = 40.0

Event = TypeVar("Event", bound=MediaEvent)


async def until(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Wait for a condition; fail when it does not come true."""
    deadline_s = asyncio.get_running_loop().time() + timeout_s * PATIENCE
    while not condition():
        assert asyncio.get_running_loop().time() < deadline_s, "what was waited for did not happen"
        await asyncio.sleep(0.005)


class Told:
    """A stream and its events, in order."""

    def __init__(self, engine: MediaEngine, near: RtpStream | None) -> None:
        self.events: list[MediaEvent] = []
        self.stream = engine.open_stream(self.events.append, near)

    async def expect(self, kind: type[Event], timeout_s: float = PATIENCE_S) -> Event:
        """The first event of a kind that was not asked for before."""
        await until(lambda: any(isinstance(event, kind) for event in self.events), timeout_s)
        for event in self.events:
            if isinstance(event, kind):
                self.events.remove(event)
                return event
        raise AssertionError("unreachable")


class MediaBench:
    """Opens streams of one engine and connects them to one another."""

    def __init__(self, engine: MediaEngine) -> None:
        self.engine = engine

    def open(self, near: Told | None = None) -> Told:
        """Open a stream."""
        return Told(self.engine, None if near is None else near.stream)

    def pair(self, **agreed: object) -> tuple[Told, Told]:
        """Two streams that talk to each other over the loopback interface."""
        one, other = self.open(), self.open()
        one.stream.connect(towards(other.stream, **agreed))
        other.stream.connect(towards(one.stream, **agreed))
        return one, other


def towards(stream: RtpStream, **agreed: object) -> RemoteMedia:
    """Return the settings to reach a stream; PCMU with telephone events unless said otherwise."""
    values: dict[str, object] = {"codec": "PCMU", "payload_type": 0, "dtmf_payload_type": 101}
    address, port = stream.local
    return RemoteMedia(address=address, port=port, **{**values, **agreed})  # type: ignore[arg-type]


def sine(freq_hz: float, duration_ms: int, rate_hz: int = 8000, amplitude: float = 12000) -> bytes:
    """A sine as 16-bit samples."""
    samples = (
        round(amplitude * math.sin(2 * math.pi * freq_hz * n / rate_hz))
        for n in range(rate_hz * duration_ms // 1000)
    )
    return b"".join(struct.pack("<h", sample) for sample in samples)


def amplitude_at(pcm: bytes, freq_hz: float, rate_hz: int = 8000) -> float:
    """Amplitude of one frequency in 16-bit samples."""
    samples = [sample for (sample,) in struct.iter_unpack("<h", pcm)]
    real = imaginary = 0.0
    for n, sample in enumerate(samples):
        phase = 2 * math.pi * freq_hz * n / rate_hz
        real += sample * math.cos(phase)
        imaginary += sample * math.sin(phase)
    return 2 * math.hypot(real, imaginary) / max(1, len(samples))


def level(pcm: bytes) -> float:
    """Root of the mean square of the samples; 0 of none."""
    samples = struct.unpack(f"<{len(pcm) // 2}h", pcm)
    return math.sqrt(sum(sample * sample for sample in samples) / max(1, len(samples)))
