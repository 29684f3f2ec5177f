"""Spoken prompts stored as WAV files."""

from __future__ import annotations

import re
from pathlib import Path

from media.audio.errors import UnknownPrompt
from media.audio.tones import silence
from media.audio.wav import read_wav

__all__ = ["PromptLibrary"]

# A name is at most one folder deep, and cannot escape from the library.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}(?:/[a-z0-9][a-z0-9-]{0,63})?")
_DIGIT_GAP_MS = 150


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
        found = (path.relative_to(self._directory) for path in self._directory.rglob("*.wav"))
        return sorted(name for path in found if _NAME.fullmatch(name := path.with_suffix("").as_posix()))

    def digits(self, language: str, text: str) -> bytes:
        """
        Return the samples of digits spoken one by one, with pauses between them.

        The region of `language` is ignored: `hi-IN` is spoken as `hi`.

        Raises:
            UnknownPrompt: A character is no digit, or the language has no digits.
        """
        if not (text.isascii() and text.isdecimal()):
            raise UnknownPrompt("only the digits 0 to 9 can be spoken")
        folder = language.lower().partition("-")[0]
        return silence(_DIGIT_GAP_MS).join(self.get(f"{folder}/{digit}") for digit in text)

    def _read(self, name: str) -> bytes:
        if not _NAME.fullmatch(name):
            raise UnknownPrompt(
                "a prompt's name is made of lower-case letters, digits and hyphens, as in en/welcome"
            )
        try:
            return (self._directory / f"{name}.wav").read_bytes()
        except OSError:
            raise UnknownPrompt(f"there is no prompt named {name}") from None
