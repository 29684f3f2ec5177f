"""Transcription of a call: the parties that are listened to, and the sentences that come of it."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import EndTranscription, TranscribeLeg
from callcontrol.calls.effects.records import Save, Transcribe
from callcontrol.calls.events.commands import PartyName
from callcontrol.calls.events.media import SentenceHeard, TranscriptionEnded
from callcontrol.calls.leg import Leg
from callcontrol.ids import LegId
from callcontrol.models import TranscriptSegment

if TYPE_CHECKING:
    from callcontrol.calls.steps.base import CallParts

SENTENCE_EVENT: Final = "call.transcript"
"""Event of a sentence that a party has finished."""

MAX_SENTENCES: Final = 10_000
"""Sentences of a call that are reported; later ones are dropped."""

MAX_CHARACTERS: Final = 500_000
"""Characters of all these sentences, twice what can be said in four hours."""

_BURST: Final = 40
_PER_S: Final = 4.0
"""Rate of sentences beyond a burst, more than two parties can say."""


class _Run(NamedTuple):
    """One leg at a recogniser: the speaker stays, also if the leg becomes another party by a transfer."""

    language: str
    speaker: PartyName
    hook_url: str | None


class CallTranscription:
    """
    The transcription of one call: each answered leg is listened to, and has a speaker of its own.

    A run of a leg has a number. Sentences of a run that is being ended still count, also after the end of the
    call, until the recogniser has sent its last words.
    """

    def __init__(self, call: "CallParts") -> None:
        self._call = call
        self._language: str | None = None
        self._hook_url: str | None = None
        self._runs: dict[LegId, int] = {}
        self._open: dict[int, _Run] = {}
        """The runs that may send words, by number."""
        self._run_count = 0
        self._sentences = 0
        self._characters = 0
        self._allowance = float(_BURST)
        self._counted_s = 0.0

    @property
    def active(self) -> bool:
        """True from ``start`` to ``stop``."""
        return self._language is not None

    @property
    def pending(self) -> bool:
        """True while words may come."""
        return bool(self._open)

    def start(self, language: str, hook_url: str | None = None) -> None:
        """
        Listen to all parties from now on; ``follow`` finds them.

        Replaces an earlier start, but for its hook where none is given.
        """
        self._language = language
        self._hook_url = hook_url or self._hook_url

    def stop(self) -> None:
        """Listen to nobody from now on."""
        self._language = self._hook_url = None

    def follow(self, legs: Mapping[LegId, Leg]) -> Iterator[Effect]:
        """Listen to the legs that are answered, and no more to those that are not."""
        language = self._language
        for leg, number in list(self._runs.items()):
            run = self._open.get(number)
            changed = run is not None and run.language != language
            if language is None or changed or leg not in legs or not legs[leg].up:
                del self._runs[leg]
                yield EndTranscription(number)
        if language is None:
            return
        for leg_id, answered in legs.items():
            if answered.up and leg_id not in self._runs:
                self._run_count += 1
                self._runs[leg_id] = self._run_count
                speaker: PartyName = "a" if leg_id == self._call.a_leg.id else "b"
                self._open[self._run_count] = _Run(language, speaker, self._hook_url)
                yield TranscribeLeg(leg_id, self._run_count, language)

    def heard(self, event: SentenceHeard) -> Iterator[Effect]:
        """Report a sentence, with its times from the answer of the call."""
        run, call = self._open.get(event.number), self._call
        if run is None or not self._admits(len(event.text), call.now_s):
            return
        answered_at = call.record.answered_at or call.wall_time
        end_ms = max(0, round((call.wall_time - answered_at).total_seconds() * 1000))
        start_ms = max(0, end_ms - event.duration_ms)
        yield Transcribe(TranscriptSegment(run.speaker, event.text, start_ms, end_ms))
        sentence = {
            "number": self._sentences,
            "speaker": run.speaker,
            "text": event.text,
            "confidence": event.confidence,
            "language": run.language,
            "start_ms": start_ms,
            "end_ms": end_ms,
        }
        yield Save(SENTENCE_EVENT, {"transcript": sentence}, hook_url=run.hook_url)

    def ended(self, event: TranscriptionEnded) -> Iterator[Effect]:
        """Note that a run sends no more words; one that could not begin is not repeated."""
        self._open.pop(event.number, None)
        yield from ()

    def give_up(self) -> None:
        """Stop waiting for last words."""
        self._open.clear()

    def _admits(self, characters: int, now_s: float) -> bool:
        """Count a sentence; return False for one beyond the limits of number, length and rate."""
        if self._sentences >= MAX_SENTENCES or self._characters + characters > MAX_CHARACTERS:
            return False
        passed_s = max(0.0, now_s - self._counted_s)
        self._allowance = min(float(_BURST), self._allowance + passed_s * _PER_S)
        self._counted_s = now_s
        if self._allowance < 1:
            return False
        self._allowance -= 1
        self._sentences += 1
        self._characters += characters
        return True
