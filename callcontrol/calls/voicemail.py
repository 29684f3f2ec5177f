"""Messages that parties leave on a call, each in a file of its own beside the recording of the call."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import DropMessage, StartMessage, StopMessage
from callcontrol.calls.effects.records import KeepMessage, Save
from callcontrol.calls.events.media import MessageEnded
from callcontrol.calls.recording import recording_url
from callcontrol.ids import LegId
from callcontrol.models import CallRecord, Message

MAX_MESSAGES: Final = 50
"""Limit of messages per call: each is a file, and a call could go on for hours."""


@dataclass(slots=True)
class Taking:
    """A message being recorded."""

    number: int
    voice_detected: bool = False
    """True after the party has spoken."""


class CallMessages:
    """
    The messages of one call, one at a time.

    A message without speech is dropped. A message cut off by the end of the call is kept like any other: most
    messages end that way.
    """

    def __init__(self, record: CallRecord) -> None:
        self._record = record
        self._count = 0
        self._taking: Taking | None = None

    @property
    def pending(self) -> bool:
        """True while a message is being recorded."""
        return self._taking is not None

    @property
    def room(self) -> bool:
        """True when another message may be recorded."""
        return self._taking is None and self._count < MAX_MESSAGES

    def take(self, leg: LegId, max_length_s: float) -> Iterator[Effect]:
        """Begin a message."""
        self._count += 1
        self._taking = Taking(self._count)
        yield StartMessage(leg, self._count, max_length_s)

    def voice_detected(self) -> None:
        """Mark the current message as spoken."""
        if self._taking is not None:
            self._taking.voice_detected = True

    def stop(self) -> Iterator[Effect]:
        """Complete the current message; ``MessageEnded`` follows."""
        if self._taking is not None:
            yield StopMessage(self._taking.number)

    def ended(self, event: MessageEnded) -> Iterator[Effect]:
        """Handle the end of a message: keep it, or drop it without speech or after a failure."""
        taking = self._taking
        if taking is None or taking.number != event.number:
            return
        self._taking = None
        if event.problem is None and taking.voice_detected:
            record = self._record
            yield KeepMessage(
                Message(
                    message_sid=event.message_sid,
                    account_sid=record.account_sid,
                    call_sid=record.call_sid,
                    path=event.path,
                    duration_ms=event.duration_ms,
                )
            )
            yield Save("call.recording.ready", message_metadata(event))
        else:
            yield DropMessage(event.path)

    def give_up(self) -> None:
        """Stop waiting for the end of the current message."""
        self._taking = None


def message_metadata(event: MessageEnded) -> dict[str, str | int]:
    """Return the facts of a message for the customer."""
    return {
        "message_sid": event.message_sid,
        "recording_url": recording_url(event.message_sid),
        "recording_duration_ms": event.duration_ms,
    }
