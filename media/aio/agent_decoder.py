"""Decoding of agent messages in order, with long ones decoded in a thread."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

from media.aio.agent_backpressure import ReadBackpressure
from media.streams import CommandError

__all__ = ["OrderedDecoder"]

_LOGGER = logging.getLogger(__name__)

# A longer piece of audio to convert, or a large object: its decoding time is counted.
_COUNTED_BYTES = 8 * 1024

# Some seconds of audio: to convert them on the loop would delay every other call by more than a frame.
_LONG_BYTES = 32 * 1024

T = TypeVar("T")
Decode = Callable[[bytes], T]


class OrderedDecoder(Generic[T]):
    """
    Decodes one agent's messages, long ones in a thread.

    Meanwhile the socket is not read; messages that were read already wait, and so does later work.

    Args:
        pace: Pauses the socket and counts the time of each message.
        take: Called with a function that returns the decoded message or raises its error.
        failed: Called after an unexpected error in decoding.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pace: ReadBackpressure,
        take: Callable[[Callable[[], T]], None],
        failed: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._pace = pace
        self._take = take
        self._failed = failed
        self._reading = False
        self._waiting: deque[Callable[[], None]] = deque()

    def read(self, decode: Decode[T], data: bytes) -> None:
        """Decode a message and pass it to `take`, now or after the messages before it."""
        if self._reading:
            self._waiting.append(lambda: self._begin(decode, data))
        else:
            self._begin(decode, data)

    def then(self, work: Callable[[], None]) -> None:
        """Run work after all messages received so far."""
        if self._reading:
            self._waiting.append(work)
        else:
            work()

    def forget(self) -> None:
        """Drop all messages, the one being decoded included, and the references to the callbacks."""
        self._waiting.clear()
        self._take = self._failed = _nothing

    def _begin(self, decode: Decode[T], data: bytes) -> None:
        if len(data) < _COUNTED_BYTES:
            self._take(lambda: decode(data))
            return
        if len(data) < _LONG_BYTES:
            self._take(lambda: self._pace.timed(lambda: decode(data)))
            return
        self._reading = True
        self._pace.hold()
        reading = self._loop.run_in_executor(_readers(), _timed, decode, data)
        reading.add_done_callback(self._done)

    def _done(self, reading: asyncio.Future[tuple[Callable[[], T], float]]) -> None:
        self._reading = False
        error = reading.exception()
        if error is not None:
            _LOGGER.error("decoding an agent message failed", exc_info=error)
            self._failed()
        else:
            read, took_s = reading.result()
            self._pace.spent(took_s)
            self._take(read)
        while self._waiting and not self._reading:
            self._waiting.popleft()()
        if not self._reading:
            self._pace.release()


def _nothing(*_: object) -> None:
    """Do nothing; the callback after `forget`."""


@cache
def _readers() -> ThreadPoolExecutor:
    """Return the one thread for all agents: their conversions take at most one core from the calls."""
    return ThreadPoolExecutor(1, thread_name_prefix="agent-reading")


def _timed(decode: Decode[T], data: bytes) -> tuple[Callable[[], T], float]:
    """Decode; returns a function that returns the message or raises its error, and the thread's seconds."""
    began_s = time.thread_time()
    try:
        message = decode(data)
    except CommandError as wrong:
        error = wrong

        def refuse() -> T:
            raise error

        return refuse, time.thread_time() - began_s
    return lambda: message, time.thread_time() - began_s
