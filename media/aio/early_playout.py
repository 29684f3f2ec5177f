"""Audio and marks of an agent: buffered before the answer, pending until they are played."""

from __future__ import annotations

from collections import Counter, deque

from media.aio.tap import AgentTap
from media.streams import AgentMark

_MAX_PENDING_MARKS = 1000


class EarlyPlayout:
    """Buffers audio and marks in order until the call is answered."""

    def __init__(self, max_bytes: int) -> None:
        self._items: list[bytearray | AgentMark] = []
        self._bytes = 0
        self._max_bytes = max_bytes

    @property
    def queued_bytes(self) -> int:
        """Bytes of audio that are buffered."""
        return self._bytes

    def audio(self, audio: bytes) -> bool:
        """Buffer audio; False if there is no room and it is dropped."""
        if self._bytes + len(audio) > self._max_bytes:
            return False
        if audio:
            # In one buffer: a list of many small ones would take many times their size.
            if self._items and isinstance(self._items[-1], bytearray):
                self._items[-1] += audio
            else:
                self._items.append(bytearray(audio))
            self._bytes += len(audio)
        return True

    def mark(self, mark: AgentMark) -> None:
        """Buffer a mark after the audio so far; the caller bounds their number."""
        self._items.append(mark)

    def clear(self) -> list[AgentMark]:
        """Drop everything and return the waiting marks."""
        marks = [item for item in self._items if isinstance(item, AgentMark)]
        self._items.clear()
        self._bytes = 0
        return marks

    def play(self, tap: AgentTap) -> None:
        """Write everything to a tap."""
        for item in self._items:
            if isinstance(item, AgentMark):
                tap.mark(item.name)
            else:
                tap.write(bytes(item))
        self.clear()


class PendingMarks:
    """
    Pending marks, and those that were cleared while their audio stays.

    The playout queue does not know marks that were cleared without their audio: it reports them when the
    audio was played, and then the agent must not be notified.
    """

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._taken_back: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        """True if there is no room for another mark."""
        return len(self._waiting) + self._taken_back.total() >= _MAX_PENDING_MARKS

    def add(self, name: str) -> None:
        """Append a mark."""
        self._waiting.append(name)

    def reached(self, name: str) -> bool:
        """Record a mark that the queue reported; True if the agent is to be notified."""
        if self._taken_back[name] > 0:
            # Marks are reported in order, and cleared ones came first.
            self._taken_back[name] -= 1
            return False
        if self._waiting and self._waiting[0] == name:
            self._waiting.popleft()
        elif name in self._waiting:
            self._waiting.remove(name)
        return True

    def take_back(self, prefix: str) -> list[str]:
        """Clear the marks with a name prefix; returns them, to be reported as cleared at once."""
        gone = [name for name in self._waiting if name.startswith(prefix)]
        self._waiting = deque(name for name in self._waiting if not name.startswith(prefix))
        self._taken_back.update(gone)
        return gone
