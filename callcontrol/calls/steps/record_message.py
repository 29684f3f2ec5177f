"""Recording a message of a party, as a step of a plan and a table of states."""

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum, auto
from typing import Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import DetectSpeech, PlaySounds, StopAudio, StopSpeech
from callcontrol.calls.effects.records import Arm, Disarm
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.media import (
    DigitReceived,
    MessageEnded,
    PlaybackEnded,
    SpeechEnded,
    SpeechStarted,
)
from callcontrol.calls.plan import RecordMessage
from callcontrol.calls.recording import message_metadata
from callcontrol.calls.steps.base import CallParts, TableStep
from media.audio import Clip, Sound, tone
from sip.machine import Rules, compile_rules

_BEEP_HZ: Final = 1000.0
_BEEP_MS: Final = 300


class MessageState(IntEnum):
    """States of a message, in order."""

    NEW = 0
    BEEPING = 1
    TAKING = 2
    CLOSING = 3
    """Its file is being completed."""
    OVER = 4


class MessageInput(IntEnum):
    """Inputs of the step."""

    BEGIN = auto()
    BEEPED = auto()
    TALKS = auto()
    SILENT = auto()
    """The party is silent, for now."""
    ENOUGH = auto()
    """A key that ends it, or a silence of the given length."""
    ENDED = auto()
    """The file is complete (also when the message was too long), or was given up."""
    REFUSED = auto()
    """The call has recorded its maximum of messages."""
    STOP = auto()
    """Command: the call ends, or continues with other steps."""


class MessageStep(TableStep[MessageState]):
    """
    The step that records a message.

    After speech, the customer's server is asked with the facts of the message. Without speech there is no
    message, and the plan goes on.
    """

    keeps_party = True

    def __init__(self, call: CallParts, wanted: RecordMessage) -> None:
        super().__init__(call, MessageState.NEW)
        self._wanted = wanted
        self._leg = call.a_leg
        self._key: str | None = None
        self._spoke = False

    def begin(self) -> Iterator[Effect]:
        """Play the beep, if wanted, and begin."""
        if not self.call.messages.room:
            yield from self.trigger(MessageInput.REFUSED)
            return
        yield from self.trigger(MessageInput.BEGIN)
        if not self._wanted.beep:
            yield from self.trigger(MessageInput.BEEPED)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        match event:
            case DigitReceived(leg=leg, digit=digit):
                if leg == self._leg.id and digit in self._wanted.finish_on_keys:
                    self._key = digit if self._key is None else self._key
                    yield from self.trigger(MessageInput.ENOUGH)
            case TimerFired(Timer.PAUSE):
                yield from self.trigger(MessageInput.ENOUGH)
            case PlaybackEnded() | SpeechStarted() | SpeechEnded() if event.leg == self._leg.id:
                yield from self.trigger(_OF_LEG[type(event)], event)
            case MessageEnded():
                yield from self.trigger(MessageInput.ENDED, event)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop recording; the message so far is kept."""
        yield from self.trigger(MessageInput.STOP)

    def _beep(self, _: Event | None) -> Iterator[Effect]:
        if self._wanted.beep:
            yield PlaySounds(self._leg.id, BEEP)

    def _record(self, _: Event | None) -> Iterator[Effect]:
        yield from self.call.messages.take(self._leg.id, self._wanted.max_length_s)
        yield DetectSpeech(self._leg.id)
        yield Arm(Timer.PAUSE, self._wanted.silence_s)

    def _talks(self, _: Event | None) -> Iterator[Effect]:
        self._spoke = True
        self.call.messages.voice_detected()
        yield Disarm(Timer.PAUSE)

    def _silent(self, _: Event | None) -> Iterator[Effect]:
        yield Arm(Timer.PAUSE, self._wanted.silence_s)

    def _close(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.PAUSE)
        yield StopSpeech(self._leg.id)
        yield from self.call.messages.stop()

    def _ended(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, MessageEnded)
        yield Disarm(Timer.PAUSE)
        yield StopSpeech(self._leg.id)
        action = self._wanted.action
        if action is not None and self._spoke and event.problem is None:
            facts = (*action.facts, *message_metadata(event).items(), ("digits", self._key))
            self.call.set_next_steps((replace(action, facts=facts),))

    def _silence(self, _: Event | None) -> Iterator[Effect]:
        if not self._leg.over:
            yield StopAudio(self._leg.id)


_OF_LEG: Final[dict[type, MessageInput]] = {
    PlaybackEnded: MessageInput.BEEPED,
    SpeechStarted: MessageInput.TALKS,
    SpeechEnded: MessageInput.SILENT,
}
BEEP: Final[tuple[Sound, ...]] = (Clip(tone(_BEEP_HZ, _BEEP_MS, -13.0)),)

_S, _I = MessageState, MessageInput
RULES: Final[Rules[MessageState, MessageInput]] = {
    (_S.NEW, _I.BEGIN): (_S.BEEPING, MessageStep._beep),
    (_S.NEW, _I.REFUSED): (_S.OVER, MessageStep._nothing),
    (_S.NEW, _I.STOP): (_S.OVER, MessageStep._nothing),
    (_S.BEEPING, _I.BEEPED): (_S.TAKING, MessageStep._record),
    (_S.BEEPING, _I.STOP): (_S.OVER, MessageStep._silence),
    (_S.TAKING, _I.TALKS): (_S.TAKING, MessageStep._talks),
    (_S.TAKING, _I.SILENT): (_S.TAKING, MessageStep._silent),
    (_S.TAKING, _I.ENOUGH): (_S.CLOSING, MessageStep._close),
    (_S.TAKING, _I.ENDED): (_S.OVER, MessageStep._ended),
    (_S.TAKING, _I.STOP): (_S.OVER, MessageStep._close),
    (_S.CLOSING, _I.ENDED): (_S.OVER, MessageStep._ended),
    (_S.CLOSING, _I.STOP): (_S.OVER, MessageStep._nothing),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in MessageInput if what not in (_I.BEGIN, _I.REFUSED, _I.STOP)}
    # A key before the beep ends nothing: many callers skip the greeting with one.
    | {(_S.BEEPING, what) for what in MessageInput if what not in (_I.BEEPED, _I.STOP)}
    | {(_S.TAKING, _I.BEGIN), (_S.TAKING, _I.BEEPED), (_S.TAKING, _I.REFUSED)}
    | {(_S.CLOSING, what) for what in MessageInput if what not in (_I.ENDED, _I.STOP)}
    | {(_S.OVER, what) for what in MessageInput}
)

MessageStep.ROWS = compile_rules(RULES)
