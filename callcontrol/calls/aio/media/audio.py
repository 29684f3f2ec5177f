"""Audio of a call's legs: linked legs, prompts, ringback, music, agents, and the recording."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

from callcontrol.calls.aio.media.leg import LegMedia, MediaSettings
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import PlaybackEnded, PlayoutDrained, RecordingEnded
from callcontrol.ids import LegId
from media.aio import AgentTap, Recording, RtpStream
from media.audio import Clip, Sound, ringing_tone
from media.errors import MediaError, RecordingFailed
from media.streams import StreamChoice, dialect_class

DRAIN_MARK: Final = "\0drained"
"""Name of the mark after an agent's last audio; agents cannot send it: control characters are refused."""


_MOST_QUEUED: Final = 4
"""Pieces of a sentence in the engine's queue; what comes meanwhile is one piece after them."""


class SpeechFeed:
    """
    A playback to a leg whose audio comes in pieces, each played behind those before it.

    ``PlaybackEnded`` of its turn follows when all was played and `end` was called.
    """

    def __init__(self, audio: "LegAudio", leg: LegId, turn: int) -> None:
        self.leg = leg
        self._audio = audio
        self._turn = turn
        self._waiting: list[Clip] = []
        self._queued = 0
        self._ended = False
        self._problem: str | None = None

    def add(self, piece: Clip) -> None:
        """Play a piece, of the same rate as the others."""
        if piece.pcm:
            self._waiting.append(piece)
            self._go_on()

    def end(self, problem: str | None = None) -> None:
        """Say that there are no more pieces, and the problem if there were none."""
        self._ended, self._problem = True, problem
        self._go_on()

    def played(self) -> None:
        """Go on after a piece."""
        self._queued -= 1
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting and self._queued < _MOST_QUEUED:
            waiting, self._waiting = self._waiting, []
            sound = Clip(b"".join(piece.pcm for piece in waiting), waiting[0].sample_rate)
            if self._audio.queue_piece(self, sound):
                self._queued += 1
        if self._ended and not self._queued and not self._waiting:
            self._audio.end_feed(self.leg, self._problem, self._turn)


class LegListener:
    """
    A listener to what a party says, as 16-bit samples.

    Attributes:
        sample_rate: Rate of the samples.
    """

    def __init__(self, media: LegMedia) -> None:
        self.sample_rate: Literal[8000, 16000] = 16000 if media.wide else 8000
        self._media = media
        self._tap: AgentTap | None = None

    def begin(self, on_frames: Callable[[bytes], None]) -> None:
        """Pass on what is heard from now on."""
        self._tap = self._media.tap = self._media.stream.open_tap(
            sample_rate=self.sample_rate, encoding="l16", on_frames=on_frames
        )

    def end(self) -> None:
        """Listen no more."""
        if self._tap is not None:
            self._tap.close()
            if self._media.tap is self._tap:
                self._media.tap = None


class LegAudio:
    """
    Audio of a call's legs. ``post`` receives the resulting events.

    A leg hears looped music while its peer holds.
    """

    def __init__(
        self, legs: Mapping[LegId, LegMedia], post: Callable[[Event], None], settings: MediaSettings
    ) -> None:
        self._legs = legs
        self._post = post
        self._settings = settings
        self._plays: dict[int, tuple[LegId, int]] = {}
        self._feeds: dict[int, SpeechFeed] = {}
        self._recording: Recording | None = None

    # --- linked legs ----------------------------------------------------------------------------------------

    def link(self, leg: LegId, other: LegId) -> None:
        """Link the audio of two legs."""
        one, two = self._legs.get(leg), self._legs.get(other)
        if one is None or two is None:
            return
        for media in (one, two):
            if media.by_taps and media.tap is not None:
                media.tap.close()
                media.tap = None
            media.by_taps = False
        one.stream.link(two.stream)
        self._pair(one, two)

    def link_across(self, leg: LegId, others: "LegAudio", other: LegId) -> None:
        """
        Link the audio of a leg with one of another call.

        Streams of different engine threads are linked through this process, with slightly more delay than by
        relay.
        """
        one, two = self._legs.get(leg), others._legs.get(other)
        if one is None or two is None:
            return
        try:
            one.stream.link(two.stream)
        except MediaError:
            for media in (one, two):
                media.stream.unlink()
                media.by_taps = True
            rate_hz = _shared_rate_hz(one, two)
            one.tap = one.stream.open_tap(
                sample_rate=rate_hz, encoding="l16", on_frames=lambda frames: _pass(frames, two)
            )
            two.tap = two.stream.open_tap(
                sample_rate=rate_hz, encoding="l16", on_frames=lambda frames: _pass(frames, one)
            )
        self._pair(one, two)

    def _pair(self, one: LegMedia, two: LegMedia) -> None:
        for media in (one, two):
            if media.other is not None:
                media.other.other = None
        one.other, two.other = two, one
        for media in (one, two):
            self.hold_changed(media)

    def part(self, media: LegMedia) -> None:
        """Unlink a closed leg; its peer no longer hears hold music."""
        other, media.other = media.other, None
        if other is not None:
            other.other = None
            if other.music is not None:
                self._stop_music(other)

    def hold_changed(self, media: LegMedia) -> None:
        """Play music to the peer of a leg while the leg's party holds, and stop it afterwards."""
        listener = media.other
        if listener is None:
            return
        if not media.holds:
            if listener.music is not None:
                self._stop_music(listener)
        elif listener.music is None and self._settings.hold_music.pcm:
            listener.music = listener.stream.playbacks.queue([self._settings.hold_music], loop=True).id

    def _stop_music(self, media: LegMedia) -> None:
        if media.music is not None:
            media.music = None
            media.stream.stop_playback()

    def mute(self, leg: LegId, *, says: bool, hears: bool) -> None:
        """Mute or unmute what the leg's party says, and what it hears."""
        media = self._legs.get(leg)
        if media is not None:
            media.stream.mute(received=says, sent=hears)

    # --- playing --------------------------------------------------------------------------------------------

    def play(self, leg: LegId, clip: Clip, loops: int, turn: int = 0) -> None:
        """Play a clip ``loops`` times; ``PlaybackEnded`` of that turn follows."""
        self._queue(leg, [clip] if clip.pcm else [], max(loops, 1), turn)

    def play_sounds(self, leg: LegId, sounds: Sequence[Sound], turn: int) -> None:
        """Play sounds in a row, once; ``PlaybackEnded`` of that turn follows."""
        self._queue(leg, sounds, 1, turn)

    def feed(self, leg: LegId, turn: int) -> SpeechFeed:
        """Play what comes in pieces; ``PlaybackEnded`` of that turn follows."""
        return SpeechFeed(self, leg, turn)

    def queue_piece(self, feed: SpeechFeed, piece: Clip) -> bool:
        """Queue a piece of a feed; False if it cannot be played."""
        media = self._legs.get(feed.leg)
        if media is None:
            return False
        self._stop_music(media)
        try:
            self._feeds[media.stream.playbacks.queue([piece]).id] = feed
        except MediaError:
            return False
        return True

    def end_feed(self, leg: LegId, problem: str | None, turn: int) -> None:
        """Report the end of a feed."""
        self._post(PlaybackEnded(leg, problem, turn))

    def _queue(self, leg: LegId, sounds: Sequence[Sound], loops: int, turn: int = 0) -> None:
        media = self._legs.get(leg)
        if media is None or not sounds:
            self._post(PlaybackEnded(leg, turn=turn))
            return
        self._stop_music(media)
        try:
            playback = media.stream.playbacks.queue(sounds, loop=loops)
            self._plays[playback.id] = (leg, turn)
        except MediaError as error:
            self._post(PlaybackEnded(leg, str(error), turn))

    def played(self, leg: LegId, playback_id: int) -> None:
        """Report the end of a requested playback."""
        feed = self._feeds.pop(playback_id, None)
        if feed is not None:
            feed.played()
        awaited = self._plays.pop(playback_id, None)
        if awaited is not None:
            self._post(PlaybackEnded(leg, turn=awaited[1]))

    def ringback(self, leg: LegId) -> None:
        """Play the ringing tone until ``stop``."""
        media = self._legs.get(leg)
        if media is not None:
            self._stop_music(media)
            media.stream.play(_ringback(self._settings.tone_plan), loop=True)

    def fill_silence(self, leg: LegId, sound: Literal["music", "noise"] | None) -> None:
        """Play music, or noise, to a leg while its agent is silent; None stops it."""
        media = self._legs.get(leg)
        if media is None:
            return
        media.stream.comfort_noise(sound == "noise")
        if sound == "music" and media.music is None and self._settings.hold_music.pcm:
            media.music = media.stream.playbacks.queue([self._settings.hold_music], loop=True).id
        elif sound is None:
            self._stop_music(media)

    def stop(self, leg: LegId) -> None:
        """Stop all playback to the leg; ``PlaybackEnded`` does not follow."""
        self._plays = {playback: of for playback, of in self._plays.items() if of[0] != leg}
        self._feeds = {playback: feed for playback, feed in self._feeds.items() if feed.leg != leg}
        media = self._legs.get(leg)
        if media is not None:
            media.music = None
            media.stream.stop_playback()

    def play_track(
        self, leg: LegId, track: int, sounds: Sequence[Sound], *, loop: bool, gain_db: float
    ) -> None:
        """
        Play sounds on a track of the leg, instead of those that play there; without sounds these end.

        Raises:
            MediaError: Too many sounds are playing.
        """
        media = self._legs.get(leg)
        if media is None:
            return
        media.stream.playbacks.stop_track(track)
        if sounds:
            media.stream.playbacks.queue_track(track, sounds, loop=loop, gain_db=gain_db)

    def stop_track(self, leg: LegId, track: int) -> None:
        """Stop what plays on a track of the leg."""
        media = self._legs.get(leg)
        if media is not None:
            media.stream.playbacks.stop_track(track)

    # --- recording and agents -------------------------------------------------------------------------------

    def record(self, leg: LegId, path: str, channels: int) -> None:
        """Record the leg into a file; ``RecordingEnded`` follows when its media is closed, or it fails."""
        media = self._legs.get(leg)
        if media is None:
            self._post(RecordingEnded(leg, path, 0, "the leg has no media"))
            return
        try:
            self._recording = media.stream.start_recording(path, channels=1 if channels == 1 else 2)
        except RecordingFailed as error:
            self._post(RecordingEnded(leg, path, 0, str(error)))

    def control_recording(self, action: Literal["pause", "resume", "stop"]) -> None:
        """Pause, resume or complete the recording; after ``stop`` follows ``RecordingEnded``."""
        recording = self._recording
        if recording is None:
            return
        if action == "stop":
            recording.stop()
        elif action == "pause":
            recording.pause()
        else:
            recording.resume()

    @property
    def carrier(self) -> RtpStream | None:
        """A stream on the engine thread of the call's legs; None before it has any."""
        return next((media.stream for media in self._legs.values()), None)

    def open_tap(
        self,
        leg: LegId,
        choice: StreamChoice,
        said: Callable[[bytes], None],
        heard: Callable[[bytes], None] | None,
    ) -> AgentTap | None:
        """Connect the leg's audio to an agent; None when the leg has ended."""
        media = self._legs.get(leg)
        if media is None:
            return None
        media.tap = media.stream.open_tap(
            sample_rate=16000 if choice.sample_rate == 16000 else 8000,
            encoding=choice.encoding,
            on_frames=said,
            on_sent=heard,
        )
        levels_ms = dialect_class(choice.protocol).levels_ms
        if levels_ms is not None:
            media.tap.watch_level(*levels_ms)
        elif "buffer" in choice.events:
            media.tap.watch_level()
        return media.tap

    def listen(self, leg: LegId) -> "LegListener | None":
        """Return a listener to the leg's party; None when the leg has ended, or an agent listens."""
        media = self._legs.get(leg)
        return LegListener(media) if media is not None and media.tap is None else None

    def drain(self, leg: LegId) -> None:
        """Report when all audio that was written to the leg's tap is played."""
        media = self._legs.get(leg)
        if media is None or media.tap is None:
            self._post(PlayoutDrained(leg))
        else:
            media.tap.mark(DRAIN_MARK)

    def close_taps(self) -> None:
        """Disconnect agents from all legs."""
        for media in self._legs.values():
            if media.tap is not None:
                media.tap.close()
                media.tap = None


def _shared_rate_hz(one: LegMedia, two: LegMedia) -> Literal[8000, 16000]:
    """Sampling rate that both legs can use."""
    return 16000 if one.wide and two.wide else 8000


def _pass(frames: bytes, to: LegMedia) -> None:
    """Forward audio through this process; a party that hears music hears nothing else."""
    if to.tap is not None and to.music is None:
        to.tap.write(frames)


@lru_cache(maxsize=1)
def _ringback(tone_plan: str) -> bytes:
    tone = ringing_tone(tone_plan)
    return tone.cycle_pcm() or tone.intro_pcm()
