"""Conversion of an agent's audio to the format of its stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import Any

from media._engine import resample
from media.audio.g711 import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16
from media.streams.model import CommandError, Encoding

# Rates that agents may send; speech synthesizers use all of them.
RATES_HZ = (8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000)

_Coder = Callable[[bytes], bytes]
_DECODERS: dict[Encoding, _Coder] = {"mulaw": mulaw_to_l16, "alaw": alaw_to_l16, "l16": bytes}
_ENCODERS: dict[Encoding, _Coder] = {"mulaw": l16_to_mulaw, "alaw": l16_to_alaw, "l16": bytes}

# Upper bound of the audio before and after a sample that the filter needs.
_CONTEXT_MS = 10

# Least audio converted at a time: an agent that sends single samples would keep us busy.
_LEAST_MS = 5


class AudioConverter:
    """
    Converts continuous audio in pieces, as if it were one piece.

    Attributes:
        sample_bytes: Size of an input sample.
        unchanged: True if input and output have the same format.
    """

    def __init__(self, source: tuple[Encoding, int], target: tuple[Encoding, int]) -> None:
        self.sample_bytes = 2 if source[0] == "l16" else 1
        self._decode = _DECODERS[source[0]]
        self._encode = _ENCODERS[target[0]]
        self.unchanged = source == target
        self._resampler = None if source[1] == target[1] else _Resampler(source[1], target[1])

    def convert(self, audio: bytes) -> bytes:
        """Convert whole samples; the last few milliseconds may wait for later audio."""
        if self.unchanged:
            return audio
        pcm = self._decode(audio)
        return self._encode(self._resampler.feed(pcm) if self._resampler is not None else pcm)

    def flush(self) -> bytes:
        """Convert the waiting audio without waiting for more; more may still follow."""
        return self._encode(self._resampler.flush()) if self._resampler is not None else b""

    def whole(self, audio: bytes) -> bytes:
        """Convert a complete piece, with the audio that waited before it."""
        return self.convert(audio) + self.flush()

    def reset(self) -> None:
        """Drop the waiting audio and the context."""
        if self._resampler is not None:
            self._resampler.reset()


class _Resampler:
    """
    Resamples continuous audio in pieces, without audible joints.

    Each piece is converted together with the audio around it, whose result is then cut off. So a short piece
    is always held back until the audio after it is known.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        common = gcd(from_hz, to_hz)
        self._rates = from_hz, to_hz
        # Smallest counts of samples of equal duration at both rates.
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
        # Pad to a whole number of steps, so that the next sample coincides with one of the other rate.
        missing = -(len(waiting) // 2) % self._step_in
        last = waiting[-2:]
        self._waiting = waiting + last * missing
        return self._cut(len(self._waiting), last * self._context)

    def reset(self) -> None:
        self._before = self._waiting = b""

    def _cut(self, size: int, after: bytes) -> bytes:
        """Convert the first `size` waiting bytes, with the audio before them and `after` as context."""
        before, piece = self._before, self._waiting[:size]
        out = resample(before + piece + after, *self._rates)
        begin = len(before) // self._step_in * self._step_out
        self._before = (before + piece)[-2 * self._context :]
        self._waiting = self._waiting[size:]
        return out[begin : begin + size // self._step_in * self._step_out]


def resampled(pcm: bytes, from_hz: int, to_hz: int) -> bytes:
    """Convert a whole sound of 16-bit samples to another rate."""
    return pcm if from_hz == to_hz else resample(pcm, from_hz, to_hz)


def read_rate(described: Mapping[str, Any], default_hz: int) -> int:
    """
    Read the rate that an agent states for its audio, as a number or a string of digits.

    Raises:
        CommandError: The rate is not supported.
    """
    rate = described.get("sampleRate", default_hz)
    if isinstance(rate, str) and rate.isascii() and rate.isdigit() and len(rate) <= 6:
        rate = int(rate)
    if not isinstance(rate, int) or isinstance(rate, bool) or rate not in RATES_HZ:
        known = ", ".join(map(str, RATES_HZ))
        raise CommandError(f"sampleRate must be one of {known}")
    return rate
