"""Audio files: prompts of the server, and WAV files from customers' servers."""

import asyncio
import os
from pathlib import Path
from typing import Final

import aiohttp

from callcontrol.egress.aio.connector import checked_connector
from callcontrol.egress.aio.http_client import problem_of
from callcontrol.egress.url_policy import WEB_SCHEMES, Destinations
from callcontrol.errors import DomainError
from media.audio import AudioError, Clip, PromptLibrary, hold_music, read_wav

PROMPT_SCHEME: Final = "prompt:"
_MAX_FILE_BYTES: Final = 16 << 20
_FETCH_TIMEOUT_S: Final = 10.0


class AudioUnavailable(Exception):
    """The audio is not available; the message says why."""


def load_hold_music(setting: str) -> Clip:
    """
    Load the hold music: a WAV file, the built-in melody (``tones``), or nothing (``none``).

    Raises:
        ValueError: The file cannot be read, or is no playable WAV.
    """
    if setting in ("none", "tones"):
        return Clip(hold_music() if setting == "tones" else b"")
    try:
        if os.path.getsize(setting) > _MAX_FILE_BYTES:
            raise ValueError(f"the hold music {setting} is larger than {_MAX_FILE_BYTES >> 20} MiB")
        clip = read_wav(Path(setting).read_bytes()).for_engine()
    except (OSError, AudioError) as error:
        raise ValueError(f"the hold music {setting} cannot be played: {error}") from None
    if not clip.pcm:
        raise ValueError(f"the hold music {setting} has no audio")
    return clip


class AudioSource:
    """Loads audio by its URL and converts it to the engine's format: mono at 8 or 16 kHz."""

    def __init__(self, prompts: PromptLibrary | None, destinations: Destinations) -> None:
        self._prompts = prompts
        self._destinations = destinations
        self._session: aiohttp.ClientSession | None = None

    def prompt(self, name: str) -> Clip:
        """
        Return a prompt.

        Raises:
            AudioUnavailable: There is no such prompt.
        """
        if self._prompts is None:
            raise AudioUnavailable("this server has no prompts")
        try:
            return Clip(self._prompts.get(name))
        except AudioError as error:
            raise AudioUnavailable(str(error)) from None

    async def fetch(self, url: str) -> Clip:
        """
        Fetch a WAV file: checked destination, no redirects, bounded in time and size.

        Raises:
            AudioUnavailable: It cannot be fetched, or is no playable WAV.
        """
        try:
            self._destinations.check_url(url, schemes=WEB_SCHEMES)
            data = await asyncio.wait_for(self._download(url), _FETCH_TIMEOUT_S)
            return await asyncio.to_thread(lambda: read_wav(data).for_engine())
        except DomainError as refusal:
            raise AudioUnavailable(refusal.message) from None
        except TimeoutError:
            raise AudioUnavailable(f"not received within {_FETCH_TIMEOUT_S:.0f} s") from None
        except (aiohttp.ClientError, OSError, ValueError, AudioError) as error:
            raise AudioUnavailable(problem_of(error)) from None

    async def close(self) -> None:
        """Close the cached connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _download(self, url: str) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A limit of connections would let one customer's slow servers hold up the others' calls.
                connector=checked_connector(self._destinations, limit=0, limit_per_host=0),
                # Decompressed data may be far larger than the download, and all of it in memory at once.
                headers={"User-Agent": "trunkline", "Accept-Encoding": "identity"},
                auto_decompress=False,
                # Customers share the session, and must not share the cookies of their servers.
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        async with self._session.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise AudioUnavailable(f"answered with status {response.status}")
            chunks: list[bytes] = []
            size_bytes = 0
            async for chunk in response.content.iter_chunked(1 << 16):
                size_bytes += len(chunk)
                if size_bytes > _MAX_FILE_BYTES:
                    raise AudioUnavailable(f"is larger than {_MAX_FILE_BYTES >> 20} MiB")
                chunks.append(chunk)
        return b"".join(chunks)
