"""Lockout of a source after too many wrong passwords for one user name, trusted sources included."""

from collections import OrderedDict

__all__ = ["Lockout"]

MAX_FAILURES = 20
MEMORY_S = 600.0
LOCK_S = 300.0
MAX_ENTRIES = 20_000


class Lockout:
    """
    Counts wrong passwords by source and user name; no clock, bounded memory.

    Trusted sources are locked out too: the gateway of one carrier must not guess the password of another.
    A correct password clears the count of its own user name only.
    """

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def holds(self, source: str, username: str, now_s: float) -> bool:
        """True while every password of a source for a user name is refused, right or wrong."""
        count, at_s = self._failures.get((source, username), (0, 0.0))
        return count >= MAX_FAILURES and now_s - at_s < LOCK_S

    def note(self, source: str, username: str, now_s: float, *, right: bool) -> None:
        """Record the result of a password check."""
        key = source, username
        count, at_s = self._failures.pop(key, (0, 0.0))
        if right:
            return
        self._failures[key] = (count + 1 if now_s - at_s < MEMORY_S else 1, now_s)
        if len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)
