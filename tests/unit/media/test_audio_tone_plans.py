"""Call progress tones: their texts, their spectra, their seams."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from media.audio import TONE_PLANS, ToneError, dtmf, parse_tone, ringing_tone
from tests.support.levels import tone_level_dbfs

NAMES = {
    *("dial", "ringback", "busy", "congestion", "unobtainable", "waiting", "confirm"),
    *("information", "recording", "beep"),
}


def samples(pcm: bytes) -> NDArray[np.float64]:
    return np.frombuffer(pcm, dtype="<i2").astype(np.float64) / 32767.0


def level_dbm0(sound: NDArray[np.float64]) -> float:
    """Power over a whole sound: a full-scale sine is +3.14 dBm0."""
    return float(10 * np.log10(2 * np.mean(sound**2) + 1e-12) + 3.14)


def cadence(pcm: bytes, rate: int = 8000) -> list[tuple[bool, int]]:
    """Runs of sound and silence, each with its length in ms to the nearest 10."""
    blocks = samples(pcm).reshape(-1, rate // 100)
    loud = np.sqrt(np.mean(blocks**2, axis=1)) > 0.001
    edges = np.flatnonzero(np.diff(loud)) + 1
    return [(bool(run[0]), 10 * len(run)) for run in np.split(loud, edges)]


def test_every_plan_has_every_tone() -> None:
    assert set(TONE_PLANS) == {"in", "us", "uk", "etsi"}
    for plan in TONE_PLANS.values():
        assert set(plan.tones) == NAMES


@pytest.mark.parametrize("rate", [8000, 16_000])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ringback", [(True, 400), (False, 200), (True, 400), (False, 2000)]),
        ("busy", [(True, 750), (False, 750)]),
        ("congestion", [(True, 250), (False, 250)]),
        ("unobtainable", [(True, 2500), (False, 500)]),
        ("waiting", [(True, 200), (False, 100), (True, 200), (False, 7500)]),
        ("confirm", [(True, 100), (False, 100), (True, 100), (False, 100), (True, 100)]),
    ],
)
def test_the_cadences_of_india(rate: int, name: str, expected: list[tuple[bool, int]]) -> None:
    assert cadence(TONE_PLANS["in"].pcm(name, rate), rate) == expected


def test_the_ringing_tone_of_india_is_400_hz_that_swings_with_25() -> None:
    pcm = TONE_PLANS["in"].pcm("ringback")[: 2 * 3200]
    carrier = tone_level_dbfs(pcm, 400)
    for side in (375, 425):
        assert -10 < tone_level_dbfs(pcm, side) - carrier < -6
    for other in (350, 450, 300, 500, 800, 1200):
        assert tone_level_dbfs(pcm, other) < -45


@pytest.mark.parametrize("plan", sorted(TONE_PLANS))
@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_tone_has_its_frequencies_at_its_level(plan: str, name: str) -> None:
    tone = TONE_PLANS[plan].tone(name)
    parts = tone.cycle or tone.intro
    pcm = tone.cycle_pcm(16_000) or tone.intro_pcm(16_000)
    position = 0
    for part in parts:
        count = 32 * (part.duration_ms or len(pcm) // 32)
        # Away from the ramps at both ends.
        inner = pcm[position + 32 * 10 : position + count - 32 * 10]
        position += count
        if not part.frequencies_hz:
            assert not any(inner)
        elif part.modulated_by_hz is None:
            for frequency in part.frequencies_hz:
                measured = tone_level_dbfs(inner, float(frequency), 16_000) + 3.14
                assert measured == pytest.approx(tone.level_dbm0, abs=0.8)
            power = tone.level_dbm0 + 10 * np.log10(len(part.frequencies_hz))
            assert level_dbm0(samples(inner)) == pytest.approx(power, abs=0.5)
        else:
            assert level_dbm0(samples(inner)) == pytest.approx(tone.level_dbm0, abs=0.5)


@pytest.mark.parametrize("plan", sorted(TONE_PLANS))
@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("rate", [8000, 16_000])
def test_no_tone_clips_and_no_loop_clicks(plan: str, name: str, rate: int) -> None:
    sound = samples(TONE_PLANS[plan].pcm(name, rate))
    assert 0.01 < np.max(np.abs(sound)) < 0.99
    looped = np.concatenate([sound, sound, sound])
    # A click is a step at the seam larger than any within.
    steps = np.abs(np.diff(looped))
    assert np.max(steps) <= np.max(np.abs(np.diff(sound))) + 1e-9


@pytest.mark.parametrize("text", ["400*25", "350+440", "425", "400*16.7", "440.1+480.3", "1004"])
@pytest.mark.parametrize("rate", [8000, 16_000])
def test_a_tone_without_end_is_cut_at_whole_periods(text: str, rate: int) -> None:
    sound = samples(parse_tone(text).cycle_pcm(rate))
    assert len(sound) >= rate
    assert len(sound) <= 11 * rate
    looped = np.concatenate([sound, sound])
    # The seam is where the sound begins anew: what follows it is what the formula says, not a jump.
    ahead = looped[len(sound) - 4 : len(sound) + 4]
    assert np.max(np.abs(np.diff(ahead, n=2))) <= np.max(np.abs(np.diff(sound, n=2))) + 2 / 32767


def test_what_is_heard_once_comes_first() -> None:
    tone = parse_tone("!400/100,!0/100,350+440")
    assert cadence(tone.intro_pcm()) == [(True, 100), (False, 100)]
    assert tone_level_dbfs(tone.cycle_pcm(), 350) == pytest.approx(-13.14, abs=0.1)
    # A round that ends in a part without end never comes round again.
    assert parse_tone("400/100,0/100,425") == parse_tone("!400/100,!0/100,425")


def test_the_level_is_set_by_the_text_or_by_who_reads_it() -> None:
    assert parse_tone("400@-13.5").level_dbm0 == -13.5
    assert parse_tone("400", -20).level_dbm0 == -20
    assert parse_tone(" 400/200 , 0/200 @-3").cycle == parse_tone("400/200,0/200").cycle


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no part of a tone"),
        ("400,", "no part of a tone"),
        ("400/", "no part of a tone"),
        ("400/0", "lasts 1 to"),
        ("400/99999", "lasts 1 to"),
        ("4000", "between 10 and 3800"),
        ("5/100", "between 10 and 3800"),
        ("400*5000/100", "between 10 and 3800"),
        ("400+", "no part of a tone"),
        ("0*25/100", "cannot be modulated"),
        ("400*25+300/100", "no part of a tone"),
        ("400+401+402+403+404", "at most 4"),
        ("400,0/200", "only the last part"),
        ("!400", "only the last part"),
        ("400/100,!400/100", "come first"),
        ("400@", "number of dBm0"),
        ("400@loud", "number of dBm0"),
        ("400@3", "-60 to 0"),
        ("400@-61", "-60 to 0"),
        (",".join(["400/100"] * 33), "at most 32 parts"),
        (",".join(["400/60000"] * 3), "at most 120 s"),
        ("4" * 513, "at most 512"),
        ("४००/200", "no part of a tone"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ToneError, match=reason):
        parse_tone(text)


@given(st.text("0123456789*+/,!@.- ", max_size=60))
def test_any_text_is_a_tone_or_refused(text: str) -> None:
    try:
        tone = parse_tone(text)
    except ToneError:
        return
    assert tone.intro or tone.cycle


def test_the_ringing_tone_is_that_of_a_plan_or_written_out() -> None:
    assert ringing_tone(" UK ") == TONE_PLANS["uk"].tone("ringback")
    assert ringing_tone("425/1000,0/4000@-12") == parse_tone("425/1000,0/4000", -12.0)
    with pytest.raises(ToneError, match="'fr' is no part of a tone"):
        ringing_tone("fr")


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ToneError, match="has no engaged; it has .*busy"):
        TONE_PLANS["in"].pcm("engaged")


@pytest.mark.parametrize("key", "0123456789*#ABCDabcd")
def test_dtmf_has_its_two_frequencies(key: str) -> None:
    row, column = divmod("123A456B789C*0#D".index(key.upper()), 4)
    pcm = dtmf(key, 100, 50)
    assert len(pcm) == 2 * 8 * 150
    tones = pcm[2 * 80 : 2 * 720]
    for number, frequency in enumerate((697, 770, 852, 941, 1209, 1336, 1477, 1633)):
        expected = number in (row, 4 + column)
        assert (tone_level_dbfs(tones, frequency) > -11) == expected
        assert expected or tone_level_dbfs(tones, frequency) < -30
    assert not any(pcm[2 * 800 :])
    assert np.max(np.abs(samples(pcm))) < 0.8


@pytest.mark.parametrize(("keys", "ms"), [("", 100), ("x", 100), ("1" * 65, 100), ("1", 10), ("1", 9000)])
def test_dtmf_is_bounded(keys: str, ms: int) -> None:
    with pytest.raises(ToneError):
        dtmf(keys, ms)
