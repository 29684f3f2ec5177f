"""Tones, made and found."""

import pytest

from media.audio import tone
from tests.support.levels import level_dbfs, tone_level_dbfs


@pytest.mark.parametrize("rate", [8000, 16_000])
@pytest.mark.parametrize("level", [0.0, -10.0, -40.0])
def test_a_tone_has_its_frequency_and_level(rate: int, level: float) -> None:
    pcm = tone(1000, 1000, level, rate)
    assert len(pcm) == 2 * rate
    assert tone_level_dbfs(pcm, 1000, rate) == pytest.approx(level, abs=0.2)
    assert tone_level_dbfs(pcm, 1300, rate) < level - 40
    assert level_dbfs(pcm) == pytest.approx(level - 3.0, abs=0.2)


def test_a_tone_begins_and_ends_softly() -> None:
    pcm = tone(1000, 100)
    assert pcm[:2] == pcm[-2:] == b"\0\0"


def test_short_and_loud_tones_stay_in_range() -> None:
    assert tone(1000, 0) == b""
    assert len(tone(1000, 1, 20.0)) == 16


def test_silence() -> None:
    assert level_dbfs(bytes(320)) == level_dbfs(b"") == tone_level_dbfs(b"", 1000) == -120.0
    assert tone_level_dbfs(bytes(320), 1000) == -120.0
