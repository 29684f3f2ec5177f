"""Text to speech: the synthesizer's interface, the languages, and the limits of a text."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from media.audio.clip import Clip, SpeechError

MAX_SPEECH_CHARS: Final = 2000

# espeak-ng voices of our languages. It has no Indian English; British English is nearest to it.
ESPEAK_VOICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{"en": "en-gb", "hi": "hi", "bn": "bn", "gu": "gu", "kn": "kn", "ml": "ml", "mr": "mr", "pa": "pa"},
        **{"ta": "ta", "te": "te", "or": "or", "as": "as", "ur": "ur", "ne": "ne"},
    }
)
_WORDS_PER_MINUTE = 150


@dataclass(frozen=True, slots=True, repr=False)
class SpeechText:
    """A text that can be spoken, and its voice. Its representation hides the text, which may be secret."""

    text: str
    voice: str

    def __repr__(self) -> str:
        return f"SpeechText({len(self.text)} characters, {self.voice})"


class Synthesizer(Protocol):
    """Interface of a speech synthesizer."""

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        """
        Speak a text: mono at 8 or 16 kHz.

        Without `keep` nothing is cached, as needed for a password.

        Raises:
            SpeechError: The text cannot be spoken.
            SpeechUnavailable: No synthesizer is installed, or too many texts are being spoken.
        """
        ...

    async def pieces(self, text: str, language: str, *, voice: str | None = None) -> AsyncIterator[Clip]:
        """
        Speak a text piece by piece, each as soon as it is known; here the whole is one.

        `voice` is one of the synthesizer's own, for those that have several.

        Raises:
            SpeechError: As `speak`; before the first piece.
        """
        yield await self.speak(text, language)


def speech_text(text: str, language: str, max_chars: int = MAX_SPEECH_CHARS) -> SpeechText:
    """
    Check a text and choose its voice; `hi-IN` is spoken as `hi`.

    Raises:
        SpeechError: The text is empty, too long or has control characters, or the language is unsupported.
    """
    voice = ESPEAK_VOICES.get(language.lower().partition("-")[0])
    if voice is None:
        raise SpeechError(f"unsupported language; supported are: {', '.join(sorted(ESPEAK_VOICES))}")
    if len(text) > max_chars:
        raise SpeechError(f"a text of {len(text)} characters is too long; the limit is {max_chars}")
    words = " ".join(unicodedata.normalize("NFC", text).split())
    if not any(character.isalnum() for character in words):
        raise SpeechError("the text has no letters or digits")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") for character in words):
        raise SpeechError("the text contains control or unassigned characters")
    # Double brackets would be read as names of phonemes.
    return SpeechText(words.replace("[[", "[ [").replace("]]", "] ]"), voice)


def espeak_arguments(spoken: SpeechText) -> list[str]:
    """Return arguments for espeak-ng to read the text from its input and write a WAV file to its output."""
    return ["-v", spoken.voice, "-s", str(_WORDS_PER_MINUTE), "-b", "1", "--stdin", "--stdout"]
