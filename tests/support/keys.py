"""Telephone keys as far ends press and hear them: telephone events, INFO requests, tones in the audio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal
from weakref import WeakKeyDictionary

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
_HOP: Final = 80
_MIN_BLOCKS: Final = 4  # a tone of 50 ms
_BRIDGED_BLOCKS: Final = 4  # any hole of 30 ms, and no pause of 60 ms, the shortest that is sent between keys
_WAVES: Final = np.exp(-2j * np.pi * np.outer(np.arange(_BLOCK), np.array(_ROWS_HZ + _COLUMNS_HZ)) / 8000)


_ears: Final[WeakKeyDictionary[PhoneCall, KeyEar]] = WeakKeyDictionary()
"""State of earlier searches: a repeated search does not start from the beginning, since it runs beside
keep time."""


def key_tones(keys: str, on_ms: int = 100, off_ms: int = 100) -> bytes:
    """Both frequencies of each key, 16 bits at 8 kHz, with silence between them."""
    time = np.arange(8 * on_ms) / 8000
    parts: list[NDArray[np.float64]] = []
    for key in keys:
        row, column = divmod(_KEYS.index(key), 4)
        wave = np.sin(2 * np.pi * _ROWS_HZ[row] * time) + np.sin(2 * np.pi * _COLUMNS_HZ[column] * time)
        parts += [7000 * wave, np.zeros(8 * off_ms)]
    return np.concatenate(parts).astype("<i2").tobytes()


class KeyEar:
    """
    Hears the keys whose tones stand in 16-bit samples at 8 kHz, each once for as long as it lasts.

    A tone that goes on after a shorter interruption than anybody leaves between two keys is the same key:
    a machine that held up one side for a moment makes such holes (ITU-T Q.24 has receivers bridge them).
    """

    def __init__(self) -> None:
        self.keys = ""
        self._taken = 0
        self._waiting = bytearray()
        self._key, self._count, self._hole = "", 0, 0

    def follow(self, pcm: bytearray) -> str:
        """The keys in all that was heard so far, of which only what is new is looked at."""
        self.hear(bytes(pcm[self._taken :]))
        self._taken = len(pcm)
        return self.keys

    def hear(self, pcm: bytes) -> None:
        """Process the next samples."""
        self._waiting += pcm
        count = len(self._waiting) // (2 * _HOP) + 1 - _BLOCK // _HOP
        if count < 1:
            return
        samples = np.frombuffer(bytes(self._waiting[: 2 * (count * _HOP + _BLOCK - _HOP)]), "<i2")
        del self._waiting[: 2 * count * _HOP]
        for key in _keys_of(np.lib.stride_tricks.sliding_window_view(samples.astype(float), _BLOCK)[::_HOP]):
            self._block(key)

    def _block(self, key: str) -> None:
        if key == "":
            self._hole += 1
            if self._hole > _BRIDGED_BLOCKS:
                self._key, self._count = "", 0
            return
        self._count = self._count + 1 if key == self._key else 1
        self._key, self._hole = key, 0
        if self._count == _MIN_BLOCKS:
            self.keys += key


def keys_in(pcm: bytes) -> str:
    """The keys whose tones stand in 16-bit samples at 8 kHz."""
    ear = KeyEar()
    ear.hear(pcm)
    return ear.keys


def _keys_of(blocks: NDArray[np.float64]) -> Iterator[str]:
    power = np.mean(blocks**2, axis=1)
    levels = np.abs(blocks @ _WAVES / _BLOCK) ** 2
    rows, columns = levels[:, :4], levels[:, 4:]
    row, column = np.argmax(rows, axis=1), np.argmax(columns, axis=1)
    row_level, column_level = np.max(rows, axis=1), np.max(columns, axis=1)
    # Two pure tones hold half of the block's power in these two figures.
    is_key = (power > 100_000) & (row_level + column_level > 0.35 * power)
    is_key &= np.minimum(row_level, column_level) > 0.1 * power
    for index, found in enumerate(is_key):
        yield _KEYS[4 * int(row[index]) + int(column[index])] if found else ""


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
    """The keys that have arrived in one way; tones in a call that keeps all it hears."""
    if way == "rfc2833":
        return call.digits
    if way == "tones":
        return _ears.setdefault(call, KeyEar()).follow(call.heard)
    bodies = [event.body for event in call.events if isinstance(event, InfoReceived)]
    return "".join(body.split(b"=")[1][:1].decode() for body in bodies)
