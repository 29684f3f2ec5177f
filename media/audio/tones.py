"""Generation and measurement of tones."""

from __future__ import annotations

import math
from array import array

from media.audio.clip import bytes_of, samples_of

__all__ = ["level_dbfs", "silence", "tone", "tone_level_dbfs"]

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


def level_dbfs(pcm: bytes) -> float:
    """Return the RMS level of 16-bit samples, 0 being a full-scale square wave; -120 for silence."""
    samples = samples_of(pcm)
    if not samples:
        return -120.0
    power = sum(sample * sample for sample in samples) / len(samples)
    return _decibels(math.sqrt(power))


def tone_level_dbfs(pcm: bytes, freq_hz: float, sample_rate: int = 8000) -> float:
    """
    Return the peak level of one frequency within 16-bit samples; -120 if it is absent.

    Uses Goertzel's algorithm over all samples, so frequencies closer than the inverse of the duration are not
    separated.
    """
    samples = samples_of(pcm)
    if not samples:
        return -120.0
    coefficient = 2.0 * math.cos(2.0 * math.pi * freq_hz / sample_rate)
    last = before = 0.0
    for sample in samples:
        last, before = sample + coefficient * last - before, last
    power = last * last + before * before - coefficient * last * before
    return _decibels(2.0 * math.sqrt(max(power, 0.0)) / len(samples))


def _decibels(amplitude: float) -> float:
    return max(-120.0, 20.0 * math.log10(amplitude / _FULL_SCALE)) if amplitude > 0 else -120.0
