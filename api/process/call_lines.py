"""Log lines of recent calls, kept in memory for the operator's page of the server."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from api.process.logs import readable_line

__all__ = ["MAX_LINES", "CallLines"]

MAX_LINES: Final = 200
"""Lines that are kept of a call; later ones are dropped, and counted."""

_MAX_CALLS: Final = 500
_MAX_CHARS: Final = 4_000_000
_MAX_LINE_CHARS: Final = 1000


class CallLines(logging.Handler):
    """
    Handler that keeps the lines which name a call, bounded in calls, in lines of each and in characters.

    The oldest call gives way. ``find`` returns the call of a SIP Call-ID, for lines that have only that.
    """

    def __init__(
        self,
        find: Callable[[str], str | None],
        *,
        max_calls: int = _MAX_CALLS,
        max_chars: int = _MAX_CHARS,
    ) -> None:
        super().__init__()
        self._find = find
        self._max_calls = max_calls
        self._max_chars = max_chars
        self._chars = 0
        self._calls: OrderedDict[str, list[str]] = OrderedDict()
        self._dropped: dict[str, int] = {}

    def attach(self) -> Callable[[], None]:
        """Keep lines of the process from now on; return a function that ends it."""
        root = logging.getLogger()
        root.addHandler(self)
        return lambda: root.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, if it names a call."""
        named = getattr(record, "call_sid", None)
        if named is None and (call_id := getattr(record, "call_id", None)) is not None:
            named = self._find(call_id)
        if named is None:
            return
        call_sid = str(named)
        lines = self._calls.get(call_sid)
        if lines is not None and len(lines) >= MAX_LINES:
            # A flood costs no formatting.
            self._dropped[call_sid] = self._dropped.get(call_sid, 0) + 1
            return
        try:
            self._keep(call_sid, readable_line(record)[:_MAX_LINE_CHARS])
        except Exception:
            # As in every handler of the standard library: a line that cannot be formatted raises nothing.
            self.handleError(record)

    def of(self, call_sid: str) -> Sequence[str]:
        """Lines of a call in order; empty when they are no longer kept."""
        return tuple(self._calls.get(call_sid, ()))

    def dropped(self, call_sid: str) -> int:
        """Number of lines of a call that were beyond the limit."""
        return self._dropped.get(call_sid, 0)

    def _keep(self, call_sid: str, line: str) -> None:
        self._calls.setdefault(call_sid, []).append(line)
        self._chars += len(line)
        while len(self._calls) > self._max_calls or (self._chars > self._max_chars and len(self._calls) > 1):
            oldest, gone = self._calls.popitem(last=False)
            self._dropped.pop(oldest, None)
            self._chars -= sum(map(len, gone))
