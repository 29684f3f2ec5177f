"""Bringing audio that an agent sends into the form of its stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import Any

from media._engine import resample
from media.audio.g711 import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16
from media.streams.errors import CommandError
from media.streams.model import Encoding

__all__ = ["RATES_HZ", "AudioConverter", "read_rate", "resampled"]

# What agents may send; text to speech comes at any of them.
RATES_HZ = (8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000)

_Coder = Callable[[bytes], bytes]
_DECODERS: dict[Encoding, _Coder] = {"mulaw": mulaw_to_l16, "alaw": alaw_to_l16, "l16": bytes}
_ENCODERS: dict[Encoding, _Coder] = {"mulaw": l16_to_mulaw, "alaw": l16_to_alaw, "l16": bytes}

# How much the filter looks around a sample, generously; it must know what comes before and after.
_CONTEXT_MS = 10

# Less is not worth converting by itself: an agent that sends sample by sample would keep us busy.
_LEAST_MS = 5


class AudioConverter:
    """
    Converts one run of audio piece by piece, as if it were one piece.

    Attributes:
        sample_bytes: Size of a sample as it comes.
    """

    def __init__(self, source: tuple[Encoding, int], target: tuple[Encoding, int]) -> None:
        self.sample_bytes = 2 if source[0] == "l16" else 1
        self._decode = _DECODERS[source[0]]
        self._encode = _ENCODERS[target[0]]
        self._same = source == target
        self._resampler = None if source[1] == target[1] else _Resampler(source[1], target[1])

    def convert(self, audio: bytes) -> bytes:
        """Convert whole samples; the last few milliseconds may wait for what follows."""
        if self._same:
            return audio
        pcm = self._decode(audio)
        return self._encode(self._resampler.feed(pcm) if self._resampler is not None else pcm)

    def flush(self) -> bytes:
        """What still waits, now that nothing need follow; more may."""
        return self._encode(self._resampler.flush()) if self._resampler is not None else b""

    def whole(self, audio: bytes) -> bytes:
        """Convert a piece that is complete in itself, with what waited before it."""
        return self.convert(audio) + self.flush()

    def reset(self) -> None:
        """Forget what waits and what was before."""
        if self._resampler is not None:
            self._resampler.reset()


class _Resampler:
    """
    Resamples a run of audio in pieces without joints.

    Each piece is converted together with its neighbourhood, of which the result is then cut off. So a little
    is always held back, until its own neighbourhood is known.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        common = gcd(from_hz, to_hz)
        self._rates = from_hz, to_hz
        # Samples that last a whole number of samples at either rate.
        self._step_in, self._step_out = from_hz // common, to_hz // common
        self._context = -(-from_hz * _CONTEXT_MS // 1000 // self._step_in) * self._step_in
        self._least = from_hz * _LEAST_MS // 1000
        self._before = b""
        self._waiting = b""

    def feed(self, pcm: bytes) -> bytes:
        waiting = self._waiting = self._waiting + pcm
        steps = (len(waiting) // 2 - self._context) // self._step_in
        if steps * self._step_in < self._least:
            return b""
        size = 2 * steps * self._step_in
        return self._cut(size, waiting[size : size + 2 * self._context])

    def flush(self) -> bytes:
        waiting = self._waiting
        if not waiting:
            return b""
        # To a whole number of steps, so that the next sample falls on a sample of the other rate.
        missing = -(len(waiting) // 2) % self._step_in
        last = waiting[-2:]
        self._waiting = waiting + last * missing
        return self._cut(len(self._waiting), last * self._context)

    def reset(self) -> None:
        self._before = self._waiting = b""

    def _cut(self, size: int, after: bytes) -> bytes:
        """Convert the first bytes of what waits, between what was before and what comes after."""
        before, piece = self._before, self._waiting[:size]
        out = resample(before + piece + after, *self._rates)
        begin = len(before) // self._step_in * self._step_out
        self._before = (before + piece)[-2 * self._context :]
        self._waiting = self._waiting[size:]
        return out[begin : begin + size // self._step_in * self._step_out]


def resampled(pcm: bytes, from_hz: int, to_hz: int) -> bytes:
    """A whole sound of 16-bit samples at another rate."""
    return pcm if from_hz == to_hz else resample(pcm, from_hz, to_hz)


def read_rate(described: Mapping[str, Any], default_hz: int) -> int:
    """
    Rate that an agent states for its audio, as a number or a string of digits.

    Raises:
        CommandError: It is none that audio can be converted from.
    """
    rate = described.get("sampleRate", default_hz)
    if isinstance(rate, str) and rate.isascii() and rate.isdigit() and len(rate) <= 6:
        rate = int(rate)
    if not isinstance(rate, int) or isinstance(rate, bool) or rate not in RATES_HZ:
        known = ", ".join(map(str, RATES_HZ))
        raise CommandError(f"sampleRate must be one of {known}")
    return rate
