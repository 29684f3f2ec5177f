"""The marks of an agent that wait for the audio before them."""

from __future__ import annotations

from collections import Counter, deque

__all__ = ["PendingMarks"]

_MAX_PENDING_MARKS = 1000


class PendingMarks:
    """
    Counts marks, and remembers which of them were taken back while their audio stays.

    The playout queue knows nothing of marks that were taken back by themselves: it reports them when their
    audio is through, and then nobody is to be told.
    """

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._taken_back: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        """Whether there is no room for another."""
        return len(self._waiting) + self._taken_back.total() >= _MAX_PENDING_MARKS

    def add(self, name: str) -> None:
        """Note a mark behind all others."""
        self._waiting.append(name)

    def reached(self, name: str) -> bool:
        """Note that the queue reported a mark; whether the agent is to be told."""
        if self._taken_back[name] > 0:
            # Marks are reported in order, and those that were taken back came first.
            self._taken_back[name] -= 1
            return False
        if self._waiting and self._waiting[0] == name:
            self._waiting.popleft()
        elif name in self._waiting:
            self._waiting.remove(name)
        return True

    def take_back(self, prefix: str) -> list[str]:
        """Forget the marks whose names begin so; these are to be told as cleared at once."""
        gone = [name for name in self._waiting if name.startswith(prefix)]
        self._waiting = deque(name for name in self._waiting if not name.startswith(prefix))
        self._taken_back.update(gone)
        return gone
