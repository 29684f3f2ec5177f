"""
Log output: one line per event, as text or JSON, with the call it belongs to and never a secret.

A record may carry ``call_sid``, ``call_id`` (of SIP), ``account_sid`` and ``request_id`` (``extra=``). Text
that looks like a key of any service, a bearer token, a webhook secret, the password of a URL or a field with
a secret's name is redacted in every record.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO

from aiohttp.http_exceptions import HttpProcessingError

from api.process.log_filters import LineLimit
from api.process.log_writer import NonBlockingHandler
from callcontrol.accounts.keys import PREFIXES

__all__ = ["configure_logging", "dropped_lines", "redact"]

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
    # The input value in a pydantic validation error.
    (re.compile(r"(input_value=)(?:'[^']*'|\"[^\"]*\"|[^,\]]+)"), r"\1***"),
)
# Every match of the patterns contains one of these, in any case: most lines need only this check.
_SIGNS = (
    *PREFIXES.values(),
    *("whsec_", "bearer", "basic", "://", "input_value="),
    *_NAMES.replace("_?", "_").split("|"),
    "apikey",
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def redact(text: str) -> str:
    """Replace text that looks like a secret."""
    lower = text.lower()
    if any(sign in lower for sign in _SIGNS):
        for pattern, replacement in _SECRETS:
            text = pattern.sub(replacement, text)
    return text


class _Text(logging.Formatter):
    """``time level logger: message  call_sid=...``."""

    def format(self, record: logging.LogRecord) -> str:
        message = _one_line(record.getMessage())
        line = f"{_moment(record)} {record.levelname:<7} {record.name}: {message}"
        for name, value in _context(record).items():
            line += f"  {name}={value}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return redact(line)


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


class _PeersFaults(logging.Filter):
    """Logs malformed HTTP requests, the peer's fault, as one INFO line instead of a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            record.msg, record.args = "unreadable HTTP: %s", (type(error).__name__,)
            record.levelno, record.levelname = logging.INFO, "INFO"
            record.exc_info = None
        return True


def configure_logging(log_format: str, level: str, stream: TextIO | None = None) -> None:
    """Send all logs of the process to `stream` (stderr by default)."""
    handler = NonBlockingHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
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


def dropped_lines() -> int:
    """Number of log lines lost because nobody read them."""
    handlers = [
        handler for handler in logging.getLogger().handlers if isinstance(handler, NonBlockingHandler)
    ]
    return sum(handler.writer.dropped for handler in handlers if handler.writer is not None)


def _one_line(text: str) -> str:
    """Escape control characters, so that a peer's text can neither forge lines nor control a terminal."""
    return text if text.isprintable() else _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def _context(record: logging.LogRecord) -> dict[str, str]:
    given = record.__dict__
    # A Call-ID is text from a peer.
    return {name: _one_line(str(given[name])) for name in CONTEXT if given.get(name) is not None}


def _moment(record: logging.LogRecord) -> str:
    second, rest = divmod(record.created, 1)
    return f"{_second(int(second))}.{int(rest * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
