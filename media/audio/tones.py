"""Generation of tones, and the default music on hold."""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from pathlib import Path
from typing import Final

from media.audio.clip import bytes_of
from media.audio.wav import read_wav

# Ramp at both ends of a tone; a hard edge would click.
_RAMP_MS = 5
_FULL_SCALE = 32_767

HOLD_MUSIC: Final = Path(__file__).parent / "hold_music.wav"
"""The default music on hold; scripts/hold-music writes it, as composing it takes 0.2 s."""


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


@lru_cache(maxsize=1)
def hold_music() -> bytes:
    """Return a soft melody of fading bell notes, about ten seconds, for playing in a loop; L16 at 8 kHz."""
    return read_wav(HOLD_MUSIC.read_bytes()).pcm
