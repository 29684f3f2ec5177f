"""What is added to log lines before they are written, and how many of one kind there may be."""

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
    Lets so many lines of one kind through in a second, then says how many were left out.

    Lines are of one kind when they come from one place of the program, whatever call or peer they name: a
    flood fills neither the disk nor the time of the process, and hides no line of another kind.
    """

    def __init__(self, per_second: int = LINES_PER_SECOND) -> None:
        super().__init__()
        self._per_second = per_second
        self._second = 0
        self._counts: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is among those that may be written."""
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
                _log.warning("%d more lines of %s were left out: %s", left_out, name, text[:_SHOWN])


class CallNamer(logging.Filter):
    """Gives lines that know a SIP dialog alone the ``call_sid`` of its call, by ``find``."""

    def __init__(self, find: Callable[[str], str | None]) -> None:
        super().__init__()
        self._find = find

    def filter(self, record: logging.LogRecord) -> bool:
        """Name the call; every line passes."""
        call_id = getattr(record, "call_id", None)
        if call_id is not None and getattr(record, "call_sid", None) is None:
            record.call_sid = self._find(call_id)
        return True


def naming_calls(find: Callable[[str], str | None]) -> Callable[[], None]:
    """Have all lines from now on name their calls; returns what ends that."""
    namer, handlers = CallNamer(find), list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(namer)

    def end() -> None:
        for handler in handlers:
            handler.removeFilter(namer)

    return end
