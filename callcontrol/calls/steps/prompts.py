"""Sequence of prompts for a party: files, spoken texts, and silences."""

from collections.abc import Iterator, Sequence
from typing import Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayAudio, PlaySounds, Speak, StopAudio
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import PlaybackEnded
from callcontrol.calls.leg import Leg
from callcontrol.calls.plan import Pause, Play, Say
from media.audio import Pause as Silence

_MAX_SILENCE_MS: Final = 60_000


class Prompts:
    """
    Prompts being played to a party. A prompt that cannot be played or spoken is skipped.

    ``done`` from the start when there are none.
    """

    def __init__(self, leg: Leg, prompts: Sequence[Play | Say | Pause]) -> None:
        self._leg = leg
        self._waiting = list(prompts)
        self._playing: Play | Say | Pause | None = None
        self._loops_left = 0
        self._turn = 0

    @property
    def done(self) -> bool:
        """True when all prompts were played, or stopped."""
        return self._playing is None and not self._waiting

    def begin(self) -> Iterator[Effect]:
        """Play the first prompt."""
        yield from self._next()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle the end of the current prompt."""
        # ``turn`` filters the late end of a prompt that was stopped.
        match event:
            case PlaybackEnded(leg=leg, turn=turn) if leg == self._leg.id and turn == self._turn:
                if self._playing is None:
                    return
                if event.problem is not None:
                    self._loops_left = 0
                yield from self._next()

    def stop(self) -> Iterator[Effect]:
        """Stop the current prompt and drop the others."""
        self._waiting.clear()
        if self._playing is not None:
            self._playing = None
            self._turn += 1
            if not self._leg.over:
                yield StopAudio(self._leg.id)

    def _next(self) -> Iterator[Effect]:
        if self._loops_left == 0:
            self._playing = self._waiting.pop(0) if self._waiting else None
            self._loops_left = self._playing.loops if isinstance(self._playing, Say) else 1
        if self._playing is None:
            return
        self._loops_left -= 1
        self._turn += 1
        yield self._effect(self._playing)

    def _effect(self, prompt: Play | Say | Pause) -> Effect:
        match prompt:
            case Play():
                return PlayAudio(self._leg.id, prompt.url, prompt.loops, self._turn)
            case Say():
                return Speak(self._leg.id, prompt.text, prompt.language, self._turn)
            case Pause():
                return PlaySounds(self._leg.id, _silences(prompt.length_s), self._turn)


def _silences(length_s: float) -> list[Silence]:
    whole, rest = divmod(round(length_s * 1000), _MAX_SILENCE_MS)
    return [Silence(_MAX_SILENCE_MS)] * whole + ([Silence(rest)] if rest else [])
