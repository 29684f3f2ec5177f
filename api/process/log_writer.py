"""
What the process says, on descriptors that somebody else reads, or does not.

A log collector that hangs leaves a full pipe behind, and who writes to that waits: the whole server would,
with every call. So it is asked first whether there is room; what finds none is kept for a while, then dropped
and counted. A reader that is gone altogether is nothing to end for.
"""

from __future__ import annotations

import logging
import os
import select
import stat
import sys
from collections import deque
from typing import Final, TextIO

__all__ = ["Outlet", "OutletHandler", "say", "standard_descriptors"]

_CHUNK_BYTES: Final = select.PIPE_BUF
"""A pipe with any room has room for so much."""
_MAX_KEPT: Final = 1000


class Outlet:
    """
    A stream that is never waited for.

    Attributes:
        dropped: Lines that were lost because nobody read them.
    """

    def __init__(self, stream: TextIO) -> None:
        self.dropped = 0
        self._stream = stream
        self._kept: deque[bytes] = deque()
        self._lost = 0
        self._torn = False
        self._descriptor = _waited_for(stream)
        self._room = select.poll()
        if self._descriptor is not None:
            self._room.register(self._descriptor, select.POLLOUT)

    def put(self, line: str) -> None:
        """Write a line now or, when there is no room, with a later one."""
        if self._descriptor is None:
            self._stream.write(line + "\n")
            self._stream.flush()
            return
        self._kept.append((line + "\n").encode("utf-8", "backslashreplace"))
        if len(self._kept) > _MAX_KEPT:
            self._kept.popleft()
            self.dropped += 1
            self._lost += 1
        self.flush()

    def flush(self) -> None:
        """Write what was kept, as far as there is room."""
        if self._lost and self._has_room():
            lost, self._lost = self._lost, 0
            self._write(b"(%d lines of the log were dropped: nobody read them)\n" % lost)
        while self._kept and self._has_room():
            self._write(self._kept.popleft())

    def _has_room(self) -> bool:
        return bool(self._room.poll(0))

    def _write(self, line: bytes) -> None:
        assert self._descriptor is not None
        if self._torn:
            line = b"\n" + line
        self._torn = False
        try:
            for start in range(0, len(line), _CHUNK_BYTES):
                if start and not self._has_room():
                    self._torn = True
                    break
                os.write(self._descriptor, line[start : start + _CHUNK_BYTES])
        except OSError:
            # The reader is gone, or the terminal.
            self.dropped += 1


class OutletHandler(logging.Handler):
    """Sends log records to an outlet."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self.outlet = Outlet(stream) if stream is not None else None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or keep it for later."""
        if self.outlet is None:
            return
        try:
            self.outlet.put(self.format(record))
        except Exception:
            # As in every handler of the standard library: a line that cannot be made ends nothing.
            self.handleError(record)

    def flush(self) -> None:
        """Write what was kept."""
        if self.outlet is not None:
            self.outlet.flush()


def say(text: str) -> None:
    """Print to the standard output, if somebody has one and reads it."""
    if sys.stdout is not None:
        Outlet(sys.stdout).put(text)


def standard_descriptors() -> None:
    """Have something behind the first three descriptors: else a socket gets one, and log lines go there."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It gets the lowest number that is free.


def _waited_for(stream: TextIO) -> int | None:
    """The descriptor of a stream on which a write may wait for a reader; None when it does not."""
    try:
        descriptor = stream.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        return None
    waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
    return descriptor if waits else None
