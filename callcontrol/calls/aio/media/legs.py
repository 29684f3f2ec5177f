"""
The media of one call: an RTP stream for each leg, and the parts that use them.

``Descriptions`` negotiates with the parties, ``LegAudio`` links and plays audio, ``LegDigits`` sends digits.
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.aio.dtmf import LegDigits
from callcontrol.calls.aio.media.audio import DRAIN_MARK, LegAudio
from callcontrol.calls.aio.media.leg import LegMedia, MediaSettings
from callcontrol.calls.aio.media.messages import LegMessages
from callcontrol.calls.aio.media.negotiation import Descriptions
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import (
    DigitReceived,
    GreetingOver,
    LegHeld,
    MachineDetected,
    MediaSilent,
    PlayoutDrained,
    RecordingEnded,
    SpeechEnded,
    SpeechStarted,
)
from callcontrol.calls.records.quality import MAX_LEGS, LegHistory, call_quality, leg_history, leg_quality
from callcontrol.ids import A_LEG, LegId
from callcontrol.models import LegQuality, Quality
from media.aio import MediaEngine, RtpStream
from media.errors import MediaError
from media.types import (
    DtmfReceived,
    DtmfSent,
    GreetingEnded,
    MachineVerdict,
    MarkReached,
    MediaTimeout,
    PlaybackFinished,
    PlayoutLevel,
    PlayoutOverflow,
    QualityInterval,
    RecordingFinished,
    SpeechStopped,
    StreamMeter,
)
from media.types import SpeechStarted as VoiceStarted


class MediaLegs:
    """
    The media of one call, by leg.

    ``post`` receives the reports of the streams. ``on_quality`` is called with each closed leg that had
    media.
    """

    def __init__(
        self,
        engine: MediaEngine,
        post: Callable[[Event], None],
        settings: MediaSettings,
        on_quality: Callable[[LegQuality], None] = lambda quality: None,
    ) -> None:
        self._engine = engine
        self._post = post
        self._settings = settings
        self._on_quality = on_quality
        self.first_leg: LegId = A_LEG
        """The leg that the quality of the call is reported for."""
        self.tell_agent: Callable[[MarkReached | PlayoutOverflow | PlayoutLevel], None] | None = None
        """Notifies the agent of its marks and its queue: the call decides nothing about them."""
        self._legs: dict[LegId, LegMedia] = {}
        self.audio = LegAudio(self._legs, post, settings)
        """Links between the legs, and what they hear."""
        self._qualities: dict[LegId, LegQuality] = {}
        self._histories: list[LegHistory] = []

    @cached_property
    def digits(self) -> LegDigits:
        """Digits sent in RTP."""
        return LegDigits(self._legs, self._post)

    @cached_property
    def messages(self) -> LegMessages:
        """Messages being recorded."""
        return LegMessages(self._engine, self._legs, self._post)

    @property
    def descriptions(self) -> Descriptions:
        """Negotiation with the parties; created on each access, to avoid a reference cycle with the legs."""
        return Descriptions(self._legs, self._open_stream, self._legs.__setitem__, self._hold_changed)

    def _open_stream(self, leg: LegId, near: RtpStream | None) -> RtpStream:
        return self._engine.open_stream(lambda event: self._on_event(leg, event), near)

    def _hold_changed(self, media: LegMedia) -> None:
        if media.other is not None:
            self.audio.hold_changed(media)
        for leg, known in self._legs.items():
            if known is media and media.told_hold != media.holds:
                media.told_hold = media.holds
                self._post(LegHeld(leg, media.holds))

    def watch(self, leg: LegId) -> None:
        """Report when the party of an answered leg sends nothing for too long."""
        media = self._legs.get(leg)
        if media is not None:
            settings = self._settings
            media.stream.set_media_timeout(settings.media_timeout_s, settings.hold_timeout_s)

    def detect_machine(self, leg: LegId, *, wanted: bool) -> None:
        """Start or stop the detection of who answered; an engine without detection reports ``unknown``."""
        media = self._legs.get(leg)
        if media is None:
            return
        if not wanted:
            media.stream.detection.stop("machine")
            return
        try:
            media.stream.detection.start(machine=True)
        except MediaError:
            self._post(MachineDetected(leg, "unknown", "unavailable", 0))

    def stream_of(self, leg: LegId) -> RtpStream | None:
        """The stream of a leg; None after it was closed."""
        media = self._legs.get(leg)
        return media.stream if media is not None else None

    @property
    def whole(self) -> RtpStream | None:
        """Stream on which all of the call passes, in one direction or the other; None before there is any."""
        first = self._legs.get(self.first_leg)
        legs = [*([] if first is None else [first]), *self._legs.values()]
        return next((media.stream for media in legs if media.remote is not None), None)

    def is_wide(self, leg: LegId) -> bool:
        """Return True for a leg with a wideband codec."""
        media = self._legs.get(leg)
        return media is not None and media.wide

    def detect_speech(self, leg: LegId, *, wanted: bool) -> None:
        """Start or stop the detection of the party's voice; a leg without media is ignored."""
        media = self._legs.get(leg)
        if media is None:
            return
        if wanted:
            media.stream.detection.start(speech=True)
        else:
            media.stream.detection.stop("speech")

    def meters(self) -> dict[LegId, StreamMeter]:
        """Return what is measured of each connected leg; levels are, from now on until `stop_meters`."""
        found: dict[LegId, StreamMeter] = {}
        for leg, media in self._legs.items():
            if media.remote is not None:
                meter = found[leg] = media.stream.meter()
                if meter.level_db is None:
                    media.stream.detection.start(level=True)
        return found

    def stop_meters(self) -> None:
        """Measure no more levels."""
        for media in self._legs.values():
            media.stream.detection.stop("level")

    def close(self, leg: LegId) -> None:
        """Free the leg's stream; a recording is completed first and reported."""
        media = self._legs.pop(leg, None)
        if media is not None:
            if media.other is not None:
                self.audio.part(media)
            media.peer_leg = None
            name = "a" if leg == self.first_leg else "b"
            if len(self._histories) < MAX_LEGS and (intervals := media.stream.intervals()):
                self._histories.append(_history(name, intervals))
            media.stream.close()
            quality = leg_quality(name, media.remote, media.stream.stats())
            self._qualities[leg] = quality
            if media.remote is not None:
                self._on_quality(quality)

    @property
    def transcoded(self) -> int:
        """Number of legs that hear another leg through another codec than their own."""
        return sum(
            media.remote is not None
            and media.other is not None
            and media.other.remote is not None
            and media.remote.codec != media.other.remote.codec
            for media in self._legs.values()
        )

    def close_all(self) -> None:
        """Free all streams at the end of the call."""
        for leg in list(self._legs):
            self.close(leg)

    def histories(self) -> Sequence[LegHistory]:
        """Quality of the legs over time, those that are closed first."""
        return [
            *self._histories,
            *(
                _history("a" if leg == self.first_leg else "b", media.stream.intervals())
                for leg, media in self._legs.items()
                if media.remote is not None
            ),
        ]

    def quality(self) -> Quality | None:
        """Quality of the closed legs; None before there is any."""
        return call_quality(self._qualities, self.first_leg)

    def _on_event(self, leg: LegId, event: object) -> None:
        match event:
            case MarkReached(name=name) if name == DRAIN_MARK:
                self._post(PlayoutDrained(leg))
            case MarkReached() | PlayoutOverflow() | PlayoutLevel():
                if self.tell_agent is not None:
                    self.tell_agent(event)
            case PlaybackFinished():
                self.audio.played(leg, event.playback_id)
            case DtmfReceived():
                self._post(DigitReceived(leg, event.digit, event.duration_ms))
            case DtmfSent():
                self.digits.sent(leg, event.digits)
            case MediaTimeout():
                self._post(MediaSilent(leg, event.silent_s))
            case RecordingFinished():
                self._post(RecordingEnded(leg, event.path, event.duration_ms, event.error))
            case _:
                self._on_detected(leg, event)

    def _on_detected(self, leg: LegId, event: object) -> None:
        match event:
            case MachineVerdict():
                self._post(MachineDetected(leg, event.verdict, event.reason, event.took_ms))
            case GreetingEnded():
                self._post(GreetingOver(leg, event.reason, event.at_ms))
            case VoiceStarted():
                self._post(SpeechStarted(leg))
            case SpeechStopped():
                self._post(SpeechEnded(leg, event.duration_ms))


def _history(name: str, intervals: Sequence[QualityInterval]) -> LegHistory:
    return leg_history(name, intervals, utc_now(), time.monotonic())
