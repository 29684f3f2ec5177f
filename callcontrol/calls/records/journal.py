"""
Journal of recent calls: events, steps, streams and webhooks of each call with their times, and quality and
levels of its legs over time, for troubleshooting.

It is kept in memory like the SIP trace, for recent calls only.
"""

import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from callcontrol.calls.records.quality import LegHistory
from callcontrol.ids import CallSid
from sip.values import frozen

MAX_CALLS: Final = 500
"""Calls whose entries are kept."""
MAX_ENTRIES: Final = 200
"""Entries that are kept of a call; later ones are dropped, and counted."""

MAX_MARKS: Final = 60
"""Entries of kind mark among them: an agent may send one with each piece of its audio."""

MAX_BODIES_BYTES: Final = 65_536
"""Memory for the bodies of webhooks of a call, those of the first ones: 32 MiB for all calls."""

MAX_LEVELS: Final = 600
"""Levels that are kept of a leg, the newest."""

EntryKind = Literal["event", "step", "mark", "webhook"]
"""
Kind of an entry: an event as webhooks report it, something that the call does, a mark of its agent, or the
answer to a webhook that the call has asked.
"""


@frozen
class HookBodies:
    """
    Bodies of a request and its answer, without secrets.

    `answer` is the beginning of `answer_bytes` bytes; it is None if they are no text.
    """

    request: str = field(repr=False)
    answer: str | None = field(repr=False)
    answer_bytes: int
    is_whole: bool

    @property
    def size_bytes(self) -> int:
        """Memory of both: one odd character makes each of a text four bytes long."""
        return sys.getsizeof(self.request) + sys.getsizeof(self.answer)


@frozen
class JournalEntry:
    """
    One entry: its time, its name (``call.answered``, ``play``), and what belongs to it.

    `bodies` are those of a webhook, while there was room for them.
    """

    at: datetime
    kind: EntryKind
    name: str
    details: Mapping[str, Any]
    bodies: HookBodies | None = None


_Noted = tuple[float, EntryKind, str, Mapping[str, Any], HookBodies | None]
"""An entry as it is kept: each call makes some, and few are looked at. The time is in seconds since 1970."""


class CallJournal:
    """
    Entries of recent calls, bounded in calls and in entries of each, of which some may be marks.

    Attributes:
        watcher: Called with the call of each new entry, while somebody watches calls.
    """

    def __init__(self, max_calls: int = MAX_CALLS, max_entries: int = MAX_ENTRIES) -> None:
        self.watcher: Callable[[CallSid], None] | None = None
        self._max_calls = max_calls
        self._max_entries = max_entries
        self._calls: OrderedDict[CallSid, list[_Noted]] = OrderedDict()
        self._dropped: dict[CallSid, int] = {}
        self._marks: dict[CallSid, int] = {}
        self._bodies_bytes: dict[CallSid, int] = {}
        self._histories: dict[CallSid, Sequence[LegHistory]] = {}
        self._levels: dict[CallSid, dict[str, array[float]]] = {}

    def __len__(self) -> int:
        """Number of calls whose entries are kept."""
        return len(self._calls)

    def note(
        self,
        call_sid: CallSid,
        at_s: float,
        kind: EntryKind,
        name: str,
        details: Mapping[str, Any],
        bodies: HookBodies | None = None,
    ) -> None:
        """Add an entry of a call, at a time in seconds since 1970."""
        entries = self._calls.get(call_sid)
        if entries is None:
            entries = self._calls[call_sid] = []
            if len(self._calls) > self._max_calls:
                oldest, _ = self._calls.popitem(last=False)
                self._dropped.pop(oldest, None)
                self._marks.pop(oldest, None)
                self._bodies_bytes.pop(oldest, None)
                self._histories.pop(oldest, None)
                self._levels.pop(oldest, None)
        if len(entries) < self._max_entries and (kind != "mark" or self._has_room_for_mark(call_sid)):
            if bodies is not None:
                bodies = self._with_room(call_sid, bodies)
            entries.append((at_s, kind, name, details, bodies))
        else:
            self._dropped[call_sid] = self._dropped.get(call_sid, 0) + 1
        if self.watcher is not None:
            self.watcher(call_sid)

    def _has_room_for_mark(self, call_sid: CallSid) -> bool:
        marks = self._marks[call_sid] = self._marks.get(call_sid, 0) + 1
        return marks <= MAX_MARKS

    def _with_room(self, call_sid: CallSid, bodies: HookBodies) -> HookBodies | None:
        size_bytes = self._bodies_bytes.get(call_sid, 0) + bodies.size_bytes
        if size_bytes > MAX_BODIES_BYTES:
            return None
        self._bodies_bytes[call_sid] = size_bytes
        return bodies

    def keep_quality(self, call_sid: CallSid, histories: Sequence[LegHistory]) -> None:
        """Keep the quality of the legs of a call that has ended, as long as its entries."""
        if histories and call_sid in self._calls:
            self._histories[call_sid] = histories

    def quality_of(self, call_sid: CallSid) -> Sequence[LegHistory]:
        """Quality of the legs of a call that has ended; empty when it is no longer kept."""
        return self._histories.get(call_sid, ())

    def note_level(
        self, call_sid: CallSid, leg: str, at_s: float, received_dbfs: float, sent_dbfs: float
    ) -> None:
        """Keep the levels of both directions of a leg, at a time in seconds since 1970."""
        if call_sid not in self._calls:
            return
        line = self._levels.setdefault(call_sid, {}).setdefault(leg, array("d"))
        line.extend((at_s, received_dbfs, sent_dbfs))
        del line[: -3 * MAX_LEVELS]

    def levels_of(self, call_sid: CallSid) -> Mapping[str, Sequence[tuple[float, float, float]]]:
        """Time, received and sent level of each leg while somebody looked; empty when nobody did."""
        lines = self._levels.get(call_sid, {})
        return {leg: list(zip(line[::3], line[1::3], line[2::3], strict=True)) for leg, line in lines.items()}

    def of(self, call_sid: CallSid) -> list[JournalEntry]:
        """Entries of a call in order; empty when they are no longer kept."""
        return [
            JournalEntry(datetime.fromtimestamp(at_s, UTC), kind, name, details, bodies)
            for at_s, kind, name, details, bodies in self._calls.get(call_sid, ())
        ]

    def dropped(self, call_sid: CallSid) -> int:
        """Number of entries of a call that were beyond the limit."""
        return self._dropped.get(call_sid, 0)
