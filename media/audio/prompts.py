"""
Spoken prompts stored as WAV files, and the digits, numbers and amounts of money that are composed of them.

Numbers follow the Indian system of lakhs and crores. The available prompts define how a language counts: `45`
for a number with its own word, else `40` and `5`; `300`, else `3` and `hundred`; `lakh-one` where a single
lakh has its own form. `300`, `lakh-one` and the names of the scales may also have a form ending in `-joined`,
used when more of the number follows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Final

from media.audio.clip import Clip, Pause, Sound, UnknownPrompt
from media.audio.wav import read_wav

# A name is at most one folder deep, and cannot escape from the library.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}(?:/[a-z0-9][a-z0-9-]{0,63})?")
_DIGIT_GAP_MS = 150

MAX_NUMBER: Final = 99_99_99_999
_MAX_DIGITS = 64
_MAX_FRACTION_DIGITS = 6
_SCALES = (("crore", 1_00_00_000), ("lakh", 1_00_000), ("thousand", 1000))
_DEFAULT_LANGUAGES = ("en-in", "en")
_GROUP_GAP_MS = 450
# Words that stand for a pause of that length.
_GAPS = {"": _DIGIT_GAP_MS, " ": _GROUP_GAP_MS}

_Composer = Callable[[Container[str]], list[str]]


class PromptLibrary:
    """
    Prompts of a folder, by relative path without the suffix: `en/welcome`, `hi/7`.

    Prompts are small and few; each is read at its first use and cached.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: dict[str, bytes] = {}

    def get(self, name: str) -> bytes:
        """
        Return the samples of a prompt: L16 mono at 8 kHz.

        Raises:
            UnknownPrompt: No prompt has that name.
            WavError: Its file cannot be used.
        """
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = read_wav(self._read(name)).to_8k_mono().pcm
        return kept

    def names(self) -> list[str]:
        """Return the names of all prompts."""
        # By strings: a server reads some thousand names when it starts.
        begin = len(os.path.join(self._directory, ""))
        found = (
            os.path.join(folder, file)[begin:]
            for folder, _, files in os.walk(self._directory)
            for file in files
        )
        return sorted(
            name
            for path in found
            if path.endswith(".wav") and _NAME.fullmatch(name := path.removesuffix(".wav"))
        )

    def _read(self, name: str) -> bytes:
        if not _NAME.fullmatch(name):
            raise UnknownPrompt(
                "a prompt's name is made of lower-case letters, digits and hyphens, as in en/welcome"
            )
        try:
            return (self._directory / f"{name}.wav").read_bytes()
        except OSError:
            raise UnknownPrompt(f"there is no prompt named {name}") from None


def number_words(known: Container[str], number: int | Decimal) -> list[str]:
    """
    Return the names of the prompts that speak a number, in a language that has those `known`.

    Raises:
        UnknownPrompt: The number is larger than 99,99,99,999, or has more than six decimals.
    """
    # Before any arithmetic: a decimal may have more digits than fit in memory.
    exact = Decimal(number)
    if not exact.is_finite() or abs(exact) > MAX_NUMBER:
        raise UnknownPrompt("numbers up to 99,99,99,999 can be spoken")
    fraction = _fraction(exact)
    words = (["minus"] if exact < 0 else []) + _whole_words(known, abs(int(exact)))
    return words + (["point", *fraction] if fraction else [])


def digit_words(text: str, group: int = 0) -> list[str]:
    """
    Return the names of the prompts that speak digits one by one; empty names, or a space, are pauses.

    With `group`, a space, the longer pause, follows each group of that many digits from the left.

    Raises:
        UnknownPrompt: A character is no digit, or there are none or too many.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        raise UnknownPrompt(f"1 to {_MAX_DIGITS} of the digits 0 to 9 can be spoken")
    words = [text[0]]
    for place, digit in enumerate(text[1:], 1):
        words += [" " if group and place % group == 0 else "", digit]
    return words


def amount_words(known: Container[str], paise: int) -> list[str]:
    """
    Return the names of the prompts that speak an amount of money in rupees and paise.

    Raises:
        UnknownPrompt: The amount is larger than 99,99,99,999 rupees.
    """
    rupees, rest = divmod(abs(paise), 100)
    words = ["minus"] if paise < 0 else []
    if rupees or not rest:
        words += _money(known, rupees, "rupee", "rupees")
    if rupees and rest and "and" in known:
        words.append("and")
    if rest:
        words += _money(known, rest, "paisa", "paise")
    return words


def fallbacks(language: str) -> list[str]:
    """Return the prompt folders to try for a language, best first: `hi-in`, `hi`, then `en-in` and `en`."""
    tag = language.lower()
    return list(dict.fromkeys((tag, tag.partition("-")[0], *_DEFAULT_LANGUAGES)))


class Speaker:
    """
    Speaks digits, numbers and amounts with the prompts of a library.

    If a language lacks a prompt, the whole is spoken in the next of its `fallbacks`.
    """

    def __init__(self, library: PromptLibrary) -> None:
        self._library = library
        self._known: dict[str, set[str]] = {}
        for name in library.names():
            folder, _, word = name.rpartition("/")
            self._known.setdefault(folder, set()).add(word)

    @property
    def languages(self) -> list[str]:
        """Languages that have all digits."""
        digits = set("0123456789")
        return sorted(language for language, known in self._known.items() if digits <= known)

    def number(self, language: str, number: int | Decimal) -> list[Sound]:
        """Return the sounds of a number, such as `12,34,567`. Raises as `number_words`."""
        return self._speak(language, lambda known: number_words(known, number))

    def digits(self, language: str, text: str, group: int = 0) -> list[Sound]:
        """Return the sounds of single digits, as of a one-time password. Raises as `digit_words`."""
        words = digit_words(text, group)
        return self._speak(language, lambda known: words)

    def amount(self, language: str, paise: int) -> list[Sound]:
        """Return the sounds of an amount in rupees and paise. Raises as `amount_words`."""
        return self._speak(language, lambda known: amount_words(known, paise))

    def prompt(self, language: str, name: str) -> Clip:
        """
        Return a prompt such as `welcome`.

        Raises:
            UnknownPrompt: Neither the language nor its fallbacks have a prompt of that name.
        """
        for folder in fallbacks(language):
            if name in self._known.get(folder, ()):
                return self._clip(folder, name)
        raise UnknownPrompt(f"there is no prompt named {name} for {language}")

    def _speak(self, language: str, compose: _Composer) -> list[Sound]:
        for folder in fallbacks(language):
            known = self._known.get(folder)
            if known is None:
                continue
            words = compose(known)
            if known.issuperset(word for word in words if word not in _GAPS):
                return list(self._sounds(folder, words))
        raise UnknownPrompt(f"there are no prompts that speak this in {language}")

    def _sounds(self, folder: str, words: Iterable[str]) -> Iterable[Sound]:
        for word in words:
            gap_ms = _GAPS.get(word)
            yield self._clip(folder, word) if gap_ms is None else Pause(gap_ms)

    def _clip(self, folder: str, word: str) -> Clip:
        return Clip(self._library.get(f"{folder}/{word}"))


def _fraction(number: Decimal) -> str:
    """Return the decimals of a number, without trailing zeros."""
    if int(number.as_tuple().exponent) < -_MAX_FRACTION_DIGITS:
        raise UnknownPrompt(f"a number is spoken with at most {_MAX_FRACTION_DIGITS} decimals")
    return f"{abs(number) % 1:f}"[2:].rstrip("0")


def _whole_words(known: Container[str], number: int) -> list[str]:
    words: list[str] = []
    for scale, size in _SCALES:
        count, number = divmod(number, size)
        if count:
            words += _scale_words(known, scale, count, number > 0)
    hundreds, number = divmod(number, 100)
    if hundreds:
        words += _hundred_words(known, hundreds, number > 0)
    if words and number and "and" in known:
        words.append("and")
    if number or not words:
        words += _small_words(known, number)
    return words


def _scale_words(known: Container[str], scale: str, count: int, rest: bool) -> list[str]:
    one = _form(known, f"{scale}-one", rest) if count == 1 else None
    if one is not None:
        return [one]
    return [*_small_words(known, count), _form(known, scale, rest) or scale]


def _hundred_words(known: Container[str], hundreds: int, rest: bool) -> list[str]:
    own = _form(known, f"{hundreds}00", rest)
    return [own] if own is not None else [str(hundreds), "hundred"]


def _small_words(known: Container[str], number: int) -> list[str]:
    """Return the words of 0 to 99: its own word, or tens and units."""
    tens, units = divmod(number, 10)
    if str(number) in known or number < 20:
        return [str(number)]
    return [str(10 * tens), str(units)]


def _form(known: Container[str], word: str, rest: bool) -> str | None:
    """Return the form of a word, joined if more follows, or None if the language lacks the word."""
    joined = f"{word}-joined"
    if rest and joined in known:
        return joined
    return word if word in known else None


def _money(known: Container[str], count: int, one: str, many: str) -> list[str]:
    # The prompt `rupee` speaks all of `one rupee`: the number often has another form there.
    return [one] if count == 1 else [*number_words(known, count), many]
