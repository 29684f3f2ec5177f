"""
Call progress tones: a textual form, and the tone plans of several countries.

A tone is written as its parts, separated by commas: `400*25/400,0/200,400*25/400,0/2000` is the ringing tone
of India. A part is a frequency in Hz (0 is a pause), several joined by `+`, or one modulated by another
(`400*25`); then, after a slash, its duration in ms. A part without duration is endless and stands alone or
last. Parts that begin with `!` are played once, the others are repeated. `@-13` at the end sets the level of
the tone in dBm0.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from media.audio.clip import ToneError, bytes_of

# A sine of full scale in G.711 (Q.8/G.711 table: 3.14 for A-law, 3.17 for mu-law; we use the lower).
DBM0_OF_FULL_SCALE: Final = 3.14
_FULL_SCALE = 32_767
# A hard edge would click.
_RAMP_MS = 5
# Depth of `400*25`: deep enough for the familiar purr, and the carrier never vanishes.
_MODULATION_DEPTH = 0.8
# A continuous tone is cut at whole periods of all its frequencies, after a second or a little more.
_CONTINUOUS_MS = 1000

_MAX_PARTS = 32
_MAX_FREQUENCIES = 4
_MAX_TEXT = 512
_MAX_PART_MS = 60_000
_MAX_TONE_MS = 120_000
_MIN_HZ, _MAX_HZ = 10, 3800
_MIN_DBM0, _MAX_DBM0 = -60.0, 0.0
_DEFAULT_DBM0 = -10.0

# Tenths of a hertz: two frequencies complete whole periods together within ten seconds.
_NUMBER = r"[0-9]{1,4}(?:\.[0-9])?"
_PART = re.compile(
    rf"(?P<once>!)?(?P<first>{_NUMBER})(?:\*(?P<by>{_NUMBER})|(?P<more>(?:\+{_NUMBER})*))(?:/(?P<ms>[0-9]{{1,5}}))?"
)
_LEVEL = re.compile(r"-?[0-9]{1,2}(?:\.[0-9])?")


@dataclass(frozen=True, slots=True)
class TonePart:
    """
    One part of a tone.

    Attributes:
        frequencies_hz: Simultaneous frequencies, each at the tone's level; an empty tuple is a pause.
        modulated_by_hz: Frequency of the amplitude modulation of the only frequency.
        duration_ms: None for an endless part.
    """

    frequencies_hz: tuple[Fraction, ...]
    modulated_by_hz: Fraction | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Tone:
    """
    A call progress tone: parts played once, then parts repeated.

    Attributes:
        level_dbm0: Level of each frequency; for a modulated one, of its power with all sidebands.
    """

    intro: tuple[TonePart, ...]
    cycle: tuple[TonePart, ...]
    level_dbm0: float = _DEFAULT_DBM0

    def intro_pcm(self, sample_rate: int = 8000) -> bytes:
        """Return 16-bit samples of the parts played once; empty when there are none."""
        return _rendered(self.intro, self.level_dbm0, sample_rate)

    def cycle_pcm(self, sample_rate: int = 8000) -> bytes:
        """
        Return 16-bit samples of one cycle, which loop without a seam; empty when nothing repeats.

        An endless tone is cut at whole periods of its frequencies.
        """
        return _rendered(self.cycle, self.level_dbm0, sample_rate)


@dataclass(frozen=True, slots=True)
class TonePlan:
    """Tones of one network by name, such as `ringback`; see `TONE_PLANS` for the names."""

    name: str
    tones: Mapping[str, Tone]

    def tone(self, name: str) -> Tone:
        """
        Return the tone of a name.

        Raises:
            ToneError: The plan has no tone of that name.
        """
        found = self.tones.get(name)
        if found is None:
            known = ", ".join(sorted(self.tones))
            raise ToneError(f"the tone plan {self.name} has no {name}; it has {known}")
        return found

    def pcm(self, name: str, sample_rate: int = 8000) -> bytes:
        """
        Return samples for a loop: one cycle, or the parts played once of a tone that does not repeat.

        Raises:
            ToneError: The plan has no tone of that name.
        """
        tone = self.tone(name)
        return tone.cycle_pcm(sample_rate) or tone.intro_pcm(sample_rate)


def parse_tone(text: str, level_dbm0: float = _DEFAULT_DBM0) -> Tone:
    """
    Parse a tone in the form that this module's docstring describes.

    Raises:
        ToneError: The text is no tone; the message names the wrong part.
    """
    if len(text) > _MAX_TEXT:
        raise ToneError(f"a tone is written in at most {_MAX_TEXT} characters")
    body, at, level = text.partition("@")
    if at:
        if not _LEVEL.fullmatch(level):
            raise ToneError(f"the level behind @ is a number of dBm0, not {level[:16]!r}")
        level_dbm0 = float(level)
    if not _MIN_DBM0 <= level_dbm0 <= _MAX_DBM0:
        raise ToneError(f"a tone's level is {_MIN_DBM0:.0f} to {_MAX_DBM0:.0f} dBm0")
    written = body.split(",")
    if len(written) > _MAX_PARTS:
        raise ToneError(f"a tone has at most {_MAX_PARTS} parts")
    read = [_part(part.strip()) for part in written]
    intro = tuple(part for once, part in read if once)
    cycle = tuple(part for once, part in read if not once)
    if [once for once, _ in read] != [True] * len(intro) + [False] * len(cycle):
        raise ToneError("the parts that are played once (!) must come first")
    if any(part.duration_ms is None for part in (*intro, *cycle[:-1])):
        raise ToneError("only the last part may be endless, and only without !")
    # Nothing before an endless part is repeated: the cycle is that part alone.
    if cycle and cycle[-1].duration_ms is None:
        intro, cycle = intro + cycle[:-1], cycle[-1:]
    _check_whole(intro, cycle)
    return Tone(intro, cycle, level_dbm0)


def ringing_tone(text: str) -> Tone:
    """
    Return the ringing tone of a named plan, or a tone in the form of `parse_tone`.

    Raises:
        ToneError: It is neither.
    """
    plan = TONE_PLANS.get(text.strip().lower())
    return parse_tone(text) if plan is None else plan.tone("ringback")


def dtmf(keys: str, duration_ms: int = 100, gap_ms: int = 100, sample_rate: int = 8000) -> bytes:
    """
    Return samples of keys as dual tones, each followed by a pause (ITU-T Q.23, levels of Q.24).

    Raises:
        ToneError: A character is no DTMF key, or a time is out of range.
    """
    if not keys or len(keys) > 64 or not set(keys.upper()) <= _DTMF.keys():
        raise ToneError("1 to 64 of 0-9 * # A-D can be made as tones")
    if not 40 <= duration_ms <= 8000 or not 20 <= gap_ms <= 8000:
        raise ToneError("digits last 40 to 8000 ms with gaps of 20 to 8000 ms")
    pause = TonePart((), None, gap_ms)
    parts = (part for key in keys.upper() for part in (TonePart(_DTMF[key], None, duration_ms), pause))
    return _rendered(tuple(parts), _DTMF_DBM0, sample_rate)


def _part(text: str) -> tuple[bool, TonePart]:
    """Parse a part; returns True with it if it is played only once."""
    match = _PART.fullmatch(text)
    if match is None:
        raise ToneError(f"{text[:40]!r} is no part of a tone, such as 400*25/400, 350+440 or 0/200")
    frequencies = [Fraction(match["first"])]
    frequencies += [Fraction(more) for more in (match["more"] or "").split("+") if more]
    by = None if match["by"] is None else Fraction(match["by"])
    duration_ms = None if match["ms"] is None else int(match["ms"])
    if duration_ms is not None and not 0 < duration_ms <= _MAX_PART_MS:
        raise ToneError(f"a part of a tone lasts 1 to {_MAX_PART_MS} ms")
    if frequencies == [0]:
        if by is not None:
            raise ToneError("a pause cannot be modulated")
        return bool(match["once"]), TonePart((), None, duration_ms)
    if len(frequencies) > _MAX_FREQUENCIES:
        raise ToneError(f"at most {_MAX_FREQUENCIES} frequencies sound at once")
    for frequency in (*frequencies, *([by] if by is not None else [])):
        if not _MIN_HZ <= frequency <= _MAX_HZ:
            raise ToneError(f"a frequency lies between {_MIN_HZ} and {_MAX_HZ} Hz")
    return bool(match["once"]), TonePart(tuple(frequencies), by, duration_ms)


def _check_whole(intro: tuple[TonePart, ...], cycle: tuple[TonePart, ...]) -> None:
    whole_ms = sum(part.duration_ms or _CONTINUOUS_MS for part in (*intro, *cycle))
    if whole_ms > _MAX_TONE_MS:
        raise ToneError(f"a tone is at most {_MAX_TONE_MS // 1000} s long until it repeats")


@lru_cache(maxsize=64)
def _rendered(parts: tuple[TonePart, ...], level_dbm0: float, sample_rate: int) -> bytes:
    return b"".join(_part_pcm(part, level_dbm0, sample_rate) for part in parts)


def _part_pcm(part: TonePart, level_dbm0: float, sample_rate: int) -> bytes:
    if part.duration_ms is None:
        samples = _periods(part, level_dbm0, sample_rate, sample_rate * _CONTINUOUS_MS // 1000, whole=True)
        return bytes_of(samples)
    count = sample_rate * part.duration_ms // 1000
    if not part.frequencies_hz:
        return bytes(2 * count)
    samples = _periods(part, level_dbm0, sample_rate, count, whole=False)
    ramp = min(sample_rate * _RAMP_MS // 1000, count // 2)
    for index in range(ramp):
        samples[index] = samples[index] * index // ramp
        samples[-1 - index] = samples[-1 - index] * index // ramp
    return bytes_of(samples)


def _periods(part: TonePart, level_dbm0: float, sample_rate: int, count: int, *, whole: bool) -> array[int]:
    """Return at least `count` samples in whole periods or, without `whole`, exactly `count`."""
    if not part.frequencies_hz:
        return array("h", bytes(2 * count))
    period = _period_samples(part, sample_rate)
    needed = period if whole else min(period, count)
    made = array("h", (_sample(part, level_dbm0, n / sample_rate) for n in range(needed)))
    made *= -(-count // max(needed, 1))
    return made if whole else made[:count]


def _period_samples(part: TonePart, sample_rate: int) -> int:
    """Return the common period of all frequencies of the part, in samples."""
    members = [*part.frequencies_hz, *([part.modulated_by_hz] if part.modulated_by_hz is not None else [])]
    common = Fraction(0)
    for member in (*members, Fraction(sample_rate)):
        common = Fraction(
            math.gcd(common.numerator * member.denominator, member.numerator * common.denominator),
            common.denominator * member.denominator,
        )
    return int(sample_rate / common)


def _sample(part: TonePart, level_dbm0: float, time_s: float) -> int:
    amplitude = _FULL_SCALE * math.pow(10.0, (level_dbm0 - DBM0_OF_FULL_SCALE) / 20.0)
    value = sum(math.sin(2.0 * math.pi * float(hz) * time_s) for hz in part.frequencies_hz)
    if part.modulated_by_hz is not None:
        swing = math.sin(2.0 * math.pi * float(part.modulated_by_hz) * time_s)
        # The sidebands carry power too; with them the tone has its stated level.
        value *= (1.0 + _MODULATION_DEPTH * swing) / math.sqrt(1.0 + _MODULATION_DEPTH**2 / 2.0)
    return max(-_FULL_SCALE, min(_FULL_SCALE, round(amplitude * value)))


_DTMF_DBM0: Final = -7.0
_LOW_HZ = (697, 770, 852, 941)
_HIGH_HZ = (1209, 1336, 1477, 1633)
_DTMF: Final = {
    key: (Fraction(low), Fraction(high))
    for low, row in zip(_LOW_HZ, ("123A", "456B", "789C", "*0#D"), strict=True)
    for high, key in zip(_HIGH_HZ, row, strict=True)
}

# The special information tone is the same everywhere (ITU-T E.180 clause 6).
_INFORMATION = "950/330,1400/330,1800/330,0/1000"
# Notifies both parties that a call is recorded, where that is required.
_RECORDING = "1400/500,0/15000"
_BEEP = "!1000/500"


def _plan(name: str, level_dbm0: float, tones: dict[str, str]) -> TonePlan:
    texts = {"information": _INFORMATION, "recording": _RECORDING, "beep": _BEEP} | tones
    return TonePlan(
        name, MappingProxyType({key: parse_tone(text, level_dbm0) for key, text in texts.items()})
    )


TONE_PLANS: Final[Mapping[str, TonePlan]] = MappingProxyType(
    {
        plan.name: plan
        for plan in (
            # ITU-T E.180 supplement 2, India. It names no confirmation tone; ours is the common three bursts.
            _plan(
                "in",
                -10.0,
                {
                    "dial": "400*25",
                    "ringback": "400*25/400,0/200,400*25/400,0/2000",
                    "busy": "400/750,0/750",
                    "congestion": "400/250,0/250",
                    "unobtainable": "400/2500,0/500",
                    "waiting": "400/200,0/100,400/200,0/7500",
                    "confirm": "!400/100,!0/100,!400/100,!0/100,!400/100",
                },
            ),
            # ANSI T1.401 and Bellcore GR-506 (also E.180 supplement 2, USA): each tone has its own level.
            _plan(
                "us",
                -13.0,
                {
                    "dial": "350+440@-13",
                    "ringback": "440+480/2000,0/4000@-19",
                    "busy": "480+620/500,0/500@-24",
                    "congestion": "480+620/250,0/250@-24",
                    "unobtainable": "480+620/250,0/250@-24",
                    "waiting": "440/300,0/9700@-13",
                    "confirm": "!350+440/100,!0/100,!350+440/100,!0/100,!350+440/100@-13",
                },
            ),
            # E.180 supplement 2, United Kingdom.
            _plan(
                "uk",
                -13.0,
                {
                    "dial": "350+440",
                    "ringback": "400+450/400,0/200,400+450/400,0/2000",
                    "busy": "400/375,0/375",
                    "congestion": "400/400,0/350,400/225,0/525",
                    "unobtainable": "400",
                    "waiting": "400/100,0/2900",
                    "confirm": "!1400/100,!0/100,!1400/100,!0/100,!1400/100",
                },
            ),
            # The harmonized tones of ETSI TR 101 041-1.
            _plan(
                "etsi",
                -10.0,
                {
                    "dial": "425",
                    "ringback": "425/1000,0/4000",
                    "busy": "425/500,0/500",
                    "congestion": "425/200,0/200",
                    "unobtainable": "425/200,0/200",
                    "waiting": "425/200,0/600,425/200,0/3000",
                    "confirm": "!425/100,!0/100,!425/100,!0/100,!425/100",
                },
            ),
        )
    }
)
