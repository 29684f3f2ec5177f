"""The music that is there without any file."""

from __future__ import annotations

import runpy
from itertools import pairwise
from pathlib import Path

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


def test_it_is_what_the_script_composes() -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "hold-music"))
    composed = memoryview(script["melody"]()).cast("h")
    samples = memoryview(hold_music()).cast("h")
    assert len(samples) == len(composed)
    # Sines of another C library may differ in the last bit.
    assert max(abs(one - other) for one, other in zip(samples, composed, strict=True)) <= 1
