"""Recording of a call: its file name, its URL and its state."""

from collections.abc import Iterator
from typing import Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import ControlRecording, StartRecording
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events.commands import RecordingAction
from callcontrol.calls.events.media import RecordingEnded
from callcontrol.ids import LegId
from callcontrol.models import CallRecord, RecordingStatus

RECORDINGS_FOLDER: Final = "recordings"
"""Folder of recordings, in the data directory."""

RECORDING_LIMIT_S: Final = 10.0
"""Time limit for completing a recording after the call, in seconds."""


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
        yield Save("call.recording.ready", {"recording_duration_ms": event.duration_ms})

    def give_up(self) -> Iterator[Effect]:
        """Mark the recording as failed: its end did not come in time."""
        if self.pending:
            self._record.recording_status = "failed"
            yield Save()
