"""Conversion of sounds to the engine's format, off the event loop."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import dataclass, field
from pathlib import Path

from media.aio.clip_cache import ClipCache
from media.audio import MAX_WAV_BYTES, AudioError, Clip, Pause, Sound, SpeechUnavailable, WavError, read_wav
from media.audio.speech import Synthesizer

__all__ = ["AudioLoader", "Source", "Speech"]

_CACHE_BYTES = 64 << 20
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Speech:
    """
    A text to be spoken.

    Attributes:
        keep: True if the speech may be cached; a password must not be.
    """

    text: str = field(repr=False)
    language: str = "en-IN"
    keep: bool = True


# A path is that of a WAV file.
Source = Clip | Pause | Path | Speech


class AudioLoader:
    """Loads sounds. Files are cached in memory, up to `cache_bytes`, until they change."""

    def __init__(self, synthesizer: Synthesizer | None = None, *, cache_bytes: int = _CACHE_BYTES) -> None:
        self._synthesizer = synthesizer
        self._cache = ClipCache(cache_bytes)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def load(self, source: Source) -> Sound:
        """
        Load a source in the engine's format: mono, at 8 or 16 kHz.

        Raises:
            AudioError: It cannot be loaded or played; the message says why.
        """
        match source:
            case Pause():
                return source
            case Clip():
                return await self._converted(source)
            case Path():
                return await self._file(source)
            case Speech():
                return await self._speech(source)

    async def _converted(self, clip: Clip) -> Clip:
        if clip.channels == 1 and clip.sample_rate in (8000, 16_000):
            return clip
        async with self._places:
            return await asyncio.to_thread(clip.for_engine)

    async def _file(self, path: Path) -> Clip:
        async with self._places:
            try:
                key = await asyncio.to_thread(_identity, path)
                kept = self._cache.get(key)
                if kept is None:
                    kept = await asyncio.to_thread(_read, path)
                    self._cache.put(key, kept)
                return kept
            except OSError as error:
                raise WavError(f"{path.name} cannot be read: {error.strerror}") from None
            except AudioError as error:
                raise type(error)(f"{path.name} cannot be played: {error}") from None

    async def _speech(self, speech: Speech) -> Clip:
        if self._synthesizer is None:
            raise SpeechUnavailable("no speech synthesizer is configured")
        return await self._synthesizer.speak(speech.text, speech.language, keep=speech.keep)


def _identity(path: Path) -> tuple[str, int, int, int]:
    """Return the cache key of a file's current version."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise WavError("not a regular file")
    if status.st_size > MAX_WAV_BYTES:
        raise WavError(f"larger than {MAX_WAV_BYTES} bytes")
    return str(path), status.st_ino, status.st_mtime_ns, status.st_size


def _read(path: Path) -> Clip:
    with path.open("rb") as file:
        return read_wav(file.read(MAX_WAV_BYTES + 1)).for_engine()
