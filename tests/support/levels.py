"""Levels of 16-bit samples: of all, or of one frequency."""

from __future__ import annotations

import math

from fixtures.audio_check import samples_of

__all__ = ["level_dbfs", "tone_level_dbfs"]

_FULL_SCALE = 32_767


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
