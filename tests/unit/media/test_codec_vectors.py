"""
Codecs against answers of other implementations, in `tests/vectors/codecs`.

Those of G.711 were made with the tables of Python's `audioop`, those of G.722 with FFmpeg's codec.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from media import _engine

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors/codecs/known_answers.json").read_text(encoding="ascii")
)
SAMPLES_OF_10_MS = 80


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _noise(count: int) -> bytes:
    """Bytes of a linear congruence, which every implementation makes alike."""
    state, made = 1, bytearray()
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        made.append(state >> 16 & 0xFF)
    return bytes(made)


def _sound(count: int) -> bytes:
    """A triangle with noise upon it that grows beyond full scale."""
    values = []
    for n, noise in enumerate(_noise(count)):
        level = n * 32 // count + 1
        value = (abs(n % 64 - 32) * 2 - 32) * level * 32 + (noise - 128) * level * 4
        values.append(max(-32768, min(32767, value)))
    return struct.pack(f"={count}h", *values)


def _encoded(name: str, pcm: bytes, frame_bytes: int) -> bytes:
    encoder = _engine.Encoder(name, 8000)
    frames = [pcm[at : at + frame_bytes] for at in range(0, len(pcm), frame_bytes)]
    return b"".join(encoder.encode(frame.ljust(frame_bytes, b"\0")) for frame in frames)


def _decoded(name: str, payload: bytes) -> bytes:
    decoder = _engine.Decoder(name, 8000)
    return b"".join(decoder.decode(payload[at : at + 160]) for at in range(0, len(payload), 160))


@pytest.mark.parametrize("name", ["PCMU", "PCMA"])
def test_each_code_and_each_sample_of_g711(name: str) -> None:
    expected = VECTORS[name]
    assert list(struct.unpack("=256h", _decoded(name, bytes(range(256))))) == expected["decoded"]
    pcm = struct.pack("=65536h", *range(-32768, 32768))
    assert _sha256(_encoded(name, pcm, 2 * SAMPLES_OF_10_MS)[:65536]) == expected["encoded_sha256"]


def test_g722_bit_for_bit() -> None:
    expected = VECTORS["G722"]
    decoded = _decoded("G722", _noise(3200))
    assert list(struct.unpack("=32h", decoded[:64])) == expected["decoded"]
    little = struct.pack(f"<{len(decoded) // 2}h", *struct.unpack(f"={len(decoded) // 2}h", decoded))
    assert _sha256(little) == expected["decoded_sha256"]
    encoded = _encoded("G722", _sound(6400), 640)
    assert list(encoded[:32]) == expected["encoded"]
    assert _sha256(encoded) == expected["encoded_sha256"]


def test_g722_above_full_scale_is_limited() -> None:
    """Overload must not wrap around: loud becomes flat, never its opposite."""
    square = struct.pack("=16000h", *(32767 if n // 27 % 2 == 0 else -32768 for n in range(16000)))
    heard = struct.unpack("=16000h", _decoded("G722", _encoded("G722", square, 640)))
    # In the middle of each half period, 22 samples after the delay of both filters, the sign is the square's.
    settled = range(16, 590)
    assert all(heard[27 * n + 22 + 13] * (1 if n % 2 == 0 else -1) > 20_000 for n in settled)
