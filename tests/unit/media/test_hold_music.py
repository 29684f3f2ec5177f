"""The music that is there without any file."""

from __future__ import annotations

from itertools import pairwise

from media.audio import hold_music
from tests.support.levels import level_dbfs, tone_level_dbfs

SECOND = 16_000


def test_it_is_soft_and_never_silent_for_long() -> None:
    music = hold_music()
    assert 8 <= len(music) / SECOND <= 15
    assert -35 < level_dbfs(music) < -20
    for start in range(0, len(music) - SECOND, SECOND // 2):
        assert level_dbfs(music[start : start + SECOND]) > -45


def test_it_is_a_melody_and_no_tone_of_the_network() -> None:
    music = hold_music()
    beginning = music[: SECOND // 3]
    assert tone_level_dbfs(beginning, 523.25) > -30
    assert tone_level_dbfs(beginning, 400.0) < tone_level_dbfs(beginning, 523.25) - 10


def test_the_loop_has_no_seam() -> None:
    samples = memoryview(hold_music()).cast("h")
    largest = max(abs(after - before) for before, after in pairwise(samples))
    assert abs(samples[0] - samples[-1]) <= largest
