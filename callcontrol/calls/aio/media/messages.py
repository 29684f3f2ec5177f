"""Recording of the messages that parties leave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from callcontrol.calls.aio.media.leg import LegMedia
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import MessageEnded
from callcontrol.ids import LegId
from media.aio import Conference, ConferenceEvent, MediaEngine, MemberLeft, Recording
from media.errors import MediaError
from media.types import RecordingFinished, RecordingSettings


@dataclass(slots=True, eq=False)
class _Taking:
    conference: Conference
    message_sid: str
    recording: Recording | None = None


class LegMessages:
    """
    Records messages from a call's legs; ``post`` receives the end of each.

    A stream has one recording, which is that of the call. So a message is the recording of a conference in
    which its party is alone: it contains what the party says, and neither beeps nor music.
    """

    def __init__(
        self, engine: MediaEngine, legs: Mapping[LegId, LegMedia], post: Callable[[Event], None]
    ) -> None:
        self._engine = engine
        self._legs = legs
        self._post = post
        self._taking: dict[int, _Taking] = {}

    def start(self, leg: LegId, number: int, message_sid: str, path: str, max_length_s: float) -> None:
        """Start a message; ``MessageEnded`` follows at its stop, its length limit, or the leg's end."""
        media = self._legs.get(leg)
        if media is None:
            self._post(MessageEnded(number, message_sid, path, 0, "the leg has no media"))
            return
        try:
            conference = self._engine.open_conference(
                lambda event: self._heard(number, event), sample_rate=16000 if media.wide else 8000
            )
        except MediaError as error:
            self._post(MessageEnded(number, message_sid, path, 0, str(error)))
            return
        taking = self._taking[number] = _Taking(conference, message_sid)
        settings = RecordingSettings(channels=1, max_duration_s=max_length_s)
        try:
            conference.add(media.stream)
            taking.recording = conference.record(path, settings)
        except MediaError as error:
            self._close(number)
            self._post(MessageEnded(number, message_sid, path, 0, str(error)))

    def stop(self, number: int) -> None:
        """Complete a message; harmless when it is over."""
        taking = self._taking.get(number)
        if taking is not None and taking.recording is not None:
            taking.recording.stop()

    def _heard(self, number: int, event: ConferenceEvent) -> None:
        taking = self._taking.get(number)
        if taking is None:
            return
        if isinstance(event, MemberLeft):
            self.stop(number)
        elif isinstance(event, RecordingFinished):
            self._close(number)
            ended = MessageEnded(number, taking.message_sid, event.path, event.duration_ms, event.error)
            self._post(ended)

    def _close(self, number: int) -> None:
        self._taking.pop(number).conference.close()
