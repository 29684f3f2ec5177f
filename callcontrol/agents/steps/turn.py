"""
One turn of a conversation: the built-in agent speaks and then listens, as a table of states.

A key interrupts the agent, and so does the party's voice if the turn has a branch for speech. The transcript
has the part that was heard: of an interrupted sentence, as many words as the elapsed time allows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Final, Literal

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import Speak, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, Transcribe
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded, SpeechEnded, SpeechStarted
from callcontrol.calls.steps.base import CallParts
from callcontrol.models import CallRecord, TranscriptSegment
from callcontrol.models.scripts import Listening
from sip.machine import Machine, Rules, compile_rules

MAX_SPEECH_S: Final = 30.0
"""Longest speech of a party in one turn; then the agent continues even if the party still talks."""

END_OF_SPEECH_S: Final = 0.7
"""Silence after which a party's speech has ended: people pause between sentences."""

WORDS_PER_S: Final = 2.5
"""Speaking rate of the agent, to estimate how much of a sentence was heard."""

CUT_SHORT: Final = "[interrupted]"


class TurnState(IntEnum):
    """States of a turn, in order."""

    NEW = 0
    SPEAKING = 1
    LISTENING = 2
    RECEIVING_SPEECH = 3
    """The party talks."""
    COLLECTING = 4
    """Keys are being pressed; speech is ignored meanwhile."""
    OVER = 5


class TurnInput(IntEnum):
    """Inputs of a turn."""

    BEGIN = auto()
    ANOTHER = auto()
    """A sentence was spoken, and another follows."""
    SPOKEN = auto()
    """All sentences were spoken, and the party may answer."""
    SAID = auto()
    """All sentences were spoken, and no answer is expected."""
    STORED_KEY = auto()
    """A key that counts after all sentences were spoken."""
    KEY = auto()
    COMPLETE = auto()
    """The keys are complete."""
    VOICE = auto()
    SILENCE = auto()
    TIMEOUT = auto()
    STOP = auto()
    """Command: the conversation ends."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """Result of a turn: ``said`` if it did not listen."""

    kind: Literal["said", "digits", "speech", "none"] = "said"
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to say; the voice of the party does not interrupt a ``guarded`` one."""

    text: str
    guarded: bool = False


class Turn(Machine[TurnState]):
    """
    One turn; no I/O, no clock.

    ``early`` are keys pressed before it began. ``numbers`` returns the next playback number: a turn ignores
    the end of other playbacks. Without ``listening`` the turn cannot be interrupted.
    """

    def __init__(
        self,
        call: CallParts,
        words: Sequence[Sentence],
        language: str,
        numbers: Callable[[], int],
        *,
        listening: Listening | None = None,
        hears_speech: bool = False,
        early: str = "",
    ) -> None:
        self.state = TurnState.NEW
        self.result = TurnResult()
        self._call = call
        self._words = list(words)
        self._language = language
        self._numbers = numbers
        self._listening = listening
        self._hears_speech = hears_speech
        self._early = early
        self._keys = ""
        self._number = 0
        self._spoken: list[str] = []
        self._speech_began_s = call.now_s
        self._sentence_began_s = call.now_s
        self._began_ms: int | None = None
        self._talking = False
        self._talked_ms = 0

    @property
    def over(self) -> bool:
        """True when the next turn may begin."""
        return self.state is TurnState.OVER

    def begin(self, *, talking: bool = False) -> Iterator[Effect]:
        """Start speaking; ``talking`` is True if the party talks already."""
        self._talking = talking
        for key in self._early if self._listening is not None else "":
            yield from self.trigger(self._input_of_key(key))
        if self.state is TurnState.NEW:
            if self._words:
                yield from self.trigger(TurnInput.BEGIN)
            else:
                yield from self._all_spoken()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        first = self._call.a_leg.id
        match event:
            case PlaybackEnded() if event.turn == self._number and self.state is TurnState.SPEAKING:
                yield from self._sentence_ended(event)
            case DigitReceived() if event.leg == first and self._listening is not None and not self.over:
                yield from self.trigger(self._input_of_key(event.digit))
            case SpeechStarted() if event.leg == first:
                self._talking = True
                if self._hears_speech and not self._ignores_speech:
                    yield from self.trigger(TurnInput.VOICE)
            case SpeechEnded() if event.leg == first:
                self._talking = False
                self._talked_ms += event.duration_ms if self.state is TurnState.RECEIVING_SPEECH else 0
                yield from self.trigger(TurnInput.SILENCE)
            case TimerFired(Timer.PAUSE):
                yield from self.trigger(TurnInput.TIMEOUT)

    def stop(self) -> Iterator[Effect]:
        """Stop speaking and listening."""
        yield from self.trigger(TurnInput.STOP)

    @property
    def _ignores_speech(self) -> bool:
        """True if the party's voice is ignored, because the current sentence must not be interrupted."""
        if self.state is not TurnState.SPEAKING:
            return False
        return self._listening is None or not self._listening.barge_in or self._words[0].guarded

    def _input_of_key(self, key: str) -> TurnInput:
        """The input that a key stands for; adds the key to the collected ones."""
        listening = self._listening
        assert listening is not None
        finishes = key == listening.finish_on_key
        if not finishes and len(self._keys) < listening.num_digits:
            self._keys += key
        if self.state <= TurnState.SPEAKING and not listening.barge_in:
            return TurnInput.STORED_KEY
        if finishes and not self._keys and self.state < TurnState.COLLECTING:
            return TurnInput.STORED_KEY  # it finishes nothing
        complete = finishes or len(self._keys) == listening.num_digits
        return TurnInput.COMPLETE if complete else TurnInput.KEY

    # --- speaking -------------------------------------------------------------------------------------------

    def _speak(self, _: Event | None) -> Iterator[Effect]:
        self._number = self._numbers()
        self._sentence_began_s = self._call.now_s
        if self._began_ms is None:
            self._began_ms = elapsed_ms(self._call.record, self._call)
        yield Speak(self._call.a_leg.id, self._words[0].text, self._language, self._number)

    def _sentence_ended(self, event: PlaybackEnded) -> Iterator[Effect]:
        said = self._words.pop(0)
        if event.problem is None:
            self._spoken.append(said.text)
        if self._words:
            yield from self.trigger(TurnInput.ANOTHER)
        else:
            yield from self._all_spoken()

    def _all_spoken(self) -> Iterator[Effect]:
        if self._listening is None:
            yield from self.trigger(TurnInput.SAID)
            return
        yield from self.trigger(TurnInput.SPOKEN)
        if self._keys:
            complete = len(self._keys) == self._listening.num_digits
            yield from self.trigger(TurnInput.COMPLETE if complete else TurnInput.KEY)
        elif self._talking and self._hears_speech:
            yield from self.trigger(TurnInput.VOICE)

    def _transcribe(self) -> Iterator[Effect]:
        """Transcribe what the agent said in this turn."""
        if self._spoken:
            text = " ".join(self._spoken)
            self._spoken = []
            now_ms = elapsed_ms(self._call.record, self._call)
            yield Transcribe(TranscriptSegment("agent", text, self._began_ms or 0, now_ms))

    def _interrupt(self) -> Iterator[Effect]:
        """Stop speaking; add the part of the current sentence that the party has heard."""
        words = self._words[0].text.split()
        heard = int((self._call.now_s - self._sentence_began_s) * WORDS_PER_S)
        self._spoken += [*words[:heard], CUT_SHORT] if heard or self._spoken else []
        yield from self._transcribe()
        if not self._call.a_leg.over:
            yield StopAudio(self._call.a_leg.id)

    def _listen(self, _: Event | None) -> Iterator[Effect]:
        yield from self._transcribe()
        yield self._arm_timeout()

    def _arm_timeout(self) -> Arm:
        assert self._listening is not None
        return Arm(Timer.PAUSE, self._listening.timeout_s)

    def _spoken_only(self, _: Event | None) -> Iterator[Effect]:
        yield from self._transcribe()

    # --- keys -----------------------------------------------------------------------------------------------

    def _next_key(self, _: Event | None) -> Iterator[Effect]:
        yield self._arm_timeout()

    def _key_interrupts(self, _: Event | None) -> Iterator[Effect]:
        yield from self._interrupt()
        yield self._arm_timeout()

    def _complete(self, _: Event | None) -> Iterator[Effect]:
        self.result = TurnResult("digits", self._keys)
        now_ms = elapsed_ms(self._call.record, self._call)
        yield Disarm(Timer.PAUSE)
        yield Transcribe(TranscriptSegment("user", self._keys, now_ms, now_ms))

    def _complete_interrupting(self, _: Event | None) -> Iterator[Effect]:
        yield from self._interrupt()
        yield from self._complete(None)

    # --- speech ---------------------------------------------------------------------------------------------

    def _speech_started(self, _: Event | None) -> Iterator[Effect]:
        self._speech_began_s = self._call.now_s
        yield Arm(Timer.PAUSE, MAX_SPEECH_S)

    def _speech_interrupts(self, _: Event | None) -> Iterator[Effect]:
        yield from self._interrupt()
        yield from self._speech_started(None)

    def _speech_continues(self, _: Event | None) -> Iterator[Effect]:
        left_s = self._speech_began_s + MAX_SPEECH_S - self._call.now_s
        yield Arm(Timer.PAUSE, max(left_s, 0.0))

    def _speech_pauses(self, _: Event | None) -> Iterator[Effect]:
        yield Arm(Timer.PAUSE, END_OF_SPEECH_S)

    def _speech_ended(self, _: Event | None) -> Iterator[Effect]:
        self.result = TurnResult("speech")
        now_ms = elapsed_ms(self._call.record, self._call)
        speech_ms = round((self._call.now_s - self._speech_began_s) * 1000)
        talked_ms = self._talked_ms or speech_ms
        text = f"[speech {talked_ms / 1000:.1f} s]"
        yield Transcribe(TranscriptSegment("user", text, max(now_ms - speech_ms, 0), now_ms))

    # --- the end --------------------------------------------------------------------------------------------

    def _no_answer(self, _: Event | None) -> Iterator[Effect]:
        self.result = TurnResult("none")
        yield from ()

    def _stop_speaking(self, _: Event | None) -> Iterator[Effect]:
        yield from self._interrupt()

    def _stop_waiting(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.PAUSE)

    def _stop_with_speech(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.PAUSE)
        yield from self._speech_ended(None)

    def _no_effect(self, _: Event | None) -> Iterator[Effect]:
        yield from ()


def elapsed_ms(record: CallRecord, call: CallParts) -> int:
    """Time since the call was answered, in milliseconds; 0 before the answer."""
    if record.answered_at is None:
        return 0
    return max(0, round((call.wall_time - record.answered_at).total_seconds() * 1000))


_S, _I = TurnState, TurnInput
RULES: Final[Rules[TurnState, TurnInput]] = {
    (_S.NEW, _I.BEGIN): (_S.SPEAKING, Turn._speak),
    (_S.NEW, _I.SPOKEN): (_S.LISTENING, Turn._listen),
    (_S.NEW, _I.SAID): (_S.OVER, Turn._spoken_only),
    (_S.NEW, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.NEW, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.NEW, _I.STOP): (_S.OVER, Turn._no_effect),
    (_S.SPEAKING, _I.ANOTHER): (_S.SPEAKING, Turn._speak),
    (_S.SPEAKING, _I.SPOKEN): (_S.LISTENING, Turn._listen),
    (_S.SPEAKING, _I.SAID): (_S.OVER, Turn._spoken_only),
    (_S.SPEAKING, _I.KEY): (_S.COLLECTING, Turn._key_interrupts),
    (_S.SPEAKING, _I.COMPLETE): (_S.OVER, Turn._complete_interrupting),
    (_S.SPEAKING, _I.VOICE): (_S.RECEIVING_SPEECH, Turn._speech_interrupts),
    (_S.SPEAKING, _I.STOP): (_S.OVER, Turn._stop_speaking),
    (_S.LISTENING, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.LISTENING, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.LISTENING, _I.VOICE): (_S.RECEIVING_SPEECH, Turn._speech_started),
    (_S.LISTENING, _I.TIMEOUT): (_S.OVER, Turn._no_answer),
    (_S.LISTENING, _I.STOP): (_S.OVER, Turn._stop_waiting),
    (_S.RECEIVING_SPEECH, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.RECEIVING_SPEECH, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.RECEIVING_SPEECH, _I.VOICE): (_S.RECEIVING_SPEECH, Turn._speech_continues),
    (_S.RECEIVING_SPEECH, _I.SILENCE): (_S.RECEIVING_SPEECH, Turn._speech_pauses),
    (_S.RECEIVING_SPEECH, _I.TIMEOUT): (_S.OVER, Turn._speech_ended),
    (_S.RECEIVING_SPEECH, _I.STOP): (_S.OVER, Turn._stop_with_speech),
    (_S.COLLECTING, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.COLLECTING, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.COLLECTING, _I.TIMEOUT): (_S.OVER, Turn._complete),
    (_S.COLLECTING, _I.STOP): (_S.OVER, Turn._stop_waiting),
}


def _ignored(state: TurnState, *handled: TurnInput) -> set[tuple[TurnState, TurnInput]]:
    return {(state, what) for what in TurnInput if what not in handled}


IGNORED: Final = frozenset(
    _ignored(_S.NEW, _I.BEGIN, _I.SPOKEN, _I.SAID, _I.KEY, _I.COMPLETE, _I.STOP)
    | _ignored(_S.SPEAKING, _I.ANOTHER, _I.SPOKEN, _I.SAID, _I.KEY, _I.COMPLETE, _I.VOICE, _I.STOP)
    # The agent does not speak any more, and silence does not follow any speech.
    | _ignored(_S.LISTENING, _I.KEY, _I.COMPLETE, _I.VOICE, _I.TIMEOUT, _I.STOP)
    | _ignored(_S.RECEIVING_SPEECH, _I.KEY, _I.COMPLETE, _I.VOICE, _I.SILENCE, _I.TIMEOUT, _I.STOP)
    # The party may talk while it presses keys.
    | _ignored(_S.COLLECTING, _I.KEY, _I.COMPLETE, _I.TIMEOUT, _I.STOP)
    | _ignored(_S.OVER)
)

Turn.ROWS = compile_rules(RULES)
