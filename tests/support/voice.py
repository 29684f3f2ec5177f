"""A synthesizer whose words are told apart by their pitch."""

from __future__ import annotations

from collections.abc import Mapping

from media.audio import Clip, tone
from media.audio.speech import Synthesizer


class Voice(Synthesizer):
    """Speaks each word that it knows as a tone of its own pitch, in Hz."""

    def __init__(self, pitches: Mapping[str, float], duration_ms: int = 800) -> None:
        self._pitches = pitches
        self._duration_ms = duration_ms

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        """Return the tone of a word; raises ``KeyError`` for one that it does not know."""
        return Clip(tone(self._pitches[text], self._duration_ms))
