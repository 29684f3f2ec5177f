"""Messages of an agent that take long to read, read beside the loop; all messages taken in their order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

from media.aio.agent_pace import ReadPace
from media.streams import CommandError

__all__ = ["OrderedReading"]

_LOGGER = logging.getLogger(__name__)

# A piece of audio to be converted, or an object with much in it: what it takes is counted.
_COUNTED_BYTES = 8 * 1024

# Some seconds of audio: to convert them here would hold up every other call by more than a frame.
_LONG_BYTES = 32 * 1024

T = TypeVar("T")
Decode = Callable[[bytes], T]


class OrderedReading(Generic[T]):
    """
    Reads one agent's messages, those that take long in a thread.

    Nothing more is read from the socket meanwhile; what had been read waits for its turn, and so does what
    else has to come after it.

    Args:
        pace: Holds the socket back, and is told what a message has cost.
        take: Called with what reads a message at once, or raises what was wrong with it.
        failed: Called when a message could not be read for a reason that nobody foresaw.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pace: ReadPace,
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
        """Read a message and take it, now or as soon as those before it were taken."""
        if self._reading:
            self._waiting.append(lambda: self._begin(decode, data))
        else:
            self._begin(decode, data)

    def then(self, work: Callable[[], None]) -> None:
        """Do something after all that has come was taken."""
        if self._reading:
            self._waiting.append(work)
        else:
            work()

    def forget(self) -> None:
        """Take nothing more, not even what is being read; whoever takes is let go of as well."""
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
            _LOGGER.error("a message of an agent could not be read", exc_info=error)
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
    """What is left to do for a stream that is over."""


@cache
def _readers() -> ThreadPoolExecutor:
    """One thread for all agents: what they have converted takes no more than a core from the calls."""
    return ThreadPoolExecutor(1, thread_name_prefix="agent-reading")


def _timed(decode: Decode[T], data: bytes) -> tuple[Callable[[], T], float]:
    """What gives the message, or raises what is wrong with it; and how long this thread worked on it."""
    began_s = time.thread_time()
    try:
        message = decode(data)
    except CommandError as wrong:
        error = wrong

        def refuse() -> T:
            raise error

        return refuse, time.thread_time() - began_s
    return lambda: message, time.thread_time() - began_s
