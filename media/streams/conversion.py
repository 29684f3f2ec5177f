"""Conversion of an agent's audio to the format of its stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from media._engine import AudioConverter, resample
from media.streams.model import CommandError

__all__ = ["RATES_HZ", "AudioConverter", "read_rate", "resampled"]

# Rates that agents may send; speech synthesizers use all of them.
RATES_HZ = (8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000)


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
