"""Marks of an agent that wait for the audio before them."""

from __future__ import annotations

from collections import Counter, deque

__all__ = ["PendingMarks"]

_MAX_PENDING_MARKS = 1000


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
