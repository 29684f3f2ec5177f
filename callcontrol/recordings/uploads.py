"""Order of uploads to the object store: each when its call is over, and again after failures. No clock."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

FIRST_RETRY_S: Final = 1.0
LAST_RETRY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Upload:
    """
    Recording of a call, or a message left on it, whose file is to be uploaded.

    ``sid`` is that of the call or the message. ``details`` are those of its ``call.recording.ready``.
    """

    sid: str
    call_sid: str
    node: str
    object: str
    details: Mapping[str, Any]

    @property
    def is_message(self) -> bool:
        """True for a message."""
        return self.sid != self.call_sid


@dataclass(slots=True)
class _Waiting:
    upload: Upload
    failures: int = 0
    due_s: float = 0.0


@dataclass(slots=True)
class UploadSchedule:
    """Uploads of this process that are not done; ``len`` counts them."""

    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _of_calls: dict[str, list[str]] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    # Entries of uploads that are done, or due at another time, are skipped.
    _due: list[tuple[float, int, str]] = field(default_factory=list)
    _order: "count[int]" = field(default_factory=count)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, sid: str) -> bool:
        return sid in self._waiting

    @property
    def untried(self) -> int:
        """Number of uploads that have not failed since the store last worked."""
        return len(self._waiting) - len(self._failed)

    def hold(self, upload: Upload) -> None:
        """Add an upload that waits for the end of its call, whose record changes until then."""
        if upload.sid not in self._waiting:
            self._waiting[upload.sid] = _Waiting(upload)
            self._of_calls.setdefault(upload.call_sid, []).append(upload.sid)

    def call_over(self, call_sid: str, now_s: float) -> bool:
        """Make the uploads of a call due; returns True if there are any."""
        held = self._of_calls.pop(call_sid, [])
        for sid in held:
            self._set_due(sid, now_s)
        return bool(held)

    def take(self, now_s: float, limit: int) -> list[Upload]:
        """Start up to ``limit`` uploads that are due."""
        taken: list[Upload] = []
        while len(taken) < limit and (sid := self._next()) is not None and self._due[0][0] <= now_s:
            heapq.heappop(self._due)
            self._running.add(sid)
            taken.append(self._waiting[sid].upload)
        return taken

    def next_s(self) -> float | None:
        """Time at which the next upload is due; None without any."""
        return None if self._next() is None else self._due[0][0]

    def failed(self, sid: str, now_s: float) -> float:
        """Repeat an upload later; returns the delay in seconds."""
        self._running.discard(sid)
        waiting = self._waiting.get(sid)
        if waiting is None:
            return 0.0
        delay_s = min(FIRST_RETRY_S * float(2**waiting.failures), LAST_RETRY_S)
        waiting.failures = min(waiting.failures + 1, 16)
        self._failed.add(sid)
        self._set_due(sid, now_s + delay_s)
        return delay_s

    def done(self, sid: str, now_s: float) -> None:
        """Forget an upload. The store works, so those that have failed are due again."""
        self.drop(sid)
        for other in self._failed:
            self._waiting[other].failures = 0
            self._set_due(other, now_s)
        self._failed.clear()

    def drop(self, sid: str) -> None:
        """Forget an upload."""
        self._running.discard(sid)
        self._failed.discard(sid)
        self._waiting.pop(sid, None)

    def _set_due(self, sid: str, due_s: float) -> None:
        if sid in self._waiting and sid not in self._running:
            self._waiting[sid].due_s = due_s
            heapq.heappush(self._due, (due_s, next(self._order), sid))

    def _next(self) -> str | None:
        """Next upload, which is the first entry then."""
        while self._due:
            due_s, _, sid = self._due[0]
            waiting = self._waiting.get(sid)
            if waiting is not None and waiting.due_s == due_s and sid not in self._running:
                return sid
            heapq.heappop(self._due)
        return None
