"""
WAV files of telephone audio.

Read are PCM of 16 bits and G.711 (A-law and mu-law), mono or stereo, at 8 or 16 kHz; written is PCM of
16 bits. Anything else is refused with the reason.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from operator import mul

from media.audio.errors import WavError
from media.audio.g711 import alaw_to_l16, mulaw_to_l16

__all__ = ["MAX_WAV_BYTES", "Clip", "read_wav", "write_wav"]

# About an hour of stereo at 8 kHz.
MAX_WAV_BYTES = 128 << 20

_PCM = 1
_ALAW = 6
_MULAW = 7
_EXTENSIBLE = 0xFFFE
_RATES = (8000, 16_000)


@dataclass(frozen=True, slots=True)
class Clip:
    """
    Sound, as signed 16-bit little-endian samples.

    Attributes:
        pcm: The samples; those of both channels alternate when there are two.
    """

    pcm: bytes
    sample_rate: int = 8000
    channels: int = 1

    @property
    def duration_ms(self) -> int:
        """Length, rounded down."""
        return len(self.pcm) * 1000 // (2 * self.channels * self.sample_rate)

    def channel(self, index: int) -> Clip:
        """One channel alone; 0 is the left."""
        if not 0 <= index < self.channels:
            raise ValueError("no such channel")
        samples = array("h", self.pcm)
        return Clip(samples[index :: self.channels].tobytes(), self.sample_rate)

    def to_8k_mono(self) -> Clip:
        """The same sound at 8 kHz in one channel, as the media engine plays it."""
        clip = self._mixed() if self.channels > 1 else self
        return Clip(_halved(clip.pcm)) if clip.sample_rate == 16_000 else clip

    def _mixed(self) -> Clip:
        samples = _samples(self.pcm)
        pairs = zip(samples[0::2], samples[1::2], strict=True)
        return Clip(_bytes(array("h", ((left + right) // 2 for left, right in pairs))), self.sample_rate)


def read_wav(data: bytes) -> Clip:
    """
    Read a WAV file.

    A data chunk that is cut short, as in a recording whose writer died, is read as far as it goes.

    Raises:
        WavError: It is none, or of a kind that is not read.
    """
    if len(data) > MAX_WAV_BYTES:
        raise WavError(f"the file is larger than {MAX_WAV_BYTES} bytes")
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise WavError("the file is not a WAV file")
    form: tuple[int, int, int, int] | None = None
    for name, body in _chunks(data):
        if name == b"fmt ":
            form = _format(body)
        elif name == b"data":
            if form is None:
                raise WavError("the WAV file has samples before their format")
            return _clip(form, body)
    raise WavError("the WAV file has no samples")


def write_wav(clip: Clip) -> bytes:
    """Write a WAV file of 16-bit PCM."""
    block = 2 * clip.channels
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(clip.pcm),
        b"WAVE",
        b"fmt ",
        16,
        _PCM,
        clip.channels,
        clip.sample_rate,
        clip.sample_rate * block,
        block,
        16,
        b"data",
        len(clip.pcm),
    )
    return head + clip.pcm


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 12
    while position + 8 <= len(data):
        name = data[position : position + 4]
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        yield name, data[position + 8 : position + 8 + size]
        # Chunks begin at even places.
        position += 8 + size + size % 2


def _format(body: bytes) -> tuple[int, int, int, int]:
    """Coding, channels, sample rate and bits per sample of a `fmt ` chunk."""
    if len(body) < 16:
        raise WavError("the format of the WAV file is cut short")
    coding, channels, sample_rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if coding == _EXTENSIBLE and len(body) >= 26:
        # The real coding is the beginning of a GUID.
        coding = int.from_bytes(body[24:26], "little")
    if channels not in (1, 2):
        raise WavError("the WAV file must be mono or stereo")
    if sample_rate not in _RATES:
        raise WavError("the sample rate of the WAV file must be 8000 or 16000 Hz")
    if (coding, bits) not in ((_PCM, 16), (_ALAW, 8), (_MULAW, 8)):
        raise WavError("the WAV file must hold 16-bit PCM, A-law or mu-law")
    return coding, channels, sample_rate, bits


def _clip(form: tuple[int, int, int, int], body: bytes) -> Clip:
    coding, channels, sample_rate, bits = form
    block = channels * bits // 8
    body = body[: len(body) // block * block]
    if coding == _ALAW:
        body = alaw_to_l16(body)
    elif coding == _MULAW:
        body = mulaw_to_l16(body)
    return Clip(body, sample_rate, channels)


# Half-band low-pass of 47 taps (Kaiser, beta 6) scaled by 2**15; every second tap is zero but the middle one.
# Keeps 0 to 3.4 kHz; what lies above 5 kHz is 67 dB down.
_MIDDLE = 16_384
_OUTER = (10_377, -3_318, 1_830, -1_150, 750, -489, 311, -189, 107, -55, 23, -7)
_TAPS = (*reversed(_OUTER), *_OUTER)


def _halved(pcm: bytes) -> bytes:
    """Bring 16 kHz to 8 kHz; takes about 0.2 s per minute of sound, so long files belong in a thread."""
    samples = _samples(pcm[: len(pcm) // 4 * 4])
    reach = len(_OUTER)
    padding = array("h", bytes(2 * reach))
    odd = padding + samples[1::2] + padding
    windows = zip(*(odd[offset:] for offset in range(len(_TAPS))), strict=False)
    out = array("h")
    for middle, window in zip(samples[0::2], windows, strict=False):
        value = (_MIDDLE * middle + sum(map(mul, _TAPS, window))) >> 15
        out.append(max(-32_768, min(32_767, value)))
    return _bytes(out)


def _samples(pcm: bytes) -> array[int]:
    samples = array("h", pcm)
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def _bytes(samples: array[int]) -> bytes:
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()
