"""Text to speech by espeak-ng, run as a separate process."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import Path

from media.aio.clip_cache import ClipCache
from media.aio.speech_store import SpeechStore
from media.audio import AudioError, Clip, SpeechError, SpeechUnavailable, read_wav
from media.audio.speech import MAX_SPEECH_CHARS, SpeechText, espeak_arguments, speech_text

__all__ = ["EspeakSynthesizer"]

_RATE = 16_000
# Four minutes at the rate of espeak-ng; more than the longest text takes.
_MAX_OUTPUT_BYTES = 12 << 20
_CHUNK_BYTES = 1 << 16
# Part of the digest, so that speech made with other parameters is not reused.
_RECIPE = "espeak-ng 150 wpm 16000 Hz 1"


class EspeakSynthesizer:
    """
    A `Synthesizer` that runs espeak-ng.

    A text goes to the program's input, never through a shell, a command line or a log. Everything is
    bounded: the length of a text, its time, the number of texts spoken at once and waiting, and the caches in
    memory and, with a `directory`, on disk.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        program: str = "espeak-ng",
        max_chars: int = MAX_SPEECH_CHARS,
        timeout_s: float = 10.0,
        at_once: int = 2,
        max_waiting: int = 32,
        memory_bytes: int = 16 << 20,
        disk_bytes: int = 256 << 20,
    ) -> None:
        self._program = program
        self._max_chars = max_chars
        self._timeout_s = timeout_s
        self._places = asyncio.Semaphore(at_once)
        self._max_under_way = at_once + max_waiting
        self._memory = ClipCache(memory_bytes)
        self._store = None if directory is None else SpeechStore(directory, disk_bytes)
        self._under_way: dict[str, asyncio.Task[Clip]] = {}

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        """
        Speak a text: mono at 16 kHz. Concurrent calls for the same text share one run.

        Without `keep` nothing is cached, as needed for a password.

        Raises:
            SpeechError: The text cannot be spoken, or took too long.
            SpeechUnavailable: espeak-ng is not installed, or too many texts wait.
        """
        spoken = speech_text(text, language, self._max_chars)
        digest = hashlib.sha256(f"{_RECIPE}\0{spoken.voice}\0{spoken.text}".encode()).hexdigest()
        kept = self._memory.get(digest)
        if kept is not None:
            return kept
        name = f"{digest} {keep}"
        task = self._under_way.get(name)
        if task is None:
            if len(self._under_way) >= self._max_under_way:
                raise SpeechUnavailable(f"{len(self._under_way)} texts are already being spoken")
            task = asyncio.create_task(self._make(spoken, digest, keep))
            self._under_way[name] = task
            task.add_done_callback(lambda done: self._finished(name, done))
        # A cancelled waiter does not cancel the speech for the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel all running speech."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, name: str, task: asyncio.Task[Clip]) -> None:
        self._under_way.pop(name, None)
        if not task.cancelled():
            # Marked as retrieved, in case nobody waits any more.
            task.exception()

    async def _make(self, spoken: SpeechText, digest: str, keep: bool) -> Clip:
        store = self._store if keep else None
        clip = None if store is None else await asyncio.to_thread(store.get, digest)
        if clip is None:
            async with self._places:
                clip = await self._spoken(spoken)
            if store is not None:
                await asyncio.to_thread(store.put, digest, clip)
        if keep:
            self._memory.put(digest, clip)
        return clip

    async def _spoken(self, spoken: SpeechText) -> Clip:
        data = await self._run(spoken)
        try:
            return await asyncio.to_thread(lambda: read_wav(data).to_mono(_RATE))
        except AudioError as error:
            raise SpeechError(f"{self._program} returned no audio: {error}") from None

    async def _run(self, spoken: SpeechText) -> bytes:
        """Run the program to its end, or kill it."""
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                *espeak_arguments(spoken),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise SpeechUnavailable(f"{self._program} cannot be run: {error.strerror}") from None
        try:
            async with asyncio.timeout(self._timeout_s):
                data = await _output(process, spoken.text)
                status = await process.wait()
        except TimeoutError:
            raise SpeechError(f"{self._program} did not speak within {self._timeout_s:.0f} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await _drain(process)
                await process.wait()
        if status != 0:
            raise SpeechError(f"{self._program} ended with status {status}")
        return data


async def _drain(process: asyncio.subprocess.Process) -> None:
    """
    Read the remaining output of a killed program, at most what its pipe holds.

    asyncio does not see the end of a pipe that it has paused, and ``wait`` waits for the end of every pipe.
    """
    assert process.stdout is not None, "it is a pipe"
    while await process.stdout.read(_CHUNK_BYTES):
        pass


async def _output(process: asyncio.subprocess.Process, text: str) -> bytes:
    """Write the text to the program and read its output up to a bound."""
    assert process.stdin is not None and process.stdout is not None, "both are pipes"
    with contextlib.suppress(ConnectionError):
        process.stdin.write(text.encode())
        await process.stdin.drain()
    process.stdin.close()
    output = bytearray()
    while chunk := await process.stdout.read(_CHUNK_BYTES):
        output += chunk
        if len(output) > _MAX_OUTPUT_BYTES:
            raise SpeechError("the speech for the text is too long")
    return bytes(output)
