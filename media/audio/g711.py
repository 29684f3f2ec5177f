"""
G.711 for stored audio.

The native engine codes the audio of calls. This module is for files, for which tables and the standard
library suffice.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from functools import lru_cache

_MULAW_BIAS = 0x84
_MULAW_CLIP = 32_635


def mulaw_to_l16(data: bytes) -> bytes:
    """Decode mu-law (G.711 table 2) to 16-bit little-endian samples."""
    return _expand(data, _expander(_mulaw_sample))


def alaw_to_l16(data: bytes) -> bytes:
    """Decode A-law (G.711 table 1) to 16-bit little-endian samples."""
    return _expand(data, _expander(_alaw_sample))


def l16_to_mulaw(pcm: bytes) -> bytes:
    """Encode 16-bit little-endian samples as mu-law."""
    return bytes(map(_compressor(_mulaw_code).__getitem__, _unsigned(pcm)))


def l16_to_alaw(pcm: bytes) -> bytes:
    """Encode 16-bit little-endian samples as A-law."""
    return bytes(map(_compressor(_alaw_code).__getitem__, _unsigned(pcm)))


def _expand(data: bytes, tables: tuple[bytes, bytes]) -> bytes:
    low, high = tables
    out = bytearray(2 * len(data))
    out[0::2] = data.translate(low)
    out[1::2] = data.translate(high)
    return bytes(out)


def _unsigned(pcm: bytes) -> array[int]:
    samples = array("H", pcm)
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


@lru_cache(maxsize=2)
def _expander(decode: Callable[[int], int]) -> tuple[bytes, bytes]:
    """Return tables of the low and the high byte of each code's sample."""
    samples = [decode(code) & 0xFFFF for code in range(256)]
    return bytes(sample & 0xFF for sample in samples), bytes(sample >> 8 for sample in samples)


@lru_cache(maxsize=2)
def _compressor(encode: Callable[[int], int]) -> bytes:
    """Return a table of the code of each sample, indexed by the sample as unsigned."""
    return bytes(encode(value - 0x10000 if value & 0x8000 else value) for value in range(0x10000))


def _mulaw_sample(code: int) -> int:
    code = ~code & 0xFF
    magnitude = (((code & 0x0F) << 3) + _MULAW_BIAS) << ((code & 0x70) >> 4)
    return _MULAW_BIAS - magnitude if code & 0x80 else magnitude - _MULAW_BIAS


def _mulaw_code(sample: int) -> int:
    sign = 0x80 if sample < 0 else 0
    magnitude = min(abs(sample), _MULAW_CLIP) + _MULAW_BIAS
    exponent = magnitude.bit_length() - 8
    mantissa = magnitude >> (exponent + 3) & 0x0F
    return ~(sign | exponent << 4 | mantissa) & 0xFF


def _alaw_sample(code: int) -> int:
    code ^= 0x55
    exponent = (code & 0x70) >> 4
    magnitude = (code & 0x0F) << 4 | 0x08
    if exponent:
        magnitude = (magnitude | 0x100) << (exponent - 1)
    return magnitude if code & 0x80 else -magnitude


def _alaw_code(sample: int) -> int:
    # A-law rounds towards minus infinity: -1 is the smallest negative value, not zero.
    sign, magnitude = (0x80, sample) if sample >= 0 else (0, ~sample)
    exponent = max(magnitude.bit_length() - 8, 0)
    mantissa = magnitude >> (exponent + 3 if exponent else 4) & 0x0F
    return (sign | exponent << 4 | mantissa) ^ 0x55
