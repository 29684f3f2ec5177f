"""Recordings of a call: the one of its legs, and the messages that parties leave, each in its own file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import (
    ControlRecording,
    DropMessage,
    StartMessage,
    StartRecording,
    StopMessage,
)
from callcontrol.calls.effects.records import KeepMessage, Save
from callcontrol.calls.events.media import MessageEnded, RecordingEnded
from callcontrol.calls.plan import RecordingAction
from callcontrol.ids import LegId
from callcontrol.models import CallRecord, Message, RecordingStatus

RECORDINGS_FOLDER: Final = "recordings"
"""Folder of recordings, in the data directory."""

RECORDING_LIMIT_S: Final = 10.0
"""Time limit for completing a recording after the call, in seconds."""

READY: Final = "call.recording.ready"
"""Event of a recording or message that can be fetched from where it is kept."""

MAX_MESSAGES: Final = 50
"""Limit of messages per call: each is a file, and a call could go on for hours."""

PENDING: Final = frozenset({"in-progress", "paused"})
"""Statuses of a recording that is not complete yet."""


def recording_file(call_sid: str) -> str:
    """Return the file name of a recording."""
    return f"{call_sid}.wav"


def recording_url(call_sid: str) -> str:
    """Return the path at which the API serves the recording of a call."""
    return f"/recordings/{recording_file(call_sid)}"


class CallRecording:
    """The recording of one call. A failure is noted in the record, and the call goes on."""

    def __init__(self, record: CallRecord) -> None:
        self._record = record

    @property
    def pending(self) -> bool:
        """True while the recording is not complete."""
        return self._record.recording_status in PENDING

    def start(self, leg: LegId, channels: int) -> Iterator[Effect]:
        """Start recording a leg."""
        self._record.recording_status = "in-progress"
        yield StartRecording(leg, channels)

    def reject_reason(self, action: RecordingAction) -> str | None:
        """Return why a command is impossible now, None when it is possible."""
        if action != "start":
            return None if self.pending else "the call is not being recorded"
        if self.pending:
            return "the call is being recorded already"
        if self._record.recording_status is not None:
            return "the call has its one recording already; pause and resume it instead of stopping it"
        return None

    def control(self, action: RecordingAction) -> Iterator[Effect]:
        """Pause, resume or complete the recording; harmless when already in that state."""
        if not self.pending or action == "start":
            return
        yield ControlRecording(action)
        wanted: RecordingStatus = "paused" if action == "pause" else "in-progress"
        if action != "stop" and self._record.recording_status != wanted:
            self._record.recording_status = wanted
            yield Save()

    def ended(self, event: RecordingEnded) -> Iterator[Effect]:
        """Handle the end of the recording: after the end of the call or, when it failed, before."""
        record = self._record
        if not self.pending:
            return
        if event.problem is not None:
            record.recording_status = "failed"
            yield Save()
            return
        record.recording_status = "completed"
        record.recording_path = event.path
        record.recording_url = recording_url(record.call_sid)
        yield Save(READY, {"recording_duration_ms": event.duration_ms})

    def give_up(self) -> Iterator[Effect]:
        """Mark the recording as failed: its end did not come in time."""
        if self.pending:
            self._record.recording_status = "failed"
            yield Save()


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
            yield Save(READY, message_metadata(event))
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
