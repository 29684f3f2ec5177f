"""Generation of tones."""

from __future__ import annotations

import math
from array import array

from media.audio.clip import bytes_of

__all__ = ["silence", "tone"]

# Ramp at both ends of a tone; a hard edge would click.
_RAMP_MS = 5
_FULL_SCALE = 32_767


def silence(duration_ms: int, sample_rate: int = 8000) -> bytes:
    """Return 16-bit samples of silence."""
    return bytes(2 * (sample_rate * duration_ms // 1000))


def tone(freq_hz: float, duration_ms: int, level_dbfs: float = -10.0, sample_rate: int = 8000) -> bytes:
    """
    Return 16-bit little-endian samples of a sine.

    `level_dbfs` is the peak level, 0 being full scale.
    """
    count = sample_rate * duration_ms // 1000
    ramp = min(sample_rate * _RAMP_MS // 1000, count // 2)
    amplitude = _FULL_SCALE * 10.0 ** (min(level_dbfs, 0.0) / 20.0)
    step = 2.0 * math.pi * freq_hz / sample_rate
    samples = array("h", (round(amplitude * math.sin(step * index)) for index in range(count)))
    for index in range(ramp):
        gain = index / ramp
        samples[index] = round(samples[index] * gain)
        samples[-1 - index] = round(samples[-1 - index] * gain)
    return bytes_of(samples)
