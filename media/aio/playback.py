"""What a stream plays: the queue of the engine, and who waits for its ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from typing import Protocol, get_args

from media.audio import Clip, Pause, Sound
from media.errors import InvalidMedia, MediaError, StreamClosed
from media.types import BargeIn, MediaEvent, PlaybackEnd, PlaybackFinished, PlaybackPosition

__all__ = ["Playback", "Playbacks"]

_MAX_WAITING = 256
_MAX_CLIPS = 1024
_MAX_PLAYS = 0xFFFFFFFF
_MAX_PAUSE_MS = 60_000
_MAX_GAIN_DB = 18.0
_MIN_GAIN_DB = -60.0
_UNITY_GAIN = 4096
_MIN_POSITION_MS = 20
_RATES = (8000, 16_000)
# By the numbers of `PlaybackEnd` in playback_queue.hpp.
_ENDS: tuple[PlaybackEnd, ...] = get_args(PlaybackEnd)
_BARGE_INS: frozenset[BargeIn] = frozenset(get_args(BargeIn))


class Playback:
    """Something that plays or waits to be played on one stream."""

    def __init__(self, playback_id: int) -> None:
        self.id = playback_id
        self._told_ms = 0
        self._end: PlaybackFinished | None = None
        self._over = asyncio.Event()

    @property
    def played_ms(self) -> int:
        """How far it has come, as last told: exact once it is over, else by its `position_every_ms`."""
        return self._told_ms if self._end is None else self._end.played_ms

    @property
    def over(self) -> bool:
        """Whether it came to its end or was cut off."""
        return self._end is not None

    async def finished(self) -> PlaybackFinished:
        """Wait for its end; why it ended and how far it got. Cancelling the wait lets it play on."""
        await self._over.wait()
        assert self._end is not None, "set before the event"
        return self._end

    def note(self, event: MediaEvent) -> None:
        """Take in what the engine tells of it."""
        if isinstance(event, PlaybackPosition):
            self._told_ms = event.played_ms
        elif isinstance(event, PlaybackFinished):
            self._end = event
            self._over.set()


class Playable(Protocol):
    """What can play: a native stream, or a conference."""

    def play(
        self,
        playback_id: int,
        clips: Sequence[tuple[bytes, int, int]],
        plays: int,
        gain: int,
        position_every_ms: int,
        ends_by_digit: bool,
        ends_by_speech: bool,
        /,
    ) -> None:
        """Queue clips."""

    def pause_playback(self) -> None:
        """Halt."""

    def resume_playback(self) -> None:
        """Go on."""

    def stop_playback(self) -> None:
        """Drop all."""


class Playbacks:
    """The playback queue of a stream or a conference; all commands return at once. Made by those."""

    def __init__(self, native: Playable, next_id: Callable[[], int]) -> None:
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
        Queue sounds as one playback behind what plays now.

        Args:
            sounds: Mono, at 8 or 16 kHz; the engine brings them to the stream's rate. Kept, not copied.
            loop: How often all of it is played; True goes on until something waits behind it.
            barge_in: What of the far end ends it within 20 ms, and with it those behind it up to the first
                that does not end by that: the beginning of a digit, the beginning of speech.
            gain_db: From -60 to 18.
            position_every_ms: Tell `PlaybackPosition` that often; 0 never does.

        Raises:
            InvalidMedia: A value is out of range, or a clip has another form.
            MediaError: Too many playbacks wait already.
            StreamClosed: The stream was closed.
        """
        if self._closed:
            raise StreamClosed("the stream was closed")
        if not _BARGE_INS.issuperset(barge_in):
            raise InvalidMedia("barge_in takes digit and speech")
        if position_every_ms and position_every_ms < _MIN_POSITION_MS:
            raise InvalidMedia(f"the position is told every {_MIN_POSITION_MS} ms at most")
        clips, plays, gain = _clips(sounds), _plays(loop), _gain(gain_db)
        if len(self._waiting) >= _MAX_WAITING:
            raise MediaError(f"{_MAX_WAITING} playbacks wait already")
        playback = Playback(self._next_id())
        self._waiting[playback.id] = playback
        self._native.play(
            playback.id, clips, plays, gain, position_every_ms, "digit" in barge_in, "speech" in barge_in
        )
        return playback

    def unheard(self) -> Playback:
        """One that was stopped before it could be queued."""
        playback = Playback(self._next_id())
        playback.note(PlaybackFinished(playback.id, True, "stopped"))
        return playback

    def pause(self) -> None:
        """Halt where it is; the linked stream is heard meanwhile, or silence. Harmless when done before."""
        self._native.pause_playback()

    def resume(self) -> None:
        """Go on where `pause` halted; harmless when not paused."""
        self._native.resume_playback()

    def stop(self) -> None:
        """Drop what plays, with a fade of 5 ms, and what waits; ends a pause too."""
        self._native.stop_playback()

    def abandon(self) -> None:
        """Count everything as stopped: the stream was closed and its events no longer come."""
        self._closed = True
        for playback in list(self._waiting.values()):
            self._finish(PlaybackFinished(playback.id, True, "stopped", None, playback.played_ms))

    def decode_finished(self, a: int, b: int, c: int) -> PlaybackFinished:
        """Turn the engine's record of an end into an event."""
        why = _ENDS[a & 0xFF]
        event = PlaybackFinished(b, why != "ended", why, chr(a >> 8) if a >> 8 else None, c)
        self._finish(event)
        return event

    def decode_position(self, a: int, b: int, c: int) -> PlaybackPosition:
        """Turn the engine's record of a position into an event."""
        event = PlaybackPosition(b, c)
        playback = self._waiting.get(b)
        if playback is not None:
            playback.note(event)
        return event

    def _finish(self, event: PlaybackFinished) -> None:
        playback = self._waiting.pop(event.playback_id, None)
        if playback is not None:
            playback.note(event)


def _clips(sounds: Sequence[Sound]) -> list[tuple[bytes, int, int]]:
    """Samples, rate and pause of each clip, as the engine takes them."""
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
