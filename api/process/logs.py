"""
Log output: one line per event, as text or JSON, with the call it belongs to and never a secret.

A record may carry ``call_sid``, ``call_id`` (of SIP), ``account_sid`` and ``request_id`` (``extra=``). Text
that looks like a key of any service, a bearer token, a webhook secret, the password of a URL or a field with
a secret's name is redacted in every record.
"""

from __future__ import annotations

import json
import logging
import os
import re
import select
import stat
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TextIO

from aiohttp.http_exceptions import HttpProcessingError

from callcontrol.accounts.keys import PREFIXES
from sip import readable

__all__ = [
    "CallNamer",
    "LineLimit",
    "NonBlockingWriter",
    "configure_logging",
    "dropped_lines",
    "naming_calls",
    "print_line",
    "readable_line",
    "redact",
    "standard_descriptors",
]

_log = logging.getLogger("api.process.logs")


CONTEXT = ("call_sid", "call_id", "account_sid", "request_id")

_NAMES = "token|password|passwd|secret|api_?key|authorization|signature|response"
_SECRETS = (
    (re.compile(rf"\b({'|'.join(PREFIXES.values())}|whsec_)[A-Za-z0-9_+/=-]{{4,}}"), r"\1***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"(://[^/\s:@]+):[^/\s@]+@"), r"\1:***@"),
    # In a query, a header field, the repr of an object, or JSON.
    (
        re.compile(rf"(?i)((?:{_NAMES})(?:=b?['\"]?|['\"]\s*:\s*b?['\"]))[^&\s\"',]+"),
        r"\1***",
    ),
    # The input value in a pydantic validation error, which may hold quotes, commas and brackets.
    (re.compile(r"(input_value=)(?:.{0,300}?(?=, input_type=)|'[^']*'|\"[^\"]*\"|[^,\]]+)"), r"\1***"),
)
# Every match of the patterns contains one of these, in any case: most lines need only this check.
_SIGNS = (*PREFIXES.values(), "whsec_", "bearer", "basic", "://")
# These count before a separator only, which few lines have.
_NAMED = (*_NAMES.replace("_?", "_").split("|"), "apikey", "input_value=")
# An identifier of these characters matches no pattern, and has no control character.
_PLAIN = re.compile(r"[A-Za-z0-9@.:-]*")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")

LINES_PER_SECOND = 500
_SHOWN = 200
_CHUNK_BYTES: Final = select.PIPE_BUF
"""A pipe that is writable has room for this many bytes."""
_MAX_KEPT: Final = 1000


def redact(text: str) -> str:
    """Replace text that looks like a secret."""
    lower = text.lower()
    separated = "=" in lower or "'" in lower or '"' in lower
    for sign in (*_SIGNS, *_NAMED) if separated else _SIGNS:
        if sign in lower:
            break
    else:
        return text
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def readable_line(record: logging.LogRecord) -> str:
    """Return ``time level logger: message``, without secrets; made once, as several handlers show it."""
    made: str | None = record.__dict__.get("readable_line")
    if made is None:
        message = redact(record.getMessage())
        if not message.isprintable():
            # Escaped, a line end no longer shows where a key begins; as it was, it ends one.
            message = redact(_one_line(message))
        made = f"{_moment(record)} {record.levelname:<7} {record.name}: {message}"
        record.__dict__["readable_line"] = made
    return made


class _Text(logging.Formatter):
    """``time level logger: message  call_sid=...``."""

    def format(self, record: logging.LogRecord) -> str:
        rest = ""
        for name, value in _context(record).items():
            rest += f"  {name}={value}"
        if record.exc_info:
            rest += "\n" + redact(self.formatException(record.exc_info))
        return readable_line(record) + rest


class _Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_context(record),
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


class LineLimit(logging.Filter):
    """
    Passes a limited number of lines of one kind per second, then logs how many were left out.

    Lines are of one kind when they have the same logger and message template, whatever call or peer they
    name. A flood of one kind neither fills the disk nor slows the process, and hides no line of another kind.
    """

    def __init__(self, per_second: int = LINES_PER_SECOND) -> None:
        super().__init__()
        self._per_second = per_second
        self._second = 0
        self._counts: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return true if the line is within the limit."""
        if (second := int(record.created)) != self._second:
            self._begin(second)
        text = str(record.msg)
        if (call_sid := getattr(record, "call_sid", None)) is not None:
            text = text.replace(call_sid, "")
        kind = record.name, text
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return count <= self._per_second

    def _begin(self, second: int) -> None:
        counts, self._counts, self._second = self._counts, {}, second
        for (name, text), count in counts.items():
            if count > self._per_second:
                left_out = count - self._per_second
                _log.warning("%d more lines of %s were suppressed: %s", left_out, name, text[:_SHOWN])


class CallNamer(logging.Filter):
    """Adds the ``call_sid`` to lines that have only a SIP ``call_id``, by ``find``."""

    def __init__(self, find: Callable[[str], str | None]) -> None:
        super().__init__()
        self._find = find

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the call; every line passes."""
        call_id = getattr(record, "call_id", None)
        if call_id is not None and getattr(record, "call_sid", None) is None:
            record.call_sid = self._find(call_id)
        return True


class _PeersFaults(logging.Filter):
    """Logs malformed HTTP requests, the peer's fault, as one INFO line instead of a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            record.msg, record.args = "unreadable HTTP: %s", (type(error).__name__,)
            record.levelno, record.levelname = logging.INFO, "INFO"
            record.exc_info = None
        return True


class _LostConnections(logging.Filter):
    """
    Logs a connection that could not be given back to its pool as one line instead of a traceback.

    That is a connection which is lost while it is returned. The failure of the database is logged by those
    who work with it, and the driver's inner calls say no more than its error.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the text of the pool; every line passes."""
        error = record.exc_info[1] if record.exc_info else None
        if record.name.startswith("sqlalchemy.pool.") and isinstance(error, Exception):
            record.msg = "a database connection is lost: %s: %s"
            record.args = (type(error).__name__, error)
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = None
        return True


class NonBlockingWriter:
    """
    Writer to a stream that never blocks, as a pipe or a terminal may.

    A log collector that hangs leaves a full pipe, and a write to it would block the whole server with every
    call. So the writer checks for room first; lines without room are kept in a bounded queue, then dropped
    and counted. A reader that has closed the pipe does not end the server.

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
    """Logging handler that writes to a `NonBlockingWriter`, without lone surrogates."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self.writer = NonBlockingWriter(stream) if stream is not None else None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or queue it."""
        if self.writer is None:
            return
        try:
            # Text of a peer may keep bytes that are not UTF-8.
            self.writer.put(readable(self.format(record)))
        except Exception:
            # As in every handler of the standard library: a line that cannot be formatted raises nothing.
            self.handleError(record)

    def flush(self) -> None:
        """Write queued lines."""
        if self.writer is not None:
            self.writer.flush()


def configure_logging(log_format: str, level: str, stream: TextIO | None = None) -> None:
    """Send all logs of the process to `stream` (stderr by default)."""
    handler = NonBlockingHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    handler.addFilter(_LostConnections())
    handler.addFilter(LineLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # No line shows process, thread or file, so logging need not look them up.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    server = logging.getLogger("aiohttp.server")
    server.filters[:] = [_PeersFaults()]
    # These log every statement or connection at the levels that we use.
    for chatty in ("sqlalchemy", "aiosqlite", "alembic", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def naming_calls(find: Callable[[str], str | None]) -> Callable[[], None]:
    """Add the call to all lines from now on; return a function that stops it."""
    namer, handlers = CallNamer(find), list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(namer)

    def end() -> None:
        for handler in handlers:
            handler.removeFilter(namer)

    return end


def dropped_lines() -> int:
    """Number of log lines lost because nobody read them."""
    handlers = [
        handler for handler in logging.getLogger().handlers if isinstance(handler, NonBlockingHandler)
    ]
    return sum(handler.writer.dropped for handler in handlers if handler.writer is not None)


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


def _one_line(text: str) -> str:
    """Escape control characters, so that a peer's text can neither forge lines nor control a terminal."""
    return text if text.isprintable() else _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def _context(record: logging.LogRecord) -> dict[str, str]:
    given, found = record.__dict__, dict[str, str]()
    for name in CONTEXT:
        value = given.get(name)
        if value is not None:
            text = str(value)
            # A Call-ID is text from a peer.
            found[name] = text if _PLAIN.fullmatch(text) else redact(_one_line(text))
    return found


def _moment(record: logging.LogRecord) -> str:
    second, rest = divmod(record.created, 1)
    return f"{_second(int(second))}.{int(rest * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
