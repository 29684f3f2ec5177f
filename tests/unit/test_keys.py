"""The keys that tests press and hear."""

from media.audio import alaw_to_l16, l16_to_alaw, tone
from tests.support.keys import key_tones, keys_in


def test_all_keys_are_found_each_once() -> None:
    keys = "123A456B789C*0#D5500"
    assert keys_in(key_tones(keys)) == keys
    assert keys_in(alaw_to_l16(l16_to_alaw(key_tones(keys, 80, 40)))) == keys


def test_other_sounds_are_no_keys() -> None:
    assert keys_in(tone(697, 500) + tone(1209, 500) + tone(440, 500) + bytes(8000)) == ""
