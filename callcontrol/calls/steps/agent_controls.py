"""
Controls of an agent and what it hears: a part of ``callcontrol.calls.steps.agent_stream``.

The controls are hold, mute, recording and transcript.

An agent that holds its party hears silence, and the party hears music while the agent is silent. An agent
that mutes itself hears silence, and nothing else changes. The API may silence or pause it in the same way;
otherwise the agent hears its party.
"""

from collections.abc import Collection, Iterator

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.agent import (
    ListenAgent,
    TellAgentDone,
    TellAgentError,
    TellAgentHold,
    TellAgentSpeech,
)
from callcontrol.calls.effects.media import DetectSpeech, FillSilence, StopSpeech
from callcontrol.calls.effects.records import Save, Transcribe
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentHold, AgentMute, AgentRecord, AgentTranscript
from callcontrol.calls.events.commands import ListenStatus
from callcontrol.calls.events.media import LegHeld, SpeechEnded, SpeechStarted
from callcontrol.calls.steps.base import CallParts
from callcontrol.ids import LegId
from callcontrol.models import TranscriptSegment
from media.streams import AgentHold as Hold
from media.streams import AgentMute as Mute
from media.streams import AgentRecord as Record
from media.streams import StreamEvent


class AgentControls:
    """The controls of one agent that are in force."""

    def __init__(self, call: CallParts, events: Collection[StreamEvent] = ()) -> None:
        self._call = call
        self._events = events
        """Events that the agent is notified of, as its customer requested."""
        self._held = False
        self._muted = False
        self._is_disconnected = False
        self._api_status: ListenStatus = "resume"

    @property
    def hears(self) -> ListenStatus:
        """The audio that the agent is sent."""
        if self._api_status != "resume":
            return self._api_status
        return "silence" if self._held or self._muted else "resume"

    def begin(self) -> Iterator[Effect]:
        """Start, when audio flows for the first time."""
        if "speech" in self._events:
            yield DetectSpeech(self._call.a_leg.id)

    def listen(self, status: ListenStatus) -> Iterator[Effect]:
        """Set what the agent hears, as the API commands."""
        self._api_status = status
        yield ListenAgent(self.hears)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Carry out a command of the agent, or send it the reason of a refusal; notify it of its events."""
        match event:
            case SpeechStarted() | SpeechEnded() if self._hears_of("speech", event.leg):
                yield TellAgentSpeech(isinstance(event, SpeechStarted))
            case LegHeld() if self._hears_of("hold", event.leg):
                yield TellAgentHold(event.active)
            case AgentHold():
                yield from self._hold(event)
            case AgentMute():
                yield from self._mute(event)
            case AgentRecord():
                yield from self._record(event)
            case AgentTranscript():
                yield from self._transcript(event)

    def _hears_of(self, event: StreamEvent, leg: LegId) -> bool:
        return event in self._events and leg == self._call.a_leg.id

    def _hold(self, event: AgentHold) -> Iterator[Effect]:
        if event.active != self._held:
            self._held = event.active
            yield FillSilence(self._call.a_leg.id, "music" if event.active else None)
            yield ListenAgent(self.hears)
        yield TellAgentDone(Hold(event.active))

    def _mute(self, event: AgentMute) -> Iterator[Effect]:
        if event.active != self._muted:
            self._muted = event.active
            yield ListenAgent(self.hears)
        yield TellAgentDone(Mute(event.active))

    def _record(self, event: AgentRecord) -> Iterator[Effect]:
        """Start, pause, resume or complete the recording, or send the agent the reason of a refusal."""
        recording = self._call.recording
        reason = recording.reject_reason(event.action)
        if reason is not None:
            yield TellAgentError("refused", reason, "record")
            return
        if event.action == "start":
            yield from recording.start(self._call.a_leg.id, 2)
            yield Save()
        else:
            yield from recording.control(event.action)
        yield TellAgentDone(Record(event.action))

    def _transcript(self, event: AgentTranscript) -> Iterator[Effect]:
        """Save a final transcript segment of the agent."""
        answered_at = self._call.record.answered_at
        if answered_at is None or not event.final:
            return
        now_ms = max(0, round((self._call.wall_time - answered_at).total_seconds() * 1000))
        end_ms = now_ms if event.end_ms is None else event.end_ms
        start_ms = min(end_ms, now_ms) if event.start_ms is None else event.start_ms
        yield Transcribe(TranscriptSegment(event.role, event.text, start_ms, max(start_ms, end_ms)))

    def disconnected(self) -> Iterator[Effect]:
        """Play noise to the party while its agent is disconnected, so that the line does not seem dead."""
        self._is_disconnected = True
        if not self._held:
            yield FillSilence(self._call.a_leg.id, "noise")

    def reconnected(self) -> Iterator[Effect]:
        """Stop the noise after the reconnect."""
        self._is_disconnected = False
        if not self._held:
            yield FillSilence(self._call.a_leg.id, None)

    def restore(self) -> Iterator[Effect]:
        """Restore what the agent hears after a reconnect."""
        if self.hears != "resume":
            yield ListenAgent(self.hears)

    def end(self) -> Iterator[Effect]:
        """Stop music, noise and voice detection after the agent has left."""
        if "speech" in self._events and not self._call.a_leg.over:
            yield StopSpeech(self._call.a_leg.id)
        if self._held or self._is_disconnected:
            self._held = self._is_disconnected = False
            yield FillSilence(self._call.a_leg.id, None)
