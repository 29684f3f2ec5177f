"""Text to speech by espeak-ng, run as a separate process, with caches in memory and on disk."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import tempfile
from collections import OrderedDict
from pathlib import Path

from media.audio import AudioError, Clip, SpeechError, SpeechUnavailable, WavError, read_wav, write_wav
from media.audio.speech import MAX_SPEECH_CHARS, SpeechText, Synthesizer, espeak_arguments, speech_text

logger = logging.getLogger(__name__)

_RATE = 16_000
# Four minutes at the rate of espeak-ng; more than the longest text takes.
_MAX_OUTPUT_BYTES = 12 << 20
_CHUNK_BYTES = 1 << 16
# Part of the digest, so that speech made with other parameters is not reused.
_RECIPE = "espeak-ng 150 wpm 16000 Hz 1"
# Target share of the disk limit, so that not every new sentence causes a clean-up.
_KEPT_SHARE = 0.9


class EspeakSynthesizer(Synthesizer):
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


class SpeechStore:
    """
    A folder of spoken sentences, named by a digest that does not reveal them.

    All methods block on the disk, so call them in a thread. Since this is a cache, a file that cannot be read
    or written counts as missing.
    """

    def __init__(self, directory: Path, capacity_bytes: int) -> None:
        self._directory = directory
        self._capacity_bytes = capacity_bytes

    def get(self, digest: str) -> Clip | None:
        """Return the sentence of a digest, or None; a broken file is removed."""
        path = self._path(digest)
        try:
            clip = read_wav(path.read_bytes())
        except OSError:
            return None
        except WavError:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return clip

    def put(self, digest: str, clip: Clip) -> None:
        """Store a sentence; the least recently used are removed when the folder is too large."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A reader sees the whole file or none.
            with tempfile.NamedTemporaryFile(dir=self._directory, suffix=".part", delete=False) as file:
                file.write(write_wav(clip))
            os.replace(file.name, self._path(digest))
            self._tidy()
        except OSError as error:
            logger.warning("cannot cache speech on disk: %s", error.strerror)

    def _path(self, digest: str) -> Path:
        return self._directory / f"{digest}.wav"

    def _tidy(self) -> None:
        """Remove the least recently used files when the folder is too large."""
        found = []
        for path in self._directory.glob("*.wav"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self._capacity_bytes:
            return
        for _, size, path in sorted(found):
            if total <= self._capacity_bytes * _KEPT_SHARE:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size


class ClipCache:
    """Clips by key, at most `capacity_bytes`; the least recently used are evicted first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._kept: OrderedDict[str, Clip] = OrderedDict()
        self.size_bytes = 0

    def get(self, key: str) -> Clip | None:
        """Return the clip of a key, or None."""
        clip = self._kept.get(key)
        if clip is not None:
            self._kept.move_to_end(key)
        return clip

    def put(self, key: str, clip: Clip) -> None:
        """Store a clip, unless it is larger than a quarter of the cache."""
        if len(clip.pcm) > self._capacity_bytes // 4:
            return
        before = self._kept.pop(key, None)
        self._kept[key] = clip
        self.size_bytes += len(clip.pcm) - (0 if before is None else len(before.pcm))
        while self.size_bytes > self._capacity_bytes:
            _, dropped = self._kept.popitem(last=False)
            self.size_bytes -= len(dropped.pcm)
