"""Logging filters: a rate limit per kind of line, and the call of a SIP dialog."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

__all__ = ["CallNamer", "LineLimit", "naming_calls"]

_log = logging.getLogger("api.process.logs")

LINES_PER_SECOND = 500
_SHOWN = 200


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
        self._counts: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return true if the line is within the limit."""
        if (second := int(record.created)) != self._second:
            self._begin(second)
        text = str(record.msg)
        if (call_sid := getattr(record, "call_sid", None)) is not None:
            text = text.replace(call_sid, "")
        kind = record.name, text
        self._counts[kind] += 1
        return self._counts[kind] <= self._per_second

    def _begin(self, second: int) -> None:
        counts, self._counts, self._second = self._counts, Counter(), second
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


def naming_calls(find: Callable[[str], str | None]) -> Callable[[], None]:
    """Add the call to all lines from now on; return a function that stops it."""
    namer, handlers = CallNamer(find), list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(namer)

    def end() -> None:
        for handler in handlers:
            handler.removeFilter(namer)

    return end
