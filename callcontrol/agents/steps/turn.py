"""
One turn of a conversation: the built-in agent says something and then listens, as a table of states.

A key breaks off what is being said, and so does the party's voice where the turn cares for it. What is
transcribed is what was heard: of a sentence that was broken off, as many words as there was time for.
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
"""How long a party may talk in one turn; then the agent goes on, whoever still talks."""

END_OF_SPEECH_S: Final = 0.7
"""How long a party has to be silent until it has had its say: people pause between sentences."""

WORDS_PER_S: Final = 2.5
"""How fast the agent speaks, for telling how much of a sentence was heard."""

CUT_SHORT: Final = "[interrupted]"


class TurnState(IntEnum):
    """The life of a turn, in order."""

    NEW = 0
    SPEAKING = 1
    LISTENING = 2
    HEARING = 3
    """The party talks."""
    COLLECTING = 4
    """Keys are being pressed; what is said meanwhile is none of the turn's business."""
    OVER = 5


class TurnInput(IntEnum):
    """What a turn is told."""

    BEGIN = auto()
    ANOTHER = auto()
    """A sentence was said, and there is one more."""
    SPOKEN = auto()
    """All was said, and the party may answer."""
    SAID = auto()
    """All was said, and no answer is wanted."""
    KEPT_KEY = auto()
    """A key that counts when all was said."""
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
    """What came of a turn: ``said`` of one that did not listen."""

    kind: Literal["said", "digits", "speech", "none"] = "said"
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """A sentence to say; the voice of the party does not break off one that is ``guarded``."""

    text: str
    guarded: bool = False


Action = Callable[["Turn", Event | None], Iterator[Effect]]


class Turn(TableMachine[TurnState, TurnInput]):
    """
    One turn; no I/O, no clock.

    ``early`` are keys that were pressed before it began. ``numbers`` gives the numbers of what is spoken: the
    end of something else is none of this turn. Without ``listening`` nothing breaks it off.
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
        """Whether it is for the next turn to go on."""
        return self.state is TurnState.OVER

    def begin(self, *, talking: bool = False) -> Iterator[Effect]:
        """Say what there is to say; ``talking`` says that the party talks already."""
        self._talking = talking
        for key in self._early if self._listening is not None else "":
            yield from self._take(self._input_of_key(key))
        if self.state is TurnState.NEW:
            if self._words:
                yield from self._take(TurnInput.BEGIN)
            else:
                yield from self._all_said()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Take one event of the call."""
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
        """Fall silent."""
        yield from self._take(TurnInput.STOP)

    @property
    def _deaf(self) -> bool:
        """Whether the party's voice is to be left aside: what is being said is not to be broken off."""
        if self.state is not TurnState.SPEAKING:
            return False
        return self._listening is None or not self._listening.barge_in or self._words[0].guarded

    def _input_of_key(self, key: str) -> TurnInput:
        """What a key means, which is taken note of."""
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
        """Say no more; of the sentence under way the party has heard a part."""
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
    """How long ago the call was answered."""
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
    # Nothing is said any more, and a silence is none of who has not talked.
    | _ignored(_S.LISTENING, _I.KEY, _I.COMPLETE, _I.VOICE, _I.TIMEOUT, _I.STOP)
    | _ignored(_S.HEARING, _I.KEY, _I.COMPLETE, _I.VOICE, _I.SILENCE, _I.TIMEOUT, _I.STOP)
    # Whoever presses keys may talk meanwhile.
    | _ignored(_S.COLLECTING, _I.KEY, _I.COMPLETE, _I.TIMEOUT, _I.STOP)
    | _ignored(_S.OVER)
)
