"""
The steps of a plan while they run, and what they need of their call.

The small ones are here; a second party is ``callcontrol.calls.steps.bridge``, a voice agent
``callcontrol.calls.steps.agent_stream``.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Arm, Disarm, Effect, PlayAudio, SendDigits, StopAudio
from callcontrol.calls.events import DigitsSent, Event, PlaybackEnded, Timer, TimerFired
from callcontrol.calls.hangup_cause import NO_ANSWER, NORMAL_CLEARING
from callcontrol.calls.leg import Leg, OutboundLeg
from callcontrol.calls.plan import Pause, Play, Ring, SendDtmf, Step
from callcontrol.calls.recording import CallRecording
from callcontrol.calls.steps.dtmf_type_ahead import TypedKeys
from callcontrol.calls.voicemail import CallMessages
from callcontrol.masking.progress import MaskedProgress
from callcontrol.models import CallRecord, CallStatus
from callcontrol.routing.party import Party
from callcontrol.routing.targets import Attempt


class CallParts(Protocol):
    """What a step may use of the call it runs in."""

    @property
    def record(self) -> CallRecord:
        """The record, whose stream fields a step may change."""

    @property
    def a_leg(self) -> Leg:
        """The first leg."""

    @property
    def stream_protocol(self) -> str:
        """What agents are spoken to in that nothing else is said of."""

    @property
    def recording(self) -> CallRecording:
        """The recording of the call."""

    @property
    def messages(self) -> CallMessages:
        """The messages that are left on the call."""

    @property
    def keys(self) -> TypedKeys:
        """The keys that the first party pressed ahead."""

    @property
    def progress(self) -> MaskedProgress | None:
        """How far a masked call is, None for any other."""

    @property
    def ordered_time_s(self) -> float | None:
        """What a time limit set while the call is up leaves of it; None without one, or before the answer."""

    @property
    def now_s(self) -> float:
        """The time of the event at work, monotonic."""

    @property
    def moment(self) -> datetime:
        """The time of the event at work, as records have it."""

    def make_leg(self, attempt: Attempt, party: Party) -> OutboundLeg:
        """A new leg of the call."""

    def next_stream_sid(self) -> str:
        """The identifier of the next agent stream of the call."""

    def next_consultation(self) -> int:
        """The number of the next question to the customer's server; they count from 1."""

    def follow(self, steps: Sequence[Step]) -> None:
        """Do these steps when the one under way is over, and nothing else of the plan."""

    def ring(self, status: int = 180, *, early_media: bool = False) -> Iterator[Effect]:
        """Let a caller who waits hear that it rings."""

    def answer(self) -> Iterator[Effect]:
        """Answer a caller who waits."""


class RunningStep:
    """A step under way. When it is ``over``, ``ending`` says what to end the call with if nothing follows."""

    needs_answer = True
    """Whether a waiting caller is to be answered before the step begins."""

    keeps_keys = False
    """Whether keys that the first party presses meanwhile are kept for a step that asks for keys."""

    def __init__(self, call: CallParts) -> None:
        self.call = call
        self.over = False
        self.ending: Ending | None = None
        self.successor: RunningStep | None = None
        """The step that took this one's place, when it is over for that reason."""

    def begin(self) -> Iterator[Effect]:
        """Start."""
        raise NotImplementedError

    def handle(self, event: Event) -> Iterator[Effect]:
        """Take one event of the call; others' events do nothing."""
        raise NotImplementedError

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """End the step because the call ends; legs are hung up by the call."""
        yield from ()

    def interrupt(self) -> Iterator[Effect]:
        """Break the step off because something else is to be done with the call, which goes on."""
        yield from self.stop(Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "api"))


class AnswerStep(RunningStep):
    """Nothing but the answer, which the call gives before it begins."""

    keeps_keys = True

    def begin(self) -> Iterator[Effect]:
        """Be over."""
        self.over = True
        yield from ()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Nothing can happen to it."""
        yield from ()


class PlayStep(RunningStep):
    """Audio being played; a file that cannot be had is passed over."""

    keeps_keys = True

    def __init__(self, call: CallParts, play: Play) -> None:
        super().__init__(call)
        self._play = play

    def begin(self) -> Iterator[Effect]:
        """Ask for the audio."""
        yield PlayAudio(self.call.a_leg.id, self._play.url, self._play.loops)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Wait for its end."""
        if isinstance(event, PlaybackEnded):
            self.over = True
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Cut the audio off."""
        if not self.call.a_leg.over:
            yield StopAudio(self.call.a_leg.id)


class PauseStep(RunningStep):
    """A silence; a caller who is not answered yet hears ringing."""

    needs_answer = False
    keeps_keys = True

    def __init__(self, call: CallParts, pause: Pause) -> None:
        super().__init__(call)
        self._length_s = pause.length_s

    def begin(self) -> Iterator[Effect]:
        """Start the clock."""
        yield from self.call.ring()
        yield Arm(Timer.PAUSE, self._length_s)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Wait for it."""
        if isinstance(event, TimerFired) and event.timer is Timer.PAUSE:
            self.over = True
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop the clock."""
        yield Disarm(Timer.PAUSE)


class RingStep(RunningStep):
    """Ringing that nobody answers, however long the caller waits."""

    needs_answer = False

    def __init__(self, call: CallParts, ring: Ring) -> None:
        super().__init__(call)
        self._timeout_s = ring.timeout_s

    def begin(self) -> Iterator[Effect]:
        """Let it ring."""
        yield from self.call.ring()
        yield Arm(Timer.RING, self._timeout_s)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Wait until it has rung for long enough."""
        if isinstance(event, TimerFired) and event.timer is Timer.RING:
            self.over = True
            self.ending = Ending(CallStatus.NO_ANSWER, NO_ANSWER, "system", 480)
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop the clock."""
        yield Disarm(Timer.RING)


class DigitsStep(RunningStep):
    """Digits being sent."""

    def __init__(self, call: CallParts, dtmf: SendDtmf) -> None:
        super().__init__(call)
        self._digits = dtmf.digits

    def begin(self) -> Iterator[Effect]:
        """Ask for the digits."""
        yield SendDigits(self.call.a_leg.id, self._digits)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Wait until they are out."""
        if isinstance(event, DigitsSent):
            self.over = True
        yield from ()
