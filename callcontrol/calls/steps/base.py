"""
Running steps of a plan, and their interface to the call.

The small steps are here; a second party is in ``callcontrol.calls.steps.bridge``, a voice agent in
``callcontrol.calls.steps.agent_stream``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any, Final, Protocol, TypeVar

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayAudio, SendDigits, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, Save, unheard
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.media import DigitReceived, DigitsSent, PlaybackEnded
from callcontrol.calls.hangup_cause import NO_ANSWER, NORMAL_CLEARING
from callcontrol.calls.leg import Leg, OutboundLeg
from callcontrol.calls.plan import (
    Annotate,
    ChangeRecording,
    ChangeTranscription,
    Pause,
    Play,
    RecordingAction,
    Ring,
    SendDtmf,
    Step,
)
from callcontrol.calls.product import CallProgress
from callcontrol.calls.recording import CallMessages, CallRecording
from callcontrol.calls.transcription import CallTranscription
from callcontrol.models import CallRecord, CallStatus
from callcontrol.models.parties import Party, RouteAttempt
from sip.machine import Machine

StateT = TypeVar("StateT", bound=IntEnum)

_CHANNELS: Final = 2
"""Channels of a recording that a plan starts: one for each party."""

MAX_KEPT: Final = 32
"""Limit of kept keys; later ones are dropped, since no input is that long."""


class DtmfTypeAhead:
    """The keys that the first party pressed ahead, in order."""

    def __init__(self) -> None:
        self._keys = ""

    def append(self, event: DigitReceived) -> None:
        """Append a key."""
        if len(self._keys) < MAX_KEPT:
            self._keys += event.digit

    def drain(self) -> str:
        """Return all kept keys and clear them."""
        keys, self._keys = self._keys, ""
        return keys


class CallParts(Protocol):
    """The part of its call that a step may use."""

    @property
    def record(self) -> CallRecord:
        """The record of the call; a step may change its stream fields."""

    @property
    def a_leg(self) -> Leg:
        """The first leg."""

    @property
    def stream_protocol(self) -> str:
        """Stream protocol of agents whose stream settings name none."""

    @property
    def recording(self) -> CallRecording:
        """The recording of the call."""

    @property
    def transcription(self) -> CallTranscription:
        """The transcription of the call."""

    @property
    def messages(self) -> CallMessages:
        """The messages left on the call."""

    @property
    def keys(self) -> DtmfTypeAhead:
        """The keys that the first party pressed ahead."""

    @property
    def progress(self) -> CallProgress:
        """Progress of the call, as its product records it."""

    @property
    def ordered_time_s(self) -> float | None:
        """Seconds left of a time limit set during the call; None without one, or before the answer."""

    @property
    def last_ending(self) -> Ending | None:
        """The ending of the step before the current one, if that has one."""

    @property
    def now_s(self) -> float:
        """Monotonic time of the event being handled."""

    @property
    def wall_time(self) -> datetime:
        """Wall-clock time of the event being handled, as written to records."""

    def make_leg(self, attempt: RouteAttempt, party: Party) -> OutboundLeg:
        """Create a leg of the call."""

    def next_stream_sid(self) -> str:
        """The identifier of the next agent stream of the call."""

    def next_request_id(self) -> int:
        """Return the number of the next request to the customer's server, or message, counted from 1."""

    def set_next_steps(self, steps: Sequence[Step]) -> None:
        """Set the steps that follow the current one, instead of the rest of the plan."""

    def ring(self, status: int = 180, *, early_media: bool = False) -> Iterable[Effect]:
        """Send ringing or early media to a caller who is not answered yet."""

    def answer(self) -> Iterable[Effect]:
        """Answer a waiting caller."""


class RunningStep:
    """A step in progress. When it is ``over``, ``ending`` is the ending of the call if no step follows."""

    needs_answer = True
    """True when a waiting caller is answered before the step begins."""

    keeps_keys = False
    """True when keys that the first party presses meanwhile are kept for a step that collects keys."""

    keeps_party = False
    """True when the party stays in the step until the target of a transfer by the API answers."""

    def __init__(self, call: CallParts) -> None:
        self.call = call
        self.over = False
        self.ending: Ending | None = None
        self.successor: RunningStep | None = None
        """The step that replaced this one, when it is over for that reason."""

    def begin(self) -> Iterable[Effect]:
        """Start."""
        raise NotImplementedError

    def handle(self, event: Event) -> Iterable[Effect]:
        """Handle one event of the call; ignore events of other parts."""
        raise NotImplementedError

    def stop(self, ending: Ending) -> Iterable[Effect]:
        """End the step because the call ends; the call hangs up the legs."""
        return ()

    def abort(self) -> Iterable[Effect]:
        """Abort the step because the call goes on with other steps."""
        return self.stop(Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "api"))


StepMakers = Mapping[type[Step], Callable[[CallParts, Any], RunningStep]]
"""Makers of the machines of steps, each ready to begin; ``Hangup`` and ``Reject`` have none."""


class AnswerStep(RunningStep):
    """Answer the call. The call itself answers before the step begins."""

    keeps_keys = True

    def begin(self) -> Iterator[Effect]:
        """Finish at once."""
        self.over = True
        yield from ()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Ignore all events."""
        yield from ()


class AnnotateStep(RunningStep):
    """Add details to the record of the call; a waiting caller goes on waiting."""

    needs_answer = False
    keeps_keys = True

    def __init__(self, call: CallParts, step: Annotate) -> None:
        super().__init__(call)
        self._details = step.details

    def begin(self) -> Iterator[Effect]:
        """Write them, and finish at once."""
        self.over = True
        record = self.call.record
        record.details = {**(record.details or {}), **self._details}
        yield Save()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Ignore all events."""
        yield from ()


class RecordingStep(RunningStep):
    """Control the recording of the call, as the API does; an impossible order is passed over."""

    keeps_keys = True

    def __init__(self, call: CallParts, step: ChangeRecording) -> None:
        super().__init__(call)
        self._action: RecordingAction = step.action

    def begin(self) -> Iterator[Effect]:
        """Carry out the order, and finish at once."""
        self.over = True
        recording = self.call.recording
        if recording.reject_reason(self._action) is not None:
            return
        if self._action == "start":
            yield from recording.start(self.call.a_leg.id, _CHANNELS)
            yield Save()
        else:
            yield from recording.control(self._action)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Ignore all events."""
        yield from ()


class TranscriptionStep(RunningStep):
    """Begin or end the transcription of the call; one that waits ends it when the step itself ends."""

    keeps_keys = True

    def __init__(self, call: CallParts, step: ChangeTranscription) -> None:
        super().__init__(call)
        self._step = step

    def begin(self) -> Iterator[Effect]:
        """Carry out the order, and finish unless the step waits."""
        step = self._step
        self.over = not step.waits
        if step.language is None:
            self.call.transcription.stop()
        else:
            self.call.transcription.start(step.language, step.hook_url)
        yield from ()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Ignore all events."""
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """End the transcription."""
        self.call.transcription.stop()
        yield from ()


def report_unplayed(play: Play, event: PlaybackEnded) -> Iterator[Effect]:
    """Report a sound that could not be played, which is skipped, by the status webhook of the customer."""
    if event.problem is not None:
        yield unheard("play", event.problem, play.url)


class PlayStep(RunningStep):
    """Play audio; a file that cannot be fetched is skipped and reported."""

    keeps_keys = True

    def __init__(self, call: CallParts, play: Play) -> None:
        super().__init__(call)
        self._play = play

    def begin(self) -> Iterator[Effect]:
        """Ask for the audio."""
        yield PlayAudio(self.call.a_leg.id, self._play.url, self._play.loops)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Finish when the audio has ended."""
        if isinstance(event, PlaybackEnded):
            self.over = True
            yield from report_unplayed(self._play, event)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop the audio."""
        if not self.call.a_leg.over:
            yield StopAudio(self.call.a_leg.id)


class PauseStep(RunningStep):
    """Wait in silence; a caller who is not answered yet hears ringing."""

    needs_answer = False
    keeps_keys = True

    def __init__(self, call: CallParts, pause: Pause) -> None:
        super().__init__(call)
        self._length_s = pause.length_s

    def begin(self) -> Iterator[Effect]:
        """Send ringing to a waiting caller and start the timer."""
        yield from self.call.ring()
        yield Arm(Timer.PAUSE, self._length_s)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Finish when the timer fires."""
        if isinstance(event, TimerFired) and event.timer is Timer.PAUSE:
            self.over = True
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop the timer."""
        yield Disarm(Timer.PAUSE)


class RingStep(RunningStep):
    """Ring without an answer until the timeout."""

    needs_answer = False

    def __init__(self, call: CallParts, ring: Ring) -> None:
        super().__init__(call)
        self._timeout_s = ring.timeout_s

    def begin(self) -> Iterator[Effect]:
        """Send ringing and start the timer."""
        yield from self.call.ring()
        yield Arm(Timer.RING, self._timeout_s)

    def handle(self, event: Event) -> Iterator[Effect]:
        """End the call as not answered (480) when the timer fires."""
        if isinstance(event, TimerFired) and event.timer is Timer.RING:
            self.over = True
            self.ending = Ending(CallStatus.NO_ANSWER, NO_ANSWER, "system", 480)
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop the timer."""
        yield Disarm(Timer.RING)


class DigitsStep(RunningStep):
    """Send DTMF digits."""

    def __init__(self, call: CallParts, dtmf: SendDtmf) -> None:
        super().__init__(call)
        self._digits = dtmf.digits

    def begin(self) -> Iterator[Effect]:
        """Send the digits."""
        yield SendDigits(self.call.a_leg.id, self._digits)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Finish when the digits are sent."""
        if isinstance(event, DigitsSent):
            self.over = True
        yield from ()


class TableStep(RunningStep, Machine[StateT]):
    """A step of a call as a state machine; it is over in the last state."""

    def __init__(self, call: CallParts, first: StateT) -> None:
        super().__init__(call)
        self.state = first
        self._last = len(self.ROWS) - 1

    def trigger(self, event: int, about: Any = None) -> list[Any]:
        """Apply the rule of this event in this state and return its effects."""
        effects = super().trigger(event, about)
        self.over = self.state == self._last
        return effects

    def _nothing(self, _: Event | None) -> Iterator[Effect]:
        """Do nothing on the way to the next state."""
        yield from ()


class NestedStep(TableStep[StateT]):
    """A step whose actions run in the next state, since they trigger events themselves."""

    def trigger(self, event: int, about: Any = None) -> list[Any]:
        """Apply the rule of this event in this state and return its effects."""
        rule = self.ROWS[self.state][event]
        if rule is None:
            return []
        self.state, action = rule
        effects = [*action(self, about)]
        self.over = self.state == self._last
        return effects
