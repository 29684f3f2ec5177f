"""Sound in memory, its conversion to the form of the engine, and the errors of stored audio."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass

from media import _engine


class AudioError(Exception):
    """Base of the errors of stored audio."""


class WavError(AudioError):
    """A file that cannot be used; the message states what is required."""


class ToneError(AudioError):
    """An invalid tone, or an unknown tone name; the message states what is required."""


class SpeechError(AudioError):
    """A text that cannot be spoken: too long, in an unsupported language, or its synthesis failed."""


class SpeechUnavailable(SpeechError):
    """No speech synthesizer is installed, or it has too many texts at the moment."""


class UnknownPrompt(AudioError):
    """The library has no prompt of that name."""


_NARROW_HZ = 8000
_WIDE_HZ = 16_000


@dataclass(frozen=True, slots=True)
class Clip:
    """
    Sound, as signed 16-bit little-endian samples.

    Attributes:
        pcm: The samples; two channels are interleaved.
    """

    pcm: bytes
    sample_rate: int = _NARROW_HZ
    channels: int = 1

    @property
    def duration_ms(self) -> int:
        """Length in milliseconds, rounded down."""
        return len(self.pcm) * 1000 // (2 * self.channels * self.sample_rate)

    def channel(self, index: int) -> Clip:
        """Return one channel; 0 is the left."""
        if not 0 <= index < self.channels:
            raise ValueError("no such channel")
        samples = array("h", self.pcm)
        return Clip(samples[index :: self.channels].tobytes(), self.sample_rate)

    def to_mono(self, sample_rate: int) -> Clip:
        """
        Convert to one channel at another rate.

        Takes about a millisecond per second of sound, without the interpreter lock, so convert long sounds in
        a thread.

        Raises:
            AudioError: The engine was built without a resampler, or the rate is invalid.
        """
        pcm = _engine.to_linear(self.pcm, "s16", True) if self.channels > 1 else self.pcm
        if self.sample_rate == sample_rate:
            return self if self.channels == 1 else Clip(pcm, sample_rate)
        try:
            return Clip(_engine.resample(pcm, self.sample_rate, sample_rate), sample_rate)
        except (ValueError, TypeError) as error:
            raise AudioError(f"the sound cannot be resampled to {sample_rate} Hz: {error}") from None

    def to_8k_mono(self) -> Clip:
        """Convert to one channel at 8 kHz. Raises as `to_mono`."""
        return self.to_mono(_NARROW_HZ)

    def for_engine(self) -> Clip:
        """
        Convert to the engine's format: one channel at 8 kHz or, for higher rates, at 16 kHz.

        Raises:
            AudioError: The engine was built without a resampler.
        """
        return self.to_mono(_NARROW_HZ if self.sample_rate <= _NARROW_HZ else _WIDE_HZ)


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence between two clips, at most a minute."""

    duration_ms: int


Sound = Clip | Pause


def bytes_of(samples: array[int]) -> bytes:
    """Return samples as 16-bit little-endian audio; may swap the bytes of the argument in place."""
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()
