"""Audio received by an endpoint of another make, from the file it wrote."""

from __future__ import annotations

import struct
from pathlib import Path

from fixtures.audio_check import Tone, find_tone, samples_of

__all__ = ["heard_tone"]

_STRETCH_S = 0.6
_CUT_OFF_S = 0.1


def heard_tone(folder: Path, pattern: str = "*.wav") -> Tone:
    """
    The tone at the end of the newest recording of that name.

    The sizes in its header may not be written yet: PJSIP does so when its process ends.
    """
    path = max(folder.glob(pattern), key=lambda found: (found.stat().st_mtime, found.name))
    content = path.read_bytes()
    begin = content.index(b"data", 0, 256) + 8
    channels, rate_hz = struct.unpack_from("<HI", content, 22)
    samples = samples_of(content[begin:])[::channels]
    # The very end may hold the hang-up.
    end = len(samples) - round(_CUT_OFF_S * rate_hz)
    assert end >= _STRETCH_S * rate_hz, f"{path.name} holds {len(samples) / rate_hz:.2f} s"
    return find_tone(samples[end - round(_STRETCH_S * rate_hz) : end], rate_hz)
