"""Generation of tones, and of the default music on hold."""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import Final

from media.audio.clip import bytes_of

# Ramp at both ends of a tone; a hard edge would click.
_RAMP_MS = 5
_FULL_SCALE = 32_767

_RATE_HZ: Final = 8000
_STEP_MS: Final = 400
_RING_MS: Final = 1600
_LEVEL: Final = 2600
# Broken chords of C, A minor, F and G, with a rest after each: hertz, 0 for the rest.
_MELODY: Final = (
    *(523.25, 659.26, 783.99, 659.26, 523.25, 0.0),
    *(440.00, 523.25, 659.26, 523.25, 440.00, 0.0),
    *(349.23, 440.00, 523.25, 440.00, 349.23, 0.0),
    *(392.00, 493.88, 587.33, 493.88, 392.00, 0.0),
)
# Strengths of a note and of its octave: enough for a soft bell, too little for a dial tone.
_PARTIALS: Final = ((1, 1.0), (2, 0.25))


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
    """
    Return a soft melody of fading bell notes, about ten seconds, for playing in a loop; L16 at 8 kHz.

    Notes that still ring at the end continue at the beginning, so that the loop has no seam.
    """
    step, ring = _RATE_HZ * _STEP_MS // 1000, _RATE_HZ * _RING_MS // 1000
    mixed = [0.0] * (step * len(_MELODY))
    for index, freq_hz in enumerate(_MELODY):
        if freq_hz:
            note = _note(freq_hz, ring)
            start = index * step
            for offset, value in enumerate(note):
                mixed[(start + offset) % len(mixed)] += value
    return array("h", (round(value) for value in mixed)).tobytes()


@lru_cache(maxsize=len(_MELODY))
def _note(freq_hz: float, count: int) -> tuple[float, ...]:
    """Return a struck note: 10 ms attack, then a decay to zero at its end."""
    attack = _RATE_HZ // 100
    samples: list[float] = []
    for index in range(count):
        envelope = min(index / attack, 1.0) * math.exp(-3.0 * index / count) * (1.0 - index / count)
        turn = 2.0 * math.pi * freq_hz * index / _RATE_HZ
        wave = sum(strength * math.sin(multiple * turn) for multiple, strength in _PARTIALS)
        samples.append(_LEVEL * envelope * wave)
    return tuple(samples)
