"""The recording of a call: its names on disk and in the API, and how far it is."""

from collections.abc import Iterator
from typing import Final

from callcontrol.calls.effects import ControlRecording, Effect, Save, StartRecording
from callcontrol.calls.events import RecordingAction, RecordingEnded
from callcontrol.ids import LegId
from callcontrol.models import CallRecord, RecordingStatus

RECORDINGS_FOLDER: Final = "recordings"
"""Where recordings are, in the data directory."""

RECORDING_LIMIT_S: Final = 10.0
"""How long the end of a recording is waited for."""


PENDING: Final = frozenset({"in-progress", "paused"})
"""Statuses of a recording that is not complete yet."""


def recording_file(call_sid: str) -> str:
    """The name of the file that a call is recorded into."""
    return f"{call_sid}.wav"


def recording_url(call_sid: str) -> str:
    """Where the API serves the recording of a call."""
    return f"/recordings/{recording_file(call_sid)}"


class CallRecording:
    """The recording of one call. One that fails is noted in the record, and the call goes on."""

    def __init__(self, record: CallRecord) -> None:
        self._record = record

    @property
    def pending(self) -> bool:
        """Whether its end is still to come."""
        return self._record.recording_status in PENDING

    def start(self, leg: LegId, channels: int) -> Iterator[Effect]:
        """Record a leg."""
        self._record.recording_status = "in-progress"
        yield StartRecording(leg, channels)

    def objection(self, action: RecordingAction) -> str | None:
        """Why an order cannot be carried out now, None when it can."""
        if action != "start":
            return None if self.pending else "the call is not being recorded"
        if self.pending:
            return "the call is being recorded already"
        if self._record.recording_status is not None:
            return "the call has its one recording already; pause and resume it instead of stopping it"
        return None

    def control(self, action: RecordingAction) -> Iterator[Effect]:
        """Pause or resume the recording, or complete it; harmless when that is so already."""
        if not self.pending or action == "start":
            return
        yield ControlRecording(action)
        wanted: RecordingStatus = "paused" if action == "pause" else "in-progress"
        if action != "stop" and self._record.recording_status != wanted:
            self._record.recording_status = wanted
            yield Save()

    def ended(self, event: RecordingEnded) -> Iterator[Effect]:
        """The recording is on disk, after the end of the call or, when it failed, before."""
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
        """It has been waited for long enough."""
        if self.pending:
            self._record.recording_status = "failed"
            yield Save()
