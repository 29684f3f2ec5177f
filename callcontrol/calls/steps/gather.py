"""Speaking to a party, and collecting its keys: steps of a plan."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum, auto
from typing import Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import (
    PlayAudio,
    PlaySounds,
    Recognise,
    Speak,
    StopAudio,
    StopRecognising,
)
from callcontrol.calls.effects.records import Arm, Disarm
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded, WordsHeard
from callcontrol.calls.leg import Leg
from callcontrol.calls.plan import Gather, Pause, Play, Say
from callcontrol.calls.steps.base import CallParts, RunningStep, TableStep, report_unplayed
from media.audio import Pause as Silence
from sip.machine import Rules, compile_rules

_MAX_SILENCE_MS: Final = 60_000


class Prompts:
    """
    Prompts being played to a party. A prompt that cannot be played or spoken is skipped; a file is reported.

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
                if isinstance(self._playing, Play):
                    yield from report_unplayed(self._playing, event)
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
                return Speak(self._leg.id, prompt.text, prompt.language, self._turn, prompt.voice)
            case Pause():
                return PlaySounds(self._leg.id, _silences(prompt.length_s), self._turn)


def _silences(length_s: float) -> list[Silence]:
    whole, rest = divmod(round(length_s * 1000), _MAX_SILENCE_MS)
    return [Silence(_MAX_SILENCE_MS)] * whole + ([Silence(rest)] if rest else [])


class SayStep(RunningStep):
    """Speak a text; a text that cannot be spoken is skipped."""

    keeps_keys = True

    def __init__(self, call: CallParts, say: Say) -> None:
        super().__init__(call)
        self._prompts = Prompts(call.a_leg, (say,))

    def begin(self) -> Iterator[Effect]:
        """Speak."""
        yield from self._prompts.begin()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Finish when the text was spoken."""
        yield from self._prompts.handle(event)
        self.over = self._prompts.done

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop speaking."""
        yield from self._prompts.stop()


class GatherState(IntEnum):
    """States of collecting keys, in order."""

    NEW = 0
    PROMPTING = 1
    """The party hears the prompts; the first key stops them."""
    WAITING = 2
    OVER = 3


class GatherInput(IntEnum):
    """Inputs of the step."""

    BEGIN = auto()
    PROMPTED = auto()
    """All prompts were played."""
    KEY = auto()
    """A key, or words that are not finished."""
    COMPLETE = auto()
    """This key, or what was said, completes the input."""
    TIMEOUT = auto()
    STOP = auto()
    """Command: the call ends, or continues with other steps."""


class GatherStep(TableStep[GatherState]):
    """
    The step that collects keys and words. Keys that were pressed ahead count as if pressed at its beginning.

    The first words stop the prompts as a key does; words that are finished complete the input.
    """

    keeps_party = True

    def __init__(self, call: CallParts, gather: Gather) -> None:
        super().__init__(call, GatherState.NEW)
        self._gather = gather
        self._prompts = Prompts(call.a_leg, gather.prompts)
        self._digits = ""
        self._finished_on: str | None = None
        self._words: WordsHeard | None = None

    def begin(self) -> Iterator[Effect]:
        """Start with the keys pressed ahead, and prompt for the others."""
        yield from self.trigger(GatherInput.BEGIN)
        for key in self.call.keys.drain() if self._gather.keys else ():
            if self.over:
                # Keys beyond the complete input are kept for the next step.
                self.call.keys.append(DigitReceived(self.call.a_leg.id, key, 0))
            else:
                yield from self._pressed(key)
        if self._prompts.done:
            yield from self.trigger(GatherInput.PROMPTED)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        match event:
            case DigitReceived(leg=leg, digit=digit) if leg == self.call.a_leg.id:
                if self._gather.keys:
                    yield from self._pressed(digit)
            case WordsHeard(leg=leg) if leg == self.call.a_leg.id and not self.over:
                self._words = event if event.final else None
                yield from self.trigger(GatherInput.COMPLETE if event.final else GatherInput.KEY)
            case PlaybackEnded():
                yield from self._prompts.handle(event)
                if self._prompts.done:
                    yield from self.trigger(GatherInput.PROMPTED)
            case TimerFired(Timer.PAUSE):
                yield from self.trigger(GatherInput.TIMEOUT)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop prompting and collecting."""
        yield from self.trigger(GatherInput.STOP)

    def _pressed(self, key: str) -> Iterator[Effect]:
        if key in self._gather.finish_on_key:
            self._finished_on = key
        else:
            self._digits += key
        complete = self._finished_on is not None or len(self._digits) >= self._gather.num_digits
        yield from self.trigger(GatherInput.COMPLETE if complete else GatherInput.KEY)

    def _ask(self, _: Event | None) -> Iterator[Effect]:
        if self._gather.language is not None:
            yield Recognise(self.call.a_leg.id, self._gather.language)
        yield from self._prompts.begin()

    def _listen(self, _: Event | None) -> Iterator[Effect]:
        yield from self._prompts.stop()
        gather = self._gather
        after_key_s = gather.inter_digit_s if self._digits else None
        yield Arm(Timer.PAUSE, gather.timeout_s if after_key_s is None else after_key_s)

    def _finish(self, _: Event | None) -> Iterator[Effect]:
        yield from self._fall_silent(None)
        action = self._gather.action
        if action is not None and (self._digits or self._words or self._gather.action_on_empty):
            facts = (*action.facts, ("digits", self._digits), ("finished_on_key", self._finished_on))
            self.call.set_next_steps((replace(action, facts=facts + self._heard()),))

    def _heard(self) -> tuple[tuple[str, str | None], ...]:
        """Return the facts about words, of a step that listens."""
        if self._gather.language is None:
            return ()
        words = self._words
        confidence = None if words is None else f"{words.confidence:.3f}"
        return ("speech", "" if words is None else words.text), ("speech_confidence", confidence)

    def _fall_silent(self, _: Event | None) -> Iterator[Effect]:
        if self._gather.language is not None and not self.call.a_leg.over:
            yield StopRecognising(self.call.a_leg.id)
        yield from self._prompts.stop()
        yield Disarm(Timer.PAUSE)


_S, _I = GatherState, GatherInput
RULES: Final[Rules[GatherState, GatherInput]] = {
    (_S.NEW, _I.BEGIN): (_S.PROMPTING, GatherStep._ask),
    (_S.NEW, _I.STOP): (_S.OVER, GatherStep._nothing),
    (_S.PROMPTING, _I.PROMPTED): (_S.WAITING, GatherStep._listen),
    (_S.PROMPTING, _I.KEY): (_S.WAITING, GatherStep._listen),
    (_S.PROMPTING, _I.COMPLETE): (_S.OVER, GatherStep._finish),
    (_S.PROMPTING, _I.STOP): (_S.OVER, GatherStep._fall_silent),
    (_S.WAITING, _I.KEY): (_S.WAITING, GatherStep._listen),
    (_S.WAITING, _I.COMPLETE): (_S.OVER, GatherStep._finish),
    (_S.WAITING, _I.TIMEOUT): (_S.OVER, GatherStep._finish),
    (_S.WAITING, _I.STOP): (_S.OVER, GatherStep._fall_silent),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in GatherInput if what not in (_I.BEGIN, _I.STOP)}
    | {(_S.PROMPTING, _I.BEGIN), (_S.PROMPTING, _I.TIMEOUT)}
    | {(_S.WAITING, _I.BEGIN), (_S.WAITING, _I.PROMPTED)}
    | {(_S.OVER, what) for what in GatherInput}
)

GatherStep.ROWS = compile_rules(RULES)
