"""Speech to text by a server, while the party talks; `media.audio.recognition` has its messages."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable

import aiohttp

from media.audio.recognition import Heard, RecognizerServer, SessionRefused, make_recognizer_dialect

_LOGGER = logging.getLogger(__name__)

# Audio that waits for a server which is slow to answer or to read; older audio is dropped.
_MAX_WAITING_BYTES = 5 * 16_000 * 2
_MAX_MESSAGE_BYTES = 256 * 1024
_MAX_UNREADABLE = 20
# An hour of speech has fewer.
_MAX_MESSAGES = 20_000
# While the party talks and no words are known, the listener is told of it again and again, up to a limit.
_TALKING_S = 1.0
_MAX_TALKING_S = 60.0
_CLOSE_TIMEOUT_S = 2.0

OUTCOMES = ("connected", "unreachable", "refused", "broken")
"""Outcomes of connections; a `broken` one was `connected` before."""


class Recognizer:
    """
    Recognises the speech of calls by a server; must be made on the loop that uses it.

    Attributes:
        outcomes: Number of connections, by outcome.
    """

    def __init__(self, server: RecognizerServer) -> None:
        self.outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.server = server
        self._session: aiohttp.ClientSession | None = None
        self._open: set[Recognition] = set()

    def start(
        self,
        language: str,
        sample_rate: int,
        on_heard: Callable[[Heard], None],
        on_failed: Callable[[str], None],
    ) -> Recognition:
        """
        Begin to listen to 16-bit mono samples; `on_failed` is called with the reason if it ends by itself.

        Nothing is called after `Recognition.stop`.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False)
        recognition = Recognition(self, self._session, language, sample_rate, on_heard, on_failed)
        self._open.add(recognition)
        recognition.task.add_done_callback(lambda _: self._open.discard(recognition))
        return recognition

    async def close(self) -> None:
        """End all connections."""
        for recognition in list(self._open):
            recognition.stop()
        await asyncio.gather(*(recognition.task for recognition in self._open), return_exceptions=True)
        if self._session is not None:
            await self._session.close()


class Recognition:
    """One connection to the server, for one party at a time."""

    def __init__(
        self,
        recognizer: Recognizer,
        session: aiohttp.ClientSession,
        language: str,
        sample_rate: int,
        on_heard: Callable[[Heard], None],
        on_failed: Callable[[str], None],
    ) -> None:
        self._recognizer = recognizer
        self._session = session
        self._dialect = make_recognizer_dialect(recognizer.server, language, sample_rate)
        self._second_bytes = 2 * sample_rate
        self._talking_bytes = 0
        self._on_heard = on_heard
        self._on_failed = on_failed
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._more = asyncio.Event()
        self._stopped = False
        self.task = asyncio.create_task(self._run())

    def feed(self, pcm: bytes) -> None:
        """Send audio; the oldest is dropped while the server takes none."""
        if self._stopped:
            return
        self._waiting.append(pcm)
        self._waiting_bytes += len(pcm)
        while self._waiting_bytes > _MAX_WAITING_BYTES:
            self._waiting_bytes -= len(self._waiting.popleft())
        self._more.set()

    def stop(self) -> None:
        """End the connection; nothing more is reported. Idempotent."""
        if not self._stopped:
            self._stopped = True
            self._more.set()

    async def _run(self) -> None:
        outcomes = self._recognizer.outcomes
        try:
            socket = await self._connected()
        except aiohttp.WSServerHandshakeError as error:
            outcomes["refused"] += 1
            self._fail(f"answered with status {error.status}")
            return
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            outcomes["unreachable"] += 1
            self._fail(f"cannot be reached: {type(error).__name__}")
            return
        outcomes["connected"] += 1
        problem = ""
        sending = asyncio.create_task(self._send(socket))
        reading = asyncio.create_task(self._read(socket))
        try:
            await asyncio.wait((sending, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, reading):
                task.cancel()
            for result in await asyncio.gather(sending, reading, return_exceptions=True):
                if isinstance(result, SessionRefused):
                    problem = f"reported {result}"
            await socket.close()
        if not self._stopped:
            outcomes["broken"] += 1
            self._fail(problem or f"ended the connection with {socket.close_code}")

    async def _connected(self) -> aiohttp.ClientWebSocketResponse:
        async with asyncio.timeout(self._recognizer.server.connect_timeout_s):
            return await self._session.ws_connect(
                self._dialect.url(),
                headers=self._dialect.headers(),
                max_msg_size=_MAX_MESSAGE_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_TIMEOUT_S),
                heartbeat=10.0,
            )

    async def _send(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        dialect = self._dialect
        try:
            await _write(socket, dialect.opening())
            while not self._stopped:
                while self._waiting:
                    pcm = self._waiting.popleft()
                    self._waiting_bytes -= len(pcm)
                    await _write(socket, dialect.audio(pcm))
                    self._tell_of_talking(len(pcm))
                self._more.clear()
                await self._more.wait()
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await _write(socket, dialect.closing())
        except (ConnectionError, TimeoutError):
            return

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        unreadable = count = 0
        async for message in socket:
            count += 1
            if count > _MAX_MESSAGES:
                return
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            try:
                heard = self._dialect.read(message.data)
            except (ValueError, RecursionError):
                unreadable += 1
                if unreadable > _MAX_UNREADABLE:
                    return
                continue
            if heard is not None and not self._stopped:
                self._on_heard(heard)

    def _tell_of_talking(self, size_bytes: int) -> None:
        """Report that the party still talks, which a server says only at the beginning and the end."""
        if not self._dialect.speaking:
            self._talking_bytes = 0
            return
        before = self._talking_bytes
        self._talking_bytes += size_bytes
        step = int(_TALKING_S * self._second_bytes)
        whole = self._talking_bytes // step > before // step
        if whole and self._talking_bytes <= _MAX_TALKING_S * self._second_bytes and not self._stopped:
            self._on_heard(Heard("", final=False))

    def _fail(self, problem: str) -> None:
        if not self._stopped:
            self._stopped = True
            _LOGGER.warning("speech is not recognised: the server %s", problem)
            self._on_failed(problem)


async def _write(socket: aiohttp.ClientWebSocketResponse, message: bytes | str | None) -> None:
    if isinstance(message, str):
        await socket.send_str(message)
    elif message is not None:
        await socket.send_bytes(message)
