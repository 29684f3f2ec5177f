"""
Speech to text by a server with Deepgram's streaming endpoint, while the party talks.

Source: Deepgram API reference, Live Audio (`/v1/listen`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp

_LOGGER = logging.getLogger(__name__)

# Audio that waits for a server which is slow to answer or to read; older audio is dropped.
_MAX_WAITING_BYTES = 5 * 16_000 * 2
_MAX_MESSAGE_BYTES = 256 * 1024
_MAX_TEXT_CHARS = 4000
_MAX_UNREADABLE = 20
_CLOSE_TIMEOUT_S = 2.0

OUTCOMES = ("connected", "unreachable", "refused", "broken")
"""Outcomes of connections; a `broken` one was `connected` before."""


@dataclass(frozen=True, slots=True)
class RecognizerServer:
    """
    A server that recognises speech.

    Attributes:
        url: Endpoint, such as `wss://api.deepgram.com/v1/listen`.
        model: Model that listens.
        key: Token, if it wants one.
        endpointing_ms: Silence that ends an utterance.
        connect_timeout_s: Limit for the connection.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    endpointing_ms: int = 700
    connect_timeout_s: float = 3.0


@dataclass(frozen=True, slots=True)
class Heard:
    """
    Words of the party, from the beginning of its utterance.

    Attributes:
        final: True if the utterance is over.
        confidence: From 0 to 1; 0 if the server did not say.
    """

    text: str = field(repr=False)
    final: bool
    confidence: float = 0.0


class Utterances:
    """
    Reads the messages of the server, and joins the parts of an utterance.

    A part that will not change any more is final for the server; the utterance is over with `speech_final`,
    or with `UtteranceEnd`.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._confidences: list[float] = []

    def read(self, data: str) -> Heard | None:
        """
        Read a message; None if it adds nothing.

        Raises:
            ValueError: It is not what the server should send.
        """
        message = json.loads(data)
        if not isinstance(message, dict):
            raise ValueError("not an object")
        match message.get("type"):
            case "Results":
                return self._result(message)
            case "UtteranceEnd":
                return self._end()
        return None

    def _result(self, message: Mapping[str, Any]) -> Heard | None:
        try:
            best = message["channel"]["alternatives"][0]
            text, confidence = best["transcript"], best.get("confidence", 0.0)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError("no transcript") from None
        if (
            not isinstance(text, str)
            or isinstance(confidence, bool)
            or not isinstance(confidence, int | float)
        ):
            raise ValueError("no transcript")
        text = "".join(character for character in text if character.isprintable()).strip()
        if message.get("is_final") is True:
            if text and sum(map(len, self._parts)) < _MAX_TEXT_CHARS:
                self._parts.append(text)
                self._confidences.append(min(max(float(confidence), 0.0), 1.0))
            text = ""
        if message.get("speech_final") is True:
            return self._end()
        so_far = " ".join((*self._parts, text)).strip()[:_MAX_TEXT_CHARS]
        return Heard(so_far, final=False) if so_far else None

    def _end(self) -> Heard | None:
        parts, self._parts = self._parts, []
        confidences, self._confidences = self._confidences, []
        if not parts:
            return None
        return Heard(" ".join(parts)[:_MAX_TEXT_CHARS], True, round(min(confidences), 3))


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
        self._url = _url(recognizer.server, language, sample_rate)
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
        sending = asyncio.create_task(self._send(socket))
        reading = asyncio.create_task(self._read(socket))
        try:
            await asyncio.wait((sending, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, reading):
                task.cancel()
            await asyncio.gather(sending, reading, return_exceptions=True)
            await socket.close()
        if not self._stopped:
            outcomes["broken"] += 1
            self._fail(f"ended the connection with {socket.close_code}")

    async def _connected(self) -> aiohttp.ClientWebSocketResponse:
        server = self._recognizer.server
        headers = {} if server.key is None else {"Authorization": f"Token {server.key}"}
        async with asyncio.timeout(server.connect_timeout_s):
            return await self._session.ws_connect(
                self._url,
                headers=headers,
                max_msg_size=_MAX_MESSAGE_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_TIMEOUT_S),
                heartbeat=10.0,
            )

    async def _send(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        try:
            while not self._stopped:
                while self._waiting:
                    pcm = self._waiting.popleft()
                    self._waiting_bytes -= len(pcm)
                    await socket.send_bytes(pcm)
                self._more.clear()
                await self._more.wait()
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await socket.send_str('{"type":"CloseStream"}')
        except (ConnectionError, TimeoutError):
            return

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        utterances, unreadable = Utterances(), 0
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            try:
                heard = utterances.read(message.data)
            except (ValueError, RecursionError):
                unreadable += 1
                if unreadable > _MAX_UNREADABLE:
                    return
                continue
            if heard is not None and not self._stopped:
                self._on_heard(heard)

    def _fail(self, problem: str) -> None:
        if not self._stopped:
            self._stopped = True
            _LOGGER.warning("speech is not recognised: the server %s", problem)
            self._on_failed(problem)


def _url(server: RecognizerServer, language: str, sample_rate: int) -> str:
    query = {
        "model": server.model,
        "language": language,
        "encoding": "linear16",
        "sample_rate": sample_rate,
        "channels": 1,
        "interim_results": "true",
        "punctuate": "true",
        "endpointing": server.endpointing_ms,
        "utterance_end_ms": max(1000, server.endpointing_ms),
    }
    return f"{server.url}{'&' if '?' in server.url else '?'}{urlencode(query)}"
