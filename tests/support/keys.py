"""Telephone keys as far ends press and hear them: telephone events, INFO requests, tones in the audio."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sip import InfoReceived
from tests.support.phone import PhoneCall

Way = Literal["rfc2833", "info", "tones"]
WAYS: Final[tuple[Way, ...]] = ("rfc2833", "info", "tones")

_ROWS_HZ: Final = (697, 770, 852, 941)
_COLUMNS_HZ: Final = (1209, 1336, 1477, 1633)
_KEYS: Final = "123A456B789C*0#D"
_BLOCK: Final = 160  # 20 ms
_MIN_BLOCKS: Final = 2


def key_tones(keys: str, on_ms: int = 100, off_ms: int = 100) -> bytes:
    """Both frequencies of each key, 16 bits at 8 kHz, with silence between them."""
    time = np.arange(8 * on_ms) / 8000
    parts: list[NDArray[np.float64]] = []
    for key in keys:
        row, column = divmod(_KEYS.index(key), 4)
        wave = np.sin(2 * np.pi * _ROWS_HZ[row] * time) + np.sin(2 * np.pi * _COLUMNS_HZ[column] * time)
        parts += [7000 * wave, np.zeros(8 * off_ms)]
    return np.concatenate(parts).astype("<i2").tobytes()


def keys_in(pcm: bytes) -> str:
    """The keys whose tones stand in 16-bit samples at 8 kHz, each once for as long as it lasts."""
    samples = np.frombuffer(pcm[: len(pcm) // 2 * 2], "<i2").astype(float)
    found, run, last = "", 0, ""
    for start in range(0, len(samples) - _BLOCK, _BLOCK // 2):
        key = _key_of(samples[start : start + _BLOCK])
        run = run + 1 if key == last else 1
        last = key
        if key and run == 2 * _MIN_BLOCKS:
            found += key
    return found


def _key_of(block: NDArray[np.float64]) -> str:
    time = np.arange(len(block)) / 8000
    power = float(np.mean(block**2))
    if power < 100_000:
        return ""
    levels = [abs(np.mean(block * np.exp(-2j * np.pi * hz * time))) ** 2 for hz in _ROWS_HZ + _COLUMNS_HZ]
    row, column = int(np.argmax(levels[:4])), int(np.argmax(levels[4:]))
    # Two pure tones hold half of the block's power in these two figures.
    if levels[row] + levels[4 + column] < 0.35 * power or min(levels[row], levels[4 + column]) < 0.1 * power:
        return ""
    return _KEYS[4 * row + column]


def press(call: PhoneCall, keys: str, way: Way) -> None:
    """Press keys one after the other."""
    if way == "rfc2833":
        call.open().send_dtmf(keys)
    elif way == "tones":
        call.open().play(key_tones(keys))
    else:
        for key in keys:
            call.session.info("application/dtmf-relay", f"Signal={key}\r\nDuration=160\r\n".encode())


def pressed(call: PhoneCall, way: Way) -> str:
    """The keys that have arrived in one way."""
    if way == "rfc2833":
        return call.digits
    if way == "tones":
        return keys_in(bytes(call.heard))
    bodies = [event.body for event in call.events if isinstance(event, InfoReceived)]
    return "".join(body.split(b"=")[1][:1].decode() for body in bodies)
