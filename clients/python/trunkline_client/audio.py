"""
Sounds of telephony: G.711, sample rates, tones, loudness.

PCM is signed 16-bit little-endian mono, as streams have it; the functions take and return its bytes.
"""

from __future__ import annotations

# In the standard library until Python 3.12, then by the distribution audioop-lts.
import audioop
from math import gcd
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Resampler",
    "alaw_decode",
    "alaw_encode",
    "level",
    "mulaw_decode",
    "mulaw_encode",
    "resample",
    "tone",
]

_WIDTH_BYTES: Final = 2
_HALF_TAPS: Final = 16
"""Input samples on each side from which an output sample is made, at the lower of both rates."""


def mulaw_encode(pcm: bytes) -> bytes:
    """Encode as mu-law (G.711)."""
    return audioop.lin2ulaw(pcm, _WIDTH_BYTES)


def mulaw_decode(encoded: bytes) -> bytes:
    """Decode mu-law (G.711)."""
    return audioop.ulaw2lin(encoded, _WIDTH_BYTES)


def alaw_encode(pcm: bytes) -> bytes:
    """Encode as A-law (G.711)."""
    return audioop.lin2alaw(pcm, _WIDTH_BYTES)


def alaw_decode(encoded: bytes) -> bytes:
    """Decode A-law (G.711)."""
    return audioop.alaw2lin(encoded, _WIDTH_BYTES)


def level(pcm: bytes) -> int:
    """Root mean square of the samples, 0 to 32768; 0 for none."""
    return audioop.rms(pcm, _WIDTH_BYTES)


def tone(frequency_hz: float, duration_s: float, sample_rate: int = 8000, amplitude: float = 0.25) -> bytes:
    """Make a sine; an amplitude of 1 is the loudest there is."""
    times_s = np.arange(round(duration_s * sample_rate)) / sample_rate
    return _pcm(32767 * amplitude * np.sin(2 * np.pi * frequency_hz * times_s))


def resample(pcm: bytes, from_rate: int, to_rate: int) -> bytes:
    """Convert a whole sound to another sample rate; use a `Resampler` for one that arrives in parts."""
    converter = Resampler(from_rate, to_rate)
    return converter.convert(pcm) + converter.flush()


class Resampler:
    """
    Converter of a sound that arrives in parts.

    It is a windowed sinc, which lets nothing above half of the lower rate pass.

    It holds back some milliseconds, until what follows has arrived; `flush` returns them.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        if from_rate < 1 or to_rate < 1:
            raise ValueError("sample rates are positive")
        common = gcd(from_rate, to_rate)
        self._up, self._down = to_rate // common, from_rate // common
        self._reach = -(-_HALF_TAPS * max(self._up, self._down) // self._up)
        self._taps = self._made_taps()
        # Silence stands before the first sample, so that the first output is that of its moment.
        self._held = np.zeros(self._reach, dtype=np.float64)
        self._next = self._reach * self._up

    def convert(self, pcm: bytes) -> bytes:
        """Return what can be made by now."""
        return self._convert(np.frombuffer(pcm, dtype="<i2").astype(np.float64))

    def flush(self) -> bytes:
        """Return the rest; the sound has ended."""
        return self._convert(np.zeros(self._reach, dtype=np.float64))

    def _convert(self, samples: npt.NDArray[np.float64]) -> bytes:
        held = np.concatenate([self._held, samples])
        # Positions count in steps of the rate that both divide; output n is `down` steps after n - 1.
        end = (len(held) - self._reach) * self._up
        positions = np.arange(self._next, end, self._down)
        whole, phase = positions // self._up, positions % self._up
        around = whole[:, None] + np.arange(1 - self._reach, self._reach + 1)[None, :]
        made = (held[around] * self._taps[phase]).sum(axis=1) if len(positions) else held[:0]
        self._next += len(positions) * self._down
        drop = max(0, self._next // self._up - self._reach)
        self._held, self._next = held[drop:], self._next - drop * self._up
        return _pcm(made)

    def _made_taps(self) -> npt.NDArray[np.float64]:
        """Weights of the samples around a position, one row for each phase between two samples."""
        cutoff = min(1.0, self._up / self._down)
        phases = np.arange(self._up)[:, None] / self._up
        distance = np.arange(1 - self._reach, self._reach + 1)[None, :] - phases
        window = np.cos(np.clip(distance / (self._reach + 1), -1, 1) * np.pi / 2) ** 2
        taps: npt.NDArray[np.float64] = np.sinc(distance * cutoff) * window
        taps /= taps.sum(axis=1, keepdims=True)
        return taps


def _pcm(samples: npt.NDArray[np.float64]) -> bytes:
    return np.clip(np.rint(samples), -32768, 32767).astype("<i2").tobytes()
