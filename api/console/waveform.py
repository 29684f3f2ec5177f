"""Waveform of a recording: its loudest sample in each of many equal parts, by channel."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["PARTS", "Unreadable", "Waveform", "read_waveform"]

PARTS: Final = 1200
"""Parts that a recording is divided into."""

_LINEAR, _MULAW = 1, 7
_FULL: Final = 32768.0
# Samples that are looked at of a part: an hour has many more, and looks the same.
_LOOKED_AT: Final = 400
_MOST_CHUNKS: Final = 32


class Unreadable(Exception):
    """The file is no recording of ours."""


@dataclass(frozen=True, slots=True)
class Waveform:
    """Duration in seconds, and the peaks of each channel from 0 to 1."""

    duration_s: float
    channels: list[list[float]]


@dataclass(frozen=True, slots=True)
class _Layout:
    encoding: int
    channels: int
    rate_hz: int
    start: int
    frames: int

    @property
    def frame_bytes(self) -> int:
        return self.channels * (1 if self.encoding == _MULAW else 2)


def read_waveform(path: Path, parts: int = PARTS) -> Waveform:
    """
    Read the waveform of a WAV file; it blocks, and takes some hundredths of a second.

    Raises:
        Unreadable: It is none of ours, or is gone.
    """
    try:
        with path.open("rb") as file:
            layout = _layout(file)
            parts = max(1, min(parts, layout.frames))
            peaks: list[list[float]] = [[] for _ in range(layout.channels)]
            for number in range(parts):
                first = number * layout.frames // parts
                last = (number + 1) * layout.frames // parts
                for channel, peak in enumerate(_peaks(file, layout, first, last)):
                    peaks[channel].append(peak)
    except (OSError, struct.error, ValueError) as error:
        raise Unreadable(str(error)) from error
    return Waveform(layout.frames / layout.rate_hz, peaks)


def _peaks(file: BinaryIO, layout: _Layout, first: int, last: int) -> list[float]:
    """Loudest sample of each channel among some of the frames."""
    file.seek(layout.start + first * layout.frame_bytes)
    raw = file.read((last - first) * layout.frame_bytes)
    raw = raw[: len(raw) - len(raw) % layout.frame_bytes]
    step = max(1, (last - first) // _LOOKED_AT)
    found = []
    for channel in range(layout.channels):
        if layout.encoding == _MULAW:
            some = raw[channel :: layout.channels * step]
            found.append(max((_MAGNITUDES[code] for code in some), default=0.0))
        else:
            samples = array("h", raw)
            part = samples[channel :: layout.channels * step]
            loudest = max(max(part), -min(part)) if part else 0
            found.append(round(min(1.0, loudest / _FULL), 3))
    return found


def _layout(file: BinaryIO) -> _Layout:
    """
    Read the chunks before the audio.

    Raises:
        ValueError: It is no WAV file with audio that recordings have.
    """
    riff, _, wave = struct.unpack("<4sI4s", file.read(12))
    if riff not in (b"RIFF", b"RF64") or wave != b"WAVE":
        raise ValueError("no WAV file")
    form: tuple[int, int, int] | None = None
    for _ in range(_MOST_CHUNKS):
        name, size = struct.unpack("<4sI", file.read(8))
        if name == b"data":
            break
        body = file.read(size + size % 2)
        if name == b"fmt ":
            encoding, channels, rate_hz = struct.unpack("<HHI", body[:8])
            form = (encoding, channels, rate_hz)
    else:
        raise ValueError("no audio")
    if form is None or form[0] not in (_LINEAR, _MULAW) or form[1] not in (1, 2) or form[2] == 0:
        raise ValueError("audio of another kind")
    start = file.tell()
    # The size in the header is unknown in a file that was cut off, and in a large one.
    length = file.seek(0, 2) - start
    layout = _Layout(*form, start, 0)
    return _Layout(*form, start, length // layout.frame_bytes)


def _magnitude(code: int) -> float:
    """Magnitude of a µ-law code, from 0 to 1 (ITU-T G.711)."""
    code = ~code & 0xFF
    value = (((code & 0x0F) << 3) + 0x84 << (code >> 4 & 0x07)) - 0x84
    return round(min(1.0, value / _FULL), 3)


_MAGNITUDES: Final = tuple(_magnitude(code) for code in range(256))
