"""What a party hears one after the other: files, texts that are spoken, and silences between them."""

from collections.abc import Iterator, Sequence
from typing import Final

from callcontrol.calls.effects import Effect, PlayAudio, PlaySounds, Speak, StopAudio
from callcontrol.calls.events import Event, PlaybackEnded
from callcontrol.calls.leg import Leg
from callcontrol.calls.plan import Pause, Play, Say
from media.audio import Pause as Silence

_MAX_SILENCE_MS: Final = 60_000


class Prompts:
    """
    Prompts on their way to a party. What cannot be played or spoken is passed over.

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
        """Whether nothing is heard any more."""
        return self._playing is None and not self._waiting

    def begin(self) -> Iterator[Effect]:
        """Let the first be heard."""
        yield from self._next()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Take the end of what is heard."""
        # An end that was on its way when something was stopped is not that of what is heard now.
        match event:
            case PlaybackEnded(leg=leg, turn=turn) if leg == self._leg.id and turn == self._turn:
                if self._playing is None:
                    return
                if event.problem is not None:
                    self._loops_left = 0
                yield from self._next()

    def stop(self) -> Iterator[Effect]:
        """Fall silent, now and for all that was still to come."""
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
