"""Playback of all kinds of sources on a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from media.aio.audio_loader import AudioLoader, Source
from media.aio.playback import Playback
from media.aio.stream import RtpStream
from media.audio import Clip, Tone
from media.errors import InvalidMedia
from media.types import BargeIn

__all__ = ["Player"]

_TONE_RATE = 8000
_MAX_SOURCES = 1024


class Player:
    """
    Plays files, clips, speech and tones on a stream, in the order of the calls.

    Sources are loaded off the event loop; those still loading at a `stop` are never played.
    """

    def __init__(self, stream: RtpStream, loader: AudioLoader) -> None:
        self._stream = stream
        self._loader = loader
        self._turn = asyncio.Lock()
        self._stops = 0

    async def play(
        self,
        source: Source | Sequence[Source],
        *,
        loop: bool | int = False,
        barge_in: Collection[BargeIn] = (),
        gain_db: float = 0.0,
        position_every_ms: int = 0,
    ) -> Playback:
        """
        Queue a source, or several as one playback; see `Playbacks.queue` for the options.

        Returns once it is queued; `Playback.finished` waits for its end.

        Raises:
            AudioError: A source cannot be loaded or played; then none is played.
            InvalidMedia: An option is out of range.
            MediaError: Too many playbacks wait already.
            StreamClosed: The stream was closed.
        """
        sources = list(source) if isinstance(source, Sequence) else [source]
        if not 0 < len(sources) <= _MAX_SOURCES:
            raise InvalidMedia(f"a playback has 1 to {_MAX_SOURCES} sources")
        stops = self._stops
        async with self._turn:
            sounds = [await self._loader.load(one) for one in sources]
            if self._stops != stops:
                return self._stream.playbacks.unheard()
            return self._stream.playbacks.queue(
                sounds,
                loop=loop,
                barge_in=barge_in,
                gain_db=gain_db,
                position_every_ms=position_every_ms,
            )

    def tone(self, tone: Tone, *, barge_in: Collection[BargeIn] = (), gain_db: float = 0.0) -> Playback:
        """
        Queue a call progress tone; a cyclic tone repeats until another playback waits.

        Raises: As `play`.
        """
        intro, cycle = tone.intro_pcm(_TONE_RATE), tone.cycle_pcm(_TONE_RATE)
        last: Playback | None = None
        for pcm, loop in ((intro, False), (cycle, True)):
            if pcm:
                last = self._stream.playbacks.queue(
                    [Clip(pcm)], loop=loop, barge_in=barge_in, gain_db=gain_db
                )
        if last is None:
            raise InvalidMedia("the tone has no sound")
        return last

    def pause(self) -> None:
        """Pause the playback, until `resume`."""
        self._stream.playbacks.pause()

    def resume(self) -> None:
        """Resume after `pause`."""
        self._stream.playbacks.resume()

    def stop(self) -> None:
        """Drop the current playback, with a fade of 5 ms, and all waiting and loading ones."""
        self._stops += 1
        self._stream.playbacks.stop()
