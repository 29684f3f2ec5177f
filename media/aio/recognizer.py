"""Speech to text by a server, while the party talks; `media.audio.recognition` has its messages."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

import aiohttp

from media.audio.circuit_breaker import CircuitBreaker, ServerBreaker, ServerWords
from media.audio.recognition import Heard, RecognizerServer, SessionRefused, make_recognizer_dialect

_LOGGER = logging.getLogger(__name__)

# Audio that waits for a server which is slow to answer or to read; older audio is dropped.
_MAX_WAITING_BYTES = 5 * 16_000 * 2
_MAX_MESSAGE_BYTES = 256 * 1024
_MAX_UNREADABLE = 20
# A server sends fewer, however long it listens.
_MAX_MESSAGES = 20_000
_MAX_MESSAGES_PER_S = 10
# While the party talks and no words are known, the listener is told of it again and again, up to a limit.
_TALKING_S = 1.0
_MAX_TALKING_S = 60.0
_CLOSE_TIMEOUT_S = 2.0
_LAST_WORDS_S = 2.0
# A server that is silent for so long, and neither fails nor misses the heartbeats, works.
_PROVEN_S = 20.0
_SERVER_ERROR = 500

OUTCOMES = ("connected", "unreachable", "refused", "broken", "skipped")
"""Outcomes of connections; a `broken` one was `connected` before, a `skipped` one not made at all."""

LEFT_ALONE = "it is left alone after failures"
"""Reason for which `on_failed` is called while the circuit breaker is open."""

_WORDS = ServerWords("the recogniser", "it is left alone", "one party")


class Recognizer:
    """
    Recognises the speech of calls by a server; must be made on the loop that uses it.

    Attributes:
        outcomes: Number of connections, by outcome.
        breaker: Decides if the server is asked.
    """

    def __init__(self, server: RecognizerServer) -> None:
        self.outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.breaker = ServerBreaker(CircuitBreaker(), _WORDS, _LOGGER, asyncio.get_running_loop().time)
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

        That is at once, in the loop's next iteration, while the circuit breaker is open. Nothing is called
        after `Recognition.stop`.
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
        self._finishing = False
        self._flushed = False
        self._on_ended: Callable[[], None] | None = None
        self._deadline: float | None = None
        self._limit: asyncio.Timeout | None = None
        self.task = asyncio.create_task(self._run())

    def feed(self, pcm: bytes) -> None:
        """Send audio; the oldest is dropped while the server takes none."""
        if self._stopped or self._finishing:
            return
        self._waiting.append(pcm)
        self._waiting_bytes += len(pcm)
        while self._waiting_bytes > _MAX_WAITING_BYTES:
            self._waiting_bytes -= len(self._waiting.popleft())
        self._more.set()

    def finish(self, on_ended: Callable[[], None]) -> None:
        """
        End the connection when the words of the audio so far have come; then call `on_ended`.

        The words are waited for no longer than 2 s, and the connection ends within them, whatever the server
        does. `on_failed` is not called any more.
        """
        self._finishing, self._on_ended = True, on_ended
        self._end_within(_LAST_WORDS_S)
        if self.task.done():
            self._ended()

    def stop(self) -> None:
        """End the connection; nothing more is reported. Idempotent."""
        if not self._stopped:
            self._stopped = True
            self._end_within(_CLOSE_TIMEOUT_S)

    def _end_within(self, rest_s: float) -> None:
        """End the sending, and all within this time: the server may take nothing any more."""
        self._more.set()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + rest_s
            if self._limit is not None and not self.task.done():
                self._limit.reschedule(self._deadline)

    async def _run(self) -> None:
        try:
            if self._recognizer.breaker.allows():
                async with asyncio.timeout_at(self._deadline) as self._limit:
                    await self._serve()
            else:
                self._recognizer.outcomes["skipped"] += 1
                self._fail(LEFT_ALONE)
        except TimeoutError:
            # Only the end of the deadline gets here: what fails is handled where it does.
            return
        finally:
            self._ended()

    def _ended(self) -> None:
        on_ended, self._on_ended = self._on_ended, None
        if on_ended is not None and not self._stopped:
            on_ended()

    async def _serve(self) -> None:
        """Connect and talk to the server, and report what that has shown of it."""
        outcomes, works = self._recognizer.outcomes, None
        try:
            socket = await self._connected()
            outcomes["connected"] += 1
            problem, works = await self._talk(socket)
            if problem is not None:
                outcomes["broken"] += 1
                self._fail(problem)
        except aiohttp.WSServerHandshakeError as error:
            works = error.status < _SERVER_ERROR
            outcomes["refused"] += 1
            self._fail(f"answered with status {error.status}")
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            works = False
            outcomes["unreachable"] += 1
            self._fail(f"cannot be reached: {type(error).__name__}")
        finally:
            self._recognizer.breaker.report(works)

    async def _talk(self, socket: aiohttp.ClientWebSocketResponse) -> tuple[str | None, bool | None]:
        """
        Send audio and read words until either ends.

        Return the reason if that was not wanted, and what it has shown of the server, as for `report`.
        """
        refusal: SessionRefused | None = None
        sending = asyncio.create_task(self._send(socket))
        reading = asyncio.create_task(self._read(socket))
        # A long connection must not keep others from trying the server.
        proof = asyncio.get_running_loop().call_later(_PROVEN_S, self._recognizer.breaker.report, True)
        try:
            await asyncio.wait((sending, reading), return_when=asyncio.FIRST_COMPLETED)
            if self._finishing and not self._stopped and not self._dialect.settled:
                await asyncio.wait((reading,))
        finally:
            proof.cancel()
            for task in (sending, reading):
                task.cancel()
            for result in await asyncio.gather(sending, reading, return_exceptions=True):
                if isinstance(result, SessionRefused):
                    refusal = result
            # A server that does not answer the closing frame is not waited for beyond the deadline.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._deadline):
                    await socket.close()
        if self._stopped or self._finishing:
            return None, None
        if refusal is None:
            return f"ended the connection with {socket.close_code}", False
        # Customers choose the language, for example: what is wrong with one session says nothing of others.
        return f"reported {refusal}", False if refusal.by_failure else None

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
                while self._waiting and not self._stopped:
                    pcm = self._waiting.popleft()
                    self._waiting_bytes -= len(pcm)
                    await _write(socket, dialect.audio(pcm))
                    self._tell_of_talking(len(pcm))
                if self._finishing:
                    break
                self._more.clear()
                await self._more.wait()
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                if not self._stopped:
                    await _write(socket, dialect.flush())
                    self._flushed = True
                await _write(socket, dialect.closing())
        except (ConnectionError, TimeoutError):
            return

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        unreadable = count = 0
        loop = asyncio.get_running_loop()
        began = loop.time()
        async for message in socket:
            count += 1
            if count > _MAX_MESSAGES + _MAX_MESSAGES_PER_S * (loop.time() - began):
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
                if heard.final:
                    self._recognizer.breaker.report(True)
                self._on_heard(heard)
            if self._flushed and self._dialect.settled:
                return

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
        if not self._stopped and not self._finishing:
            self._stopped = True
            if problem != LEFT_ALONE:
                _LOGGER.warning("speech is not recognised: the server %s", problem)
            self._on_failed(problem)


async def _write(socket: aiohttp.ClientWebSocketResponse, message: bytes | str | None) -> None:
    if isinstance(message, str):
        await socket.send_str(message)
    elif message is not None:
        await socket.send_bytes(message)
