"""
Text to speech by a server with OpenAI's speech endpoint, heard while it is still being made.

Source: OpenAI API reference, Audio, Create speech.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from media.aio.speech import ClipCache, SpeechStore
from media.audio import Clip, SpeechError, WavError
from media.audio.circuit_breaker import CircuitBreaker, ServerBreaker, ServerWords
from media.audio.speech import Synthesizer, speech_text
from media.audio.wav import WavHead, read_wav_head
from media.streams.conversion import RATES_HZ, AudioConverter

_LOGGER = logging.getLogger(__name__)

_RATE = 16_000
# Pieces end with a packet, so that none of a sentence holds silence.
_PIECE_BYTES = _RATE // 50 * 2
# Samples without a header have this rate.
_PCM_RATE = 24_000
_LONG_BYTES = 32 * 1024
_MAX_HEAD_BYTES = 64 * 1024
# Four minutes; more than the longest text takes.
_MAX_SPEECH_BYTES = 240 * _RATE * 2
# An answer that begins with so much text is none that can be heard.
_TEXT_BYTES = 64
_COMPRESSED = (b"ID3", b"OggS", b"fLaC")
_AUDIO_TYPES = ("audio/", "application/octet-stream")
_COMPRESSED_TYPES = ("mpeg", "mp3", "mp4", "ogg", "opus", "aac", "flac", "webm")

OUTCOMES = ("spoken", "cached", "interrupted", "unreachable", "refused", "slow", "invalid", "busy", "skipped")
"""Outcomes of texts; those from `unreachable` on are spoken by the other synthesizer."""

_WORDS = ServerWords("the speech server", "espeak-ng speaks", "one text")


@dataclass(frozen=True, slots=True)
class SpeechServer:
    """
    A server that speaks texts.

    Attributes:
        url: Base address, such as `https://api.openai.com/v1`; the endpoint is `/audio/speech` below it.
        model: Model that speaks.
        voice: Voice of texts that name none.
        key: Bearer token, if it wants one.
        start_timeout_s: Limit for the first audio, from the beginning of the connection.
        stall_timeout_s: Limit between two parts of the audio.
        limit_s: Limit for the whole.
        at_once: Texts that are being spoken at a time.
        failures: Failures in a row after which it is not asked for a while.
        cooldown_s: That while; see `CircuitBreaker`.
    """

    url: str
    model: str
    voice: str
    key: str | None = field(default=None, repr=False)
    start_timeout_s: float = 3.0
    stall_timeout_s: float = 3.0
    limit_s: float = 120.0
    at_once: int = 256
    failures: int = 3
    cooldown_s: float = 5.0


class ServerSynthesizer(Synthesizer):
    """
    A `Synthesizer` whose texts a server speaks, and another one those that the server does not.

    Each sentence by a voice is kept in memory and, with a `directory`, on disk. Calls that want the same one
    at the same time share a request. Must be made on the loop that uses it. A server that fails again and
    again is left alone for a while: the other synthesizer then speaks without delay.

    Attributes:
        outcomes: Number of texts, by outcome.
        breaker: Decides if the server is asked.
    """

    def __init__(
        self,
        server: SpeechServer,
        fallback: Synthesizer,
        directory: Path | None = None,
        *,
        memory_bytes: int = 16 << 20,
        disk_bytes: int = 256 << 20,
    ) -> None:
        self.outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        breaker = CircuitBreaker(server.failures, server.cooldown_s)
        self.breaker = ServerBreaker(breaker, _WORDS, _LOGGER, asyncio.get_running_loop().time)
        self._server = server
        self._fallback = fallback
        self._memory = ClipCache(memory_bytes)
        self._store = None if directory is None else SpeechStore(directory, disk_bytes)
        self._under_way: dict[str, _Speaking] = {}
        self._session: aiohttp.ClientSession | None = None

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        """Speak a text, as `pieces` does; without `keep`, as for a password, it stays on this machine."""
        if not keep:
            return await self._fallback.speak(text, language, keep=False)
        pieces = [piece.to_mono(_RATE).pcm async for piece in self.pieces(text, language)]
        return Clip(b"".join(pieces), _RATE)

    async def pieces(self, text: str, language: str, *, voice: str | None = None) -> AsyncIterator[Clip]:
        """
        Speak a text piece by piece, each as it comes from the server.

        A text whose speech breaks off ends there; one that does not begin is spoken by the other synthesizer.

        Raises:
            SpeechError: The text cannot be spoken, or neither can speak it.
        """
        spoken = speech_text(text, language)
        voice = voice or self._server.voice
        recipe = "\0".join(("server", self._server.url, self._server.model, voice, spoken.text))
        digest = hashlib.sha256(recipe.encode()).hexdigest()
        kept = await self._kept(digest)
        if kept is not None:
            self.outcomes["cached"] += 1
            yield kept
            return
        try:
            async for piece in self._speaking(digest, spoken.text, voice).pieces():
                yield piece
        except _NotSpoken:
            async for piece in self._fallback.pieces(text, language):
                yield piece

    async def close(self) -> None:
        """Cancel all running speech, and close the connections; the other synthesizer is its owner's."""
        tasks = [speaking.task for speaking in self._under_way.values() if speaking.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _kept(self, digest: str) -> Clip | None:
        clip = self._memory.get(digest)
        # What is being spoken is not on the disk yet.
        if clip is None and self._store is not None and digest not in self._under_way:
            clip = await asyncio.to_thread(self._store.get, digest)
            if clip is not None:
                self._memory.put(digest, clip)
        return clip

    def _speaking(self, digest: str, text: str, voice: str) -> _Speaking:
        """Return the speech of a text, which begins unless it did for another call."""
        speaking = self._under_way.get(digest)
        if speaking is None:
            speaking = _Speaking()
            if len(self._under_way) >= self._server.at_once:
                self._note(_NotSpoken("busy", f"{len(self._under_way)} texts are being spoken"))
                speaking.end(begun=False)
                return speaking
            if not self.breaker.allows():
                # The log has the change; one line for each text would fill it.
                self.outcomes["skipped"] += 1
                speaking.end(begun=False)
                return speaking
            self._under_way[digest] = speaking
            speaking.task = asyncio.create_task(self._make(speaking, digest, text, voice))
        return speaking

    async def _make(self, speaking: _Speaking, digest: str, text: str, voice: str) -> None:
        made: list[bytes] = []
        # Neither an answer nor a failure while it is cancelled.
        works: bool | None = None
        try:
            async with asyncio.timeout(self._server.limit_s):
                async with aclosing(self._request(text, voice)) as parts:
                    async for pcm in parts:
                        made.append(pcm)
                        speaking.add(Clip(pcm, _RATE))
        except TimeoutError:
            works = False
            self._note(
                _NotSpoken("slow", f"not spoken within {self._server.limit_s:.0f} s"), begun=bool(made)
            )
        except _NotSpoken as problem:
            works = not problem.failed
            self._note(problem, begun=bool(made))
        else:
            works = True
            self.outcomes["spoken"] += 1
            clip = Clip(b"".join(made), _RATE)
            self._memory.put(digest, clip)
            if self._store is not None:
                await asyncio.to_thread(self._store.put, digest, clip)
        finally:
            self.breaker.report(works)
            del self._under_way[digest]
            speaking.end(begun=bool(made))

    def _note(self, problem: _NotSpoken, *, begun: bool = False) -> None:
        self.outcomes["interrupted" if begun else problem.outcome] += 1
        what = "a text broke off" if begun else "a text is spoken by espeak-ng"
        _LOGGER.warning("%s: the speech server %s", what, problem)

    async def _request(self, text: str, voice: str) -> AsyncGenerator[bytes]:
        """Request the speech of a text; yields whole packets of 16-bit samples at 16 kHz."""
        server, decoder, size_bytes = self._server, SpeechDecoder(), 0
        body = {"model": server.model, "input": text, "voice": voice, "response_format": "pcm"}
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(server.start_timeout_s) as limit:
                async with self._opened().post(f"{server.url.rstrip('/')}/audio/speech", json=body) as answer:
                    _check(answer)
                    async for chunk in answer.content.iter_any():
                        pcm = await _decoded(decoder, chunk)
                        size_bytes += len(pcm)
                        if size_bytes > _MAX_SPEECH_BYTES:
                            raise _NotSpoken("invalid", "speaks without end")
                        if pcm:
                            yield pcm
                        if size_bytes:
                            # What is heard meanwhile is not the server's time.
                            limit.reschedule(loop.time() + server.stall_timeout_s)
            rest = decoder.flush()
        except TimeoutError:
            raise _NotSpoken("slow", "does not answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _NotSpoken("unreachable", f"cannot be reached: {type(error).__name__}") from None
        except WavError as error:
            raise _NotSpoken("invalid", f"sent no audio: {error}") from None
        if not size_bytes and not rest:
            raise _NotSpoken("invalid", "sent no audio")
        if rest:
            yield rest

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"User-Agent": "trunkline", "Accept-Encoding": "identity"}
            if self._server.key is not None:
                headers["Authorization"] = f"Bearer {self._server.key}"
            self._session = aiohttp.ClientSession(
                headers=headers,
                auto_decompress=False,
                trust_env=False,
                connector=aiohttp.TCPConnector(limit=self._server.at_once),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session


class _NotSpoken(SpeechError):
    """The server did not speak a text; the message says why, behind its name."""

    def __init__(self, outcome: str, message: str, *, failed: bool | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.failed = outcome in ("unreachable", "slow") if failed is None else failed
        """True if the server is at fault, false if it works and does not like the request or the key."""


async def _decoded(decoder: SpeechDecoder, chunk: bytes) -> bytes:
    """Decode a chunk; a long one takes milliseconds, and a thread."""
    if len(chunk) < _LONG_BYTES:
        return decoder.feed(chunk)
    return await asyncio.to_thread(decoder.feed, chunk)


def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status != 200:
        failed = answer.status >= 500
        raise _NotSpoken("refused", f"answered with status {answer.status}", failed=failed)
    kind = answer.content_type.lower()
    if not kind.startswith(_AUDIO_TYPES) or any(word in kind for word in _COMPRESSED_TYPES):
        raise _NotSpoken("invalid", f"sent {kind} in place of samples")


class _Speaking:
    """A text that is being spoken; all who want it get its pieces as they come."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self._pieces: list[Clip] = []
        self._over = False
        self._changed = asyncio.Event()

    def add(self, piece: Clip) -> None:
        """Add a piece."""
        self._pieces.append(piece)
        self._tell()

    def end(self, *, begun: bool) -> None:
        """End the pieces."""
        assert begun == bool(self._pieces)
        self._over = True
        self._tell()

    async def pieces(self) -> AsyncIterator[Clip]:
        """Return all pieces, those to come included; raises `_NotSpoken` if there are none."""
        given = 0
        while True:
            while given < len(self._pieces):
                given += 1
                yield self._pieces[given - 1]
            if self._over:
                break
            await self._changed.wait()
        if not given:
            raise _NotSpoken("invalid", "there is no speech")

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class SpeechDecoder:
    """
    Converts a stream of samples, with a WAV header or at 24 kHz without, to mono at 16 kHz.

    Raises:
        WavError: By its methods: the data is neither.
    """

    def __init__(self) -> None:
        self._data = b""
        self._converter: AudioConverter | None = None
        self._made = b""

    def feed(self, data: bytes) -> bytes:
        """Return the packets that are complete with more data."""
        self._data += data
        if self._converter is None and not self._begin():
            return b""
        assert self._converter is not None
        whole = len(self._data) // 2 * 2
        self._made += self._converter.convert(self._data[:whole])
        self._data = self._data[whole:]
        size = len(self._made) // _PIECE_BYTES * _PIECE_BYTES
        made, self._made = self._made[:size], self._made[size:]
        return made

    def flush(self) -> bytes:
        """Return the rest."""
        if self._converter is None:
            raise WavError("it ends before its samples" if self._data else "it is empty")
        return self._made + self._converter.flush()

    def _begin(self) -> bool:
        """Choose the rate, once enough is known; cuts off a header."""
        head: WavHead | None = WavHead(_PCM_RATE, 1, 0)
        data = self._data
        if len(data) < _TEXT_BYTES:
            return False
        if data.startswith(_COMPRESSED):
            raise WavError("it is compressed")
        if data.startswith(b"RIFF"):
            head = read_wav_head(data)
            if head is None and len(data) > _MAX_HEAD_BYTES:
                raise WavError("its header is too long")
        elif data[:_TEXT_BYTES].isascii() and data[:_TEXT_BYTES].decode().isprintable():
            raise WavError("it is text")
        if head is None:
            return False
        if head.channels != 1 or head.sample_rate not in RATES_HZ:
            raise WavError(f"it has {head.channels} channels at {head.sample_rate} Hz")
        self._data = data[head.offset :]
        self._converter = AudioConverter(("l16", head.sample_rate), ("l16", _RATE))
        return True
