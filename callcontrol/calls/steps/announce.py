"""An announcement repeated several times, and again when the party presses a key."""

from collections.abc import Iterator
from typing import Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlaySounds, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded
from callcontrol.calls.plan import Announce
from callcontrol.calls.steps.base import CallParts, RunningStep
from media.audio import Pause

LISTEN_S: Final = 3.0
"""Time after the last repetition in which a party may ask for another, in seconds."""

AGAIN_KEY: Final = "*"


class AnnounceStep(RunningStep):
    """
    An announcement in progress.

    ``played_count`` in ``details`` of the record counts the complete repetitions. The key interrupts the
    announcement and starts it again, without reducing the number of repetitions left.
    """

    def __init__(self, call: CallParts, announcement: Announce) -> None:
        super().__init__(call)
        self._sounds = (Pause(round(announcement.gap_s * 1000)), *announcement.sounds)
        self._times_left = announcement.times
        self._again_left = announcement.max_again
        self._turn = 0
        self._speaking = False

    def begin(self) -> Iterator[Effect]:
        """Play the first repetition."""
        yield from self._speak()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle the end of a repetition, the key, and the end of the time for the key."""
        match event:
            # ``turn`` filters the late end of a repetition that the key interrupted.
            case PlaybackEnded(problem=problem, turn=turn) if self._speaking and turn == self._turn:
                yield from self._said(problem)
            case DigitReceived(leg=leg, digit=digit) if leg == self.call.a_leg.id and digit == AGAIN_KEY:
                yield from self._again()
            case TimerFired(Timer.PAUSE):
                self.over = True

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop playing because the call ends."""
        if not self._speaking:
            yield Disarm(Timer.PAUSE)
        elif not self.call.a_leg.over:
            yield StopAudio(self.call.a_leg.id)

    def _speak(self) -> Iterator[Effect]:
        self._turn += 1
        self._speaking = True
        yield PlaySounds(self.call.a_leg.id, self._sounds, self._turn)

    def _said(self, problem: str | None) -> Iterator[Effect]:
        self._speaking = False
        if problem is not None:
            self.over = True
            return
        self._times_left -= 1
        yield self._counted()
        if self._times_left:
            yield from self._speak()
        else:
            yield Arm(Timer.PAUSE, LISTEN_S)

    def _again(self) -> Iterator[Effect]:
        if not self._again_left:
            return
        self._again_left -= 1
        self._times_left = max(self._times_left, 1)
        yield StopAudio(self.call.a_leg.id) if self._speaking else Disarm(Timer.PAUSE)
        yield from self._speak()

    def _counted(self) -> Save:
        record = self.call.record
        details = record.details or {}
        record.details = {**details, "played_count": details.get("played_count", 0) + 1}
        return Save()
