"""
One turn of a conversation: the built-in agent speaks and then listens, as a table of states.

A key interrupts the agent, and so does the party's voice if the turn has a branch for speech. The transcript
has the part that was heard: of an interrupted sentence, as many words as the elapsed time allows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Final, Literal

from callcontrol.agents.script import Listening
from callcontrol.calls.effects import Arm, Disarm, Effect, Speak, StopAudio, Transcribe
from callcontrol.calls.events import (
    DigitReceived,
    Event,
    PlaybackEnded,
    SpeechEnded,
    SpeechStarted,
    Timer,
    TimerFired,
)
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.base_table import Rules, TableMachine
from callcontrol.models import CallRecord, TranscriptSegment

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
    HEARING = 3
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
    KEPT_KEY = auto()
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
class Heard:
    """Result of a turn: ``said`` if it did not listen."""

    kind: Literal["said", "digits", "speech", "none"] = "said"
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """A sentence to say; the voice of the party does not interrupt a ``guarded`` one."""

    text: str
    guarded: bool = False


Action = Callable[["Turn", Event | None], Iterator[Effect]]


class Turn(TableMachine[TurnState, TurnInput]):
    """
    One turn; no I/O, no clock.

    ``early`` are keys pressed before it began. ``numbers`` returns the next playback number: a turn ignores
    the end of other playbacks. Without ``listening`` the turn cannot be interrupted.
    """

    def __init__(
        self,
        call: CallParts,
        words: Sequence[Words],
        language: str,
        numbers: Callable[[], int],
        *,
        listening: Listening | None = None,
        hears_speech: bool = False,
        early: str = "",
    ) -> None:
        self.state = TurnState.NEW
        self.heard = Heard()
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
        self._said_since_s = call.now_s
        self._began_ms: int | None = None
        self._talking = False
        self._talked_ms = 0

    def rules(self) -> Rules[TurnState, TurnInput]:
        """The table of the machine."""
        return RULES

    @property
    def over(self) -> bool:
        """True when the next turn may begin."""
        return self.state is TurnState.OVER

    def begin(self, *, talking: bool = False) -> Iterator[Effect]:
        """Start speaking; ``talking`` is True if the party talks already."""
        self._talking = talking
        for key in self._early if self._listening is not None else "":
            yield from self._take(self._input_of_key(key))
        if self.state is TurnState.NEW:
            if self._words:
                yield from self._take(TurnInput.BEGIN)
            else:
                yield from self._all_said()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        first = self._call.a_leg.id
        match event:
            case PlaybackEnded() if event.turn == self._number and self.state is TurnState.SPEAKING:
                yield from self._sentence_over(event)
            case DigitReceived() if event.leg == first and self._listening is not None and not self.over:
                yield from self._take(self._input_of_key(event.digit))
            case SpeechStarted() if event.leg == first:
                self._talking = True
                if self._hears_speech and not self._deaf:
                    yield from self._take(TurnInput.VOICE)
            case SpeechEnded() if event.leg == first:
                self._talking = False
                self._talked_ms += event.duration_ms if self.state is TurnState.HEARING else 0
                yield from self._take(TurnInput.SILENCE)
            case TimerFired(Timer.PAUSE):
                yield from self._take(TurnInput.TIMEOUT)

    def stop(self) -> Iterator[Effect]:
        """Stop speaking and listening."""
        yield from self._take(TurnInput.STOP)

    @property
    def _deaf(self) -> bool:
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
            return TurnInput.KEPT_KEY
        if finishes and not self._keys and self.state < TurnState.COLLECTING:
            return TurnInput.KEPT_KEY  # it finishes nothing
        complete = finishes or len(self._keys) == listening.num_digits
        return TurnInput.COMPLETE if complete else TurnInput.KEY

    # --- speaking -------------------------------------------------------------------------------------------

    def _speak(self, _: Event | None) -> Iterator[Effect]:
        self._number = self._numbers()
        self._said_since_s = self._call.now_s
        if self._began_ms is None:
            self._began_ms = moment_ms(self._call.record, self._call)
        yield Speak(self._call.a_leg.id, self._words[0].text, self._language, self._number)

    def _sentence_over(self, event: PlaybackEnded) -> Iterator[Effect]:
        said = self._words.pop(0)
        if event.problem is None:
            self._spoken.append(said.text)
        if self._words:
            yield from self._take(TurnInput.ANOTHER)
        else:
            yield from self._all_said()

    def _all_said(self) -> Iterator[Effect]:
        if self._listening is None:
            yield from self._take(TurnInput.SAID)
            return
        yield from self._take(TurnInput.SPOKEN)
        if self._keys:
            complete = len(self._keys) == self._listening.num_digits
            yield from self._take(TurnInput.COMPLETE if complete else TurnInput.KEY)
        elif self._talking and self._hears_speech:
            yield from self._take(TurnInput.VOICE)

    def _told(self) -> Iterator[Effect]:
        """Transcribe what the agent said in this turn."""
        if self._spoken:
            text = " ".join(self._spoken)
            self._spoken = []
            now_ms = moment_ms(self._call.record, self._call)
            yield Transcribe(TranscriptSegment("agent", text, self._began_ms or 0, now_ms))

    def _break_off(self) -> Iterator[Effect]:
        """Stop speaking; add the part of the current sentence that the party has heard."""
        words = self._words[0].text.split()
        heard = int((self._call.now_s - self._said_since_s) * WORDS_PER_S)
        self._spoken += [*words[:heard], CUT_SHORT] if heard or self._spoken else []
        yield from self._told()
        if not self._call.a_leg.over:
            yield StopAudio(self._call.a_leg.id)

    def _listen(self, _: Event | None) -> Iterator[Effect]:
        yield from self._told()
        yield self._wait()

    def _wait(self) -> Arm:
        assert self._listening is not None
        return Arm(Timer.PAUSE, self._listening.timeout_s)

    def _said(self, _: Event | None) -> Iterator[Effect]:
        yield from self._told()

    # --- keys -----------------------------------------------------------------------------------------------

    def _next_key(self, _: Event | None) -> Iterator[Effect]:
        yield self._wait()

    def _key_into_words(self, _: Event | None) -> Iterator[Effect]:
        yield from self._break_off()
        yield self._wait()

    def _complete(self, _: Event | None) -> Iterator[Effect]:
        self.heard = Heard("digits", self._keys)
        now_ms = moment_ms(self._call.record, self._call)
        yield Disarm(Timer.PAUSE)
        yield Transcribe(TranscriptSegment("user", self._keys, now_ms, now_ms))

    def _complete_at_once(self, _: Event | None) -> Iterator[Effect]:
        yield from self._break_off()
        yield from self._complete(None)

    # --- speech ---------------------------------------------------------------------------------------------

    def _voice(self, _: Event | None) -> Iterator[Effect]:
        self._speech_began_s = self._call.now_s
        yield Arm(Timer.PAUSE, MAX_SPEECH_S)

    def _voice_into_words(self, _: Event | None) -> Iterator[Effect]:
        yield from self._break_off()
        yield from self._voice(None)

    def _goes_on(self, _: Event | None) -> Iterator[Effect]:
        left_s = self._speech_began_s + MAX_SPEECH_S - self._call.now_s
        yield Arm(Timer.PAUSE, max(left_s, 0.0))

    def _pauses(self, _: Event | None) -> Iterator[Effect]:
        yield Arm(Timer.PAUSE, END_OF_SPEECH_S)

    def _had_its_say(self, _: Event | None) -> Iterator[Effect]:
        self.heard = Heard("speech")
        now_ms = moment_ms(self._call.record, self._call)
        elapsed_ms = round((self._call.now_s - self._speech_began_s) * 1000)
        talked_ms = self._talked_ms or elapsed_ms
        text = f"[speech {talked_ms / 1000:.1f} s]"
        yield Transcribe(TranscriptSegment("user", text, max(now_ms - elapsed_ms, 0), now_ms))

    # --- the end --------------------------------------------------------------------------------------------

    def _nothing(self, _: Event | None) -> Iterator[Effect]:
        self.heard = Heard("none")
        yield from ()

    def _silenced(self, _: Event | None) -> Iterator[Effect]:
        yield from self._break_off()

    def _stop_waiting(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.PAUSE)

    def _stop_hearing(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.PAUSE)
        yield from self._had_its_say(None)

    def _quiet(self, _: Event | None) -> Iterator[Effect]:
        yield from ()


def moment_ms(record: CallRecord, call: CallParts) -> int:
    """Time since the call was answered, in milliseconds; 0 before the answer."""
    if record.answered_at is None:
        return 0
    return max(0, round((call.moment - record.answered_at).total_seconds() * 1000))


_S, _I = TurnState, TurnInput
RULES: Final[dict[tuple[TurnState, TurnInput], tuple[TurnState, Action]]] = {
    (_S.NEW, _I.BEGIN): (_S.SPEAKING, Turn._speak),
    (_S.NEW, _I.SPOKEN): (_S.LISTENING, Turn._listen),
    (_S.NEW, _I.SAID): (_S.OVER, Turn._said),
    (_S.NEW, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.NEW, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.NEW, _I.STOP): (_S.OVER, Turn._quiet),
    (_S.SPEAKING, _I.ANOTHER): (_S.SPEAKING, Turn._speak),
    (_S.SPEAKING, _I.SPOKEN): (_S.LISTENING, Turn._listen),
    (_S.SPEAKING, _I.SAID): (_S.OVER, Turn._said),
    (_S.SPEAKING, _I.KEY): (_S.COLLECTING, Turn._key_into_words),
    (_S.SPEAKING, _I.COMPLETE): (_S.OVER, Turn._complete_at_once),
    (_S.SPEAKING, _I.VOICE): (_S.HEARING, Turn._voice_into_words),
    (_S.SPEAKING, _I.STOP): (_S.OVER, Turn._silenced),
    (_S.LISTENING, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.LISTENING, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.LISTENING, _I.VOICE): (_S.HEARING, Turn._voice),
    (_S.LISTENING, _I.TIMEOUT): (_S.OVER, Turn._nothing),
    (_S.LISTENING, _I.STOP): (_S.OVER, Turn._stop_waiting),
    (_S.HEARING, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.HEARING, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.HEARING, _I.VOICE): (_S.HEARING, Turn._goes_on),
    (_S.HEARING, _I.SILENCE): (_S.HEARING, Turn._pauses),
    (_S.HEARING, _I.TIMEOUT): (_S.OVER, Turn._had_its_say),
    (_S.HEARING, _I.STOP): (_S.OVER, Turn._stop_hearing),
    (_S.COLLECTING, _I.KEY): (_S.COLLECTING, Turn._next_key),
    (_S.COLLECTING, _I.COMPLETE): (_S.OVER, Turn._complete),
    (_S.COLLECTING, _I.TIMEOUT): (_S.OVER, Turn._complete),
    (_S.COLLECTING, _I.STOP): (_S.OVER, Turn._stop_waiting),
}


def _ignored(state: TurnState, *heeded: TurnInput) -> set[tuple[TurnState, TurnInput]]:
    return {(state, what) for what in TurnInput if what not in heeded}


IGNORED: Final = frozenset(
    _ignored(_S.NEW, _I.BEGIN, _I.SPOKEN, _I.SAID, _I.KEY, _I.COMPLETE, _I.STOP)
    | _ignored(_S.SPEAKING, _I.ANOTHER, _I.SPOKEN, _I.SAID, _I.KEY, _I.COMPLETE, _I.VOICE, _I.STOP)
    # The agent does not speak any more, and silence does not follow any speech.
    | _ignored(_S.LISTENING, _I.KEY, _I.COMPLETE, _I.VOICE, _I.TIMEOUT, _I.STOP)
    | _ignored(_S.HEARING, _I.KEY, _I.COMPLETE, _I.VOICE, _I.SILENCE, _I.TIMEOUT, _I.STOP)
    # The party may talk while it presses keys.
    | _ignored(_S.COLLECTING, _I.KEY, _I.COMPLETE, _I.TIMEOUT, _I.STOP)
    | _ignored(_S.OVER)
)
