"""
WAV files.

Readable are PCM of 8, 16, 24 and 32 bits, floating point of 32 and 64 bits and G.711 (A-law and mu-law), mono
or stereo, at 8000 to 48000 Hz, also as WAVE_FORMAT_EXTENSIBLE; writable are PCM of 16 bits and G.711. Other
and truncated files are refused with the reason.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, NamedTuple

from media import _engine
from media.audio.clip import Clip, WavError
from media.audio.g711 import l16_to_alaw, l16_to_mulaw

# About ten minutes of stereo at 48 kHz, two hours of mono at 8 kHz.
MAX_WAV_BYTES = 128 << 20

_PCM = 1
_EXTENSIBLE = 0xFFFE
_MIN_RATE = 8000
_MAX_RATE = 48_000
_MAX_CHUNKS = 1000
# A program that writes to a pipe cannot know the size and states this or more.
_OPEN_END_BYTES = 0x7FFF_0000

_G711 = {"alaw": (6, l16_to_alaw), "mulaw": (7, l16_to_mulaw)}

_FORMS = {
    (_PCM, 8): "u8",
    (_PCM, 16): "s16",
    (_PCM, 24): "s24",
    (_PCM, 32): "s32",
    (3, 32): "f32",
    (3, 64): "f64",
    (6, 8): "alaw",
    (7, 8): "mulaw",
}


class _Chunk(NamedTuple):
    """A chunk: its name, its content, and its stated size."""

    name: bytes
    body: bytes
    size: int


class _Format(NamedTuple):
    """Sample format from a `fmt ` chunk."""

    form: str
    channels: int
    sample_rate: int
    block_bytes: int


class WavHead(NamedTuple):
    """Form and position of the samples of a file of 16-bit PCM."""

    sample_rate: int
    channels: int
    offset: int


def read_wav_head(data: bytes) -> WavHead | None:
    """
    Read the head of a WAV file of 16-bit PCM that is still being received; None while it is incomplete.

    Raises:
        WavError: It is no WAV file, or has another form.
    """
    if len(data) < 12:
        return None
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise WavError("the file is not a WAV file")
    form: _Format | None = None
    position = 12
    for chunk in _chunks(data):
        if chunk.name == b"data":
            if form is None or form.form != "s16":
                raise WavError("the WAV file must hold PCM of 16 bits")
            return WavHead(form.sample_rate, form.channels, position + 8)
        if chunk.name == b"fmt " and len(chunk.body) == chunk.size:
            form = _format(chunk.body)
        position += 8 + chunk.size + chunk.size % 2
    return None


def read_wav(data: bytes, *, partial: bool = False) -> Clip:
    """
    Read a WAV file; the clip has the rate and the channels of the file.

    Takes about 5 ms per minute of sound: read large files in a thread.

    With `partial`, truncated samples are read as far as they go, as of a recording being written.

    Raises:
        WavError: It is no WAV file, is truncated, or has an unsupported format.
    """
    if len(data) > MAX_WAV_BYTES:
        raise WavError(f"the file is larger than {MAX_WAV_BYTES} bytes")
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise WavError("the file is not a WAV file")
    form: _Format | None = None
    for chunk in _chunks(data):
        if chunk.name == b"fmt ":
            form = _format(chunk.body)
        elif chunk.name == b"data":
            if form is None:
                raise WavError("the WAV file has samples before their format")
            return _clip(form, chunk, partial)
    raise WavError("the WAV file has no samples")


def write_wav(clip: Clip, coding: Literal["pcm", "alaw", "mulaw"] = "pcm") -> bytes:
    """Write a WAV file of 16-bit PCM, or of G.711 at half the size."""
    if coding == "pcm":
        number, sample_bytes, data = _PCM, 2, clip.pcm
    else:
        number, encode = _G711[coding]
        sample_bytes, data = 1, encode(clip.pcm)
    block = sample_bytes * clip.channels
    form = struct.pack(
        "<HHIIHH",
        number,
        clip.channels,
        clip.sample_rate,
        clip.sample_rate * block,
        block,
        8 * sample_bytes,
    )
    chunks = _chunk(b"fmt ", form)
    if coding != "pcm":
        # Every coding but PCM has an extension, if empty, and states the number of samples.
        chunks = _chunk(b"fmt ", form + bytes(2)) + _chunk(b"fact", struct.pack("<I", len(data) // block))
    chunks += _chunk(b"data", data)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def _chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def _chunks(data: bytes) -> Iterator[_Chunk]:
    position = 12
    for _ in range(_MAX_CHUNKS):
        if position + 8 > len(data):
            return
        name = data[position : position + 4]
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        yield _Chunk(name, data[position + 8 : position + 8 + size], size)
        # Chunks begin at even offsets.
        position += 8 + size + size % 2
    raise WavError(f"the WAV file has more than {_MAX_CHUNKS} chunks before its samples")


def _format(body: bytes) -> _Format:
    if len(body) < 16:
        raise WavError("the format of the WAV file is cut short")
    coding, channels, sample_rate, _, block_bytes, bits = struct.unpack_from("<HHIIHH", body)
    if coding == _EXTENSIBLE:
        if len(body) < 40:
            raise WavError("the format of the WAV file is cut short: the extensible one has 40 bytes")
        # The actual coding is the beginning of a GUID.
        coding = int.from_bytes(body[24:26], "little")
    if channels not in (1, 2):
        raise WavError(f"the WAV file must be mono or stereo, not of {channels} channels")
    if not _MIN_RATE <= sample_rate <= _MAX_RATE:
        raise WavError(f"the sample rate of the WAV file must be 8000 to 48000 Hz, not {sample_rate}")
    form = _FORMS.get((coding, bits))
    if form is None:
        raise WavError(
            "the WAV file must hold PCM of 8, 16, 24 or 32 bits, floating point of 32 or 64, A-law or "
            f"mu-law, not coding {coding} of {bits} bits"
        )
    if block_bytes != channels * bits // 8:
        raise WavError(
            f"the WAV file contradicts itself: {channels} times {bits} bits in {block_bytes} bytes"
        )
    return _Format(form, channels, sample_rate, block_bytes)


def _clip(form: _Format, chunk: _Chunk, partial: bool) -> Clip:
    body = chunk.body
    if len(body) < chunk.size < _OPEN_END_BYTES and not partial:
        raise WavError(f"the WAV file is cut short: {len(body)} of {chunk.size} bytes of samples are there")
    whole = body[: len(body) // form.block_bytes * form.block_bytes]
    pcm = whole if form.form == "s16" else _engine.to_linear(whole, form.form, False)
    return Clip(pcm, form.sample_rate, form.channels)
