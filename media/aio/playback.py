"""Playback of a stream or conference: the engine's queue and the waits for its ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, get_args

from media import _engine
from media.audio import Clip, Pause, Sound
from media.errors import InvalidMedia, MediaError, StreamClosed
from media.types import BargeIn, MediaEvent, PlaybackEnd, PlaybackFinished, PlaybackPosition

MAX_TRACKS: Final = 4
"""Tracks of a stream."""

_MAX_WAITING = 256
_MAX_CLIPS = 1024
_MAX_PLAYS = 0xFFFFFFFF
_MAX_PAUSE_MS = 60_000
_MAX_GAIN_DB = 18.0
_MIN_GAIN_DB = -60.0
_UNITY_GAIN = 4096
_MIN_POSITION_MS = 20
_RATES = (8000, 16_000)
# By the numbers of `EventKind` in event_queue.hpp.
_FINISHED = 60
_POSITION = 61
# By the numbers of `PlaybackEnd` in playback_queue.hpp.
_ENDS: tuple[PlaybackEnd, ...] = get_args(PlaybackEnd)
_BARGE_INS: frozenset[BargeIn] = frozenset(get_args(BargeIn))


class Playback:
    """A playing or waiting playback of one stream or conference."""

    def __init__(self, playback_id: int) -> None:
        self.id = playback_id
        self._told_ms = 0
        self._end: PlaybackFinished | None = None
        self._over = asyncio.Event()

    @property
    def played_ms(self) -> int:
        """Position, as last reported: exact once it is over, before that every `position_every_ms`."""
        return self._told_ms if self._end is None else self._end.played_ms

    @property
    def over(self) -> bool:
        """True after it ended or was stopped."""
        return self._end is not None

    async def finished(self) -> PlaybackFinished:
        """Wait for its end and return the cause and position. Cancelling the wait does not stop it."""
        await self._over.wait()
        assert self._end is not None, "set before the event"
        return self._end

    def note(self, event: MediaEvent) -> None:
        """Record an event of the engine."""
        if isinstance(event, PlaybackPosition):
            self._told_ms = event.played_ms
        elif isinstance(event, PlaybackFinished):
            self._end = event
            self._over.set()


class Playbacks:
    """Playback queue of a stream or a conference, which create it; all commands return at once."""

    def __init__(self, native: _engine.Stream | _engine.Conference, next_id: Callable[[], int]) -> None:
        self._native = native
        self._next_id = next_id
        self._waiting: dict[int, Playback] = {}
        self._closed = False

    def queue(
        self,
        sounds: Sequence[Sound],
        *,
        loop: bool | int = False,
        barge_in: Collection[BargeIn] = (),
        gain_db: float = 0.0,
        position_every_ms: int = 0,
    ) -> Playback:
        """
        Queue sounds as one playback.

        Args:
            sounds: Mono, at 8 or 16 kHz; the engine converts them to the stream's rate. Kept, not copied.
            loop: Number of plays of the whole; True repeats until another playback waits.
            barge_in: Start of a digit or of speech of the far end that ends it within 20 ms. It also ends
                the playbacks that wait behind it, up to the first without that barge-in.
            gain_db: From -60 to 18.
            position_every_ms: Interval of `PlaybackPosition` events; 0 for none.

        Raises:
            InvalidMedia: A value is out of range, or a clip has another form.
            MediaError: Too many playbacks are already queued.
            StreamClosed: The stream was closed.
        """
        if not _BARGE_INS.issuperset(barge_in):
            raise InvalidMedia("barge_in takes digit and speech")
        if position_every_ms and position_every_ms < _MIN_POSITION_MS:
            raise InvalidMedia(f"position_every_ms must be 0 or at least {_MIN_POSITION_MS}")
        clips, plays, gain = _clips(sounds), _plays(loop), _gain(gain_db)
        playback = self._admit()
        self._native.play(
            playback.id, clips, plays, gain, position_every_ms, "digit" in barge_in, "speech" in barge_in
        )
        return playback

    def pause(self) -> None:
        """Pause; the linked stream or silence is sent meanwhile. Harmless when already paused."""
        self._native.pause_playback()

    def resume(self) -> None:
        """Resume after `pause`; harmless when not paused."""
        self._native.resume_playback()

    def stop(self) -> None:
        """Drop the current playback, with a fade of 5 ms, and all waiting ones; ends a pause too."""
        self._native.stop_playback()

    def abandon(self) -> None:
        """Mark all playbacks as stopped: the stream was closed and sends no more events."""
        self._closed = True
        for playback in list(self._waiting.values()):
            self._finish(PlaybackFinished(playback.id, True, "stopped", None, playback.played_ms))

    def decode(self, kind: int, a: int, b: int, c: int) -> PlaybackFinished | PlaybackPosition | None:
        """Decode an event record of a playback; None for any other."""
        if kind == _FINISHED:
            why = _ENDS[a & 0xFF]
            end = PlaybackFinished(b, why != "ended", why, chr(a >> 8) if a >> 8 else None, c)
            self._finish(end)
            return end
        if kind != _POSITION:
            return None
        position = PlaybackPosition(b, c)
        playback = self._waiting.get(b)
        if playback is not None:
            playback.note(position)
        return position

    def _admit(self) -> Playback:
        if self._closed:
            raise StreamClosed("the stream was closed")
        if len(self._waiting) >= _MAX_WAITING:
            raise MediaError(f"{_MAX_WAITING} playbacks are already queued")
        playback = Playback(self._next_id())
        self._waiting[playback.id] = playback
        return playback

    def _finish(self, event: PlaybackFinished) -> None:
        playback = self._waiting.pop(event.playback_id, None)
        if playback is not None:
            playback.note(event)


class StreamPlaybacks(Playbacks):
    """Playback queue of a stream, and its tracks: queues whose sounds are added to all that is sent."""

    def __init__(self, native: _engine.Stream, next_id: Callable[[], int]) -> None:
        super().__init__(native, next_id)
        self._stream = native

    def queue_track(
        self, track: int, sounds: Sequence[Sound], *, loop: bool | int = False, gain_db: float = 0.0
    ) -> Playback:
        """
        Queue sounds as one playback on a track, 0 to 3; arguments and errors are those of `queue`.

        It is heard over the tap's audio, playbacks, the linked stream and silence, but not over digits.
        """
        if not 0 <= track < MAX_TRACKS:
            raise InvalidMedia(f"a stream has {MAX_TRACKS} tracks")
        clips, plays, gain = _clips(sounds), _plays(loop), _gain(gain_db)
        playback = self._admit()
        self._stream.play_track(track, playback.id, clips, plays, gain)
        return playback

    def stop_track(self, track: int) -> None:
        """Drop the playbacks of a track, with a fade of 5 ms; harmless when there are none."""
        if not self._closed:
            self._stream.stop_track(track)


def _clips(sounds: Sequence[Sound]) -> list[tuple[bytes, int, int]]:
    """Return samples, rate and pause of each clip, in the engine's form."""
    if not 0 < len(sounds) <= _MAX_CLIPS:
        raise InvalidMedia(f"a playback has 1 to {_MAX_CLIPS} sounds")
    return [_pause(sound) if isinstance(sound, Pause) else _clip(sound) for sound in sounds]


def _pause(pause: Pause) -> tuple[bytes, int, int]:
    if not 0 <= pause.duration_ms <= _MAX_PAUSE_MS:
        raise InvalidMedia(f"a pause lasts at most {_MAX_PAUSE_MS} ms")
    return b"", 8000, pause.duration_ms


def _clip(clip: Clip) -> tuple[bytes, int, int]:
    if len(clip.pcm) % 2:
        raise InvalidMedia("16-bit samples come in pairs of bytes")
    if clip.channels != 1 or clip.sample_rate not in _RATES:
        raise InvalidMedia("the engine plays mono at 8000 or 16000 Hz")
    return bytes(clip.pcm), clip.sample_rate, 0


def _plays(loop: bool | int) -> int:
    if loop is True:
        return 0
    plays = 1 if loop is False else loop
    if not 1 <= plays <= _MAX_PLAYS:
        raise InvalidMedia("a playback is played at least once")
    return plays


def _gain(gain_db: float) -> int:
    if not _MIN_GAIN_DB <= gain_db <= _MAX_GAIN_DB:
        raise InvalidMedia(f"the gain is {_MIN_GAIN_DB:.0f} to {_MAX_GAIN_DB:.0f} dB")
    return round(_UNITY_GAIN * math.pow(10.0, gain_db / 20.0))
