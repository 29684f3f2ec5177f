"""Audio helpers: G.711, sample rates, tones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from trunkline_client.audio import (
    Resampler,
    alaw_decode,
    alaw_encode,
    level,
    mulaw_decode,
    mulaw_encode,
    resample,
    tone,
)


def samples(pcm: bytes) -> npt.NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2").astype(np.float64)


def test_a_tone_has_its_length_level_and_frequency() -> None:
    pcm = tone(1000, 0.5, 16000, amplitude=0.5)
    assert len(pcm) == 16000
    assert level(pcm) == pytest.approx(0.5 * 32767 / 2**0.5, rel=0.01)
    spectrum = np.abs(np.fft.rfft(samples(pcm)))
    assert int(spectrum.argmax()) * 16000 / 8000 == 1000


def test_g711_keeps_the_sound() -> None:
    pcm = tone(440, 0.1)
    for encode, decode in ((mulaw_encode, mulaw_decode), (alaw_encode, alaw_decode)):
        encoded = encode(pcm)
        assert len(encoded) == len(pcm) // 2
        assert np.abs(samples(decode(encoded)) - samples(pcm)).max() < 300
    assert mulaw_encode(b"\0\0") == b"\xff" and alaw_encode(b"\0\0") == b"\xd5"


@pytest.mark.parametrize("from_rate", [8000, 16000, 24000, 44100, 48000])
@pytest.mark.parametrize("to_rate", [8000, 16000, 24000])
def test_a_tone_stays_the_same_tone(from_rate: int, to_rate: int) -> None:
    made, wanted = resample(tone(440, 0.3, from_rate), from_rate, to_rate), tone(440, 0.3, to_rate)
    assert len(made) == len(wanted)
    assert np.abs(samples(made) - samples(wanted))[100:-100].max() <= 4


def test_what_the_lower_rate_cannot_carry_is_gone() -> None:
    assert level(resample(tone(6000, 1, 16000), 16000, 8000)) < 50


@pytest.mark.parametrize("part_bytes", [2, 320, 962, 5000])
def test_parts_sound_as_the_whole(part_bytes: int) -> None:
    pcm = tone(440, 0.2, 24000)
    converter = Resampler(24000, 8000)
    parts = [converter.convert(pcm[at : at + part_bytes]) for at in range(0, len(pcm), part_bytes)]
    assert b"".join(parts) + converter.flush() == resample(pcm, 24000, 8000)


def test_the_loudest_is_not_turned_over() -> None:
    square = np.tile(np.repeat(np.array([32767, -32768], "<i2"), 20), 50).tobytes()
    made = samples(resample(square, 8000, 16000))
    assert made.max() == 32767 and made.min() == -32768
    assert np.abs(np.diff(made)).max() < 65535


def test_nothing_is_nothing() -> None:
    assert resample(b"", 8000, 16000) == b"" and level(b"") == 0
    with pytest.raises(ValueError, match="positive"):
        Resampler(0, 8000)
