"""
Non-blocking writer of log lines to pipes and terminals.

A log collector that hangs leaves a full pipe, and a write to it would block the whole server with every call.
So the writer checks for room first; lines without room are kept in a bounded queue, then dropped and counted.
A reader that has closed the pipe does not end the server.
"""

from __future__ import annotations

import logging
import os
import select
import stat
import sys
from collections import deque
from typing import Final, TextIO

__all__ = ["NonBlockingWriter", "NonBlockingHandler", "print_line", "standard_descriptors"]

_CHUNK_BYTES: Final = select.PIPE_BUF
"""A pipe that is writable has room for this many bytes."""
_MAX_KEPT: Final = 1000


class NonBlockingWriter:
    """
    Writer to a stream that never blocks.

    Attributes:
        dropped: Number of lines lost because nobody read them.
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
        """Write a line now or, without room, with a later one."""
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
        """Write queued lines as far as there is room."""
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
            # The reader or the terminal has closed.
            self.dropped += 1


class NonBlockingHandler(logging.Handler):
    """Logging handler that writes to a `NonBlockingWriter`."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self.writer = NonBlockingWriter(stream) if stream is not None else None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or queue it."""
        if self.writer is None:
            return
        try:
            self.writer.put(self.format(record))
        except Exception:
            # As in every handler of the standard library: a line that cannot be formatted raises nothing.
            self.handleError(record)

    def flush(self) -> None:
        """Write queued lines."""
        if self.writer is not None:
            self.writer.flush()


def print_line(text: str) -> None:
    """Print a line to standard output; drop it if that is closed or not read."""
    if sys.stdout is not None:
        NonBlockingWriter(sys.stdout).put(text)


def standard_descriptors() -> None:
    """Open the null device for closed standard descriptors; else a socket could get one, and log lines."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It gets the lowest free number.


def _waited_for(stream: TextIO) -> int | None:
    """Descriptor of a stream on which a write may block (pipe, socket, terminal); else None."""
    try:
        descriptor = stream.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        return None
    waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
    return descriptor if waits else None
