"""The keys that tests press and hear."""

import pytest

from media.audio import alaw_to_l16, l16_to_alaw, tone
from tests.support.keys import KeyEar, key_tones, keys_in

KEYS = "123A456B789C*0#D5500"


def test_all_keys_are_found_each_once() -> None:
    assert keys_in(key_tones(KEYS)) == KEYS
    assert keys_in(alaw_to_l16(l16_to_alaw(key_tones(KEYS, 80, 60)))) == KEYS


@pytest.mark.parametrize("hole_ms", [10, 20, 30])
def test_a_tone_with_a_hole_in_it_is_one_key(hole_ms: int) -> None:
    assert keys_in(key_tones("5", 70, hole_ms) + key_tones("5", 90, 60) + key_tones("50")) == "550"


def test_sound_may_come_in_pieces() -> None:
    pcm = key_tones(KEYS)
    ear, heard = KeyEar(), bytearray()
    for at in range(0, len(pcm), 1002):
        heard += pcm[at : at + 1002]
        ear.follow(heard)
    assert ear.keys == KEYS


def test_other_sounds_are_no_keys() -> None:
    assert keys_in(tone(697, 500) + tone(1209, 500) + tone(440, 500) + bytes(8000)) == ""
