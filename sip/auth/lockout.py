"""Who has given too many wrong passwords for one user name, from whatever address it has a right to call."""

from collections import OrderedDict

__all__ = ["Lockout"]

MAX_FAILURES = 20
MEMORY_S = 600.0
LOCK_S = 300.0
MAX_ENTRIES = 20_000


class Lockout:
    """
    Wrong passwords by source and user name; no clock, bounded memory.

    It holds for sources that are otherwise trusted, too: a gateway of one carrier has no more right than
    anybody to guess the password of another. A right password for one name says nothing of the others.
    """

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def holds(self, source: str, username: str, now_s: float) -> bool:
        """Whether no password of a source for a user name is believed any more, right or wrong."""
        count, at_s = self._failures.get((source, username), (0, 0.0))
        return count >= MAX_FAILURES and now_s - at_s < LOCK_S

    def note(self, source: str, username: str, now_s: float, *, right: bool) -> None:
        """Take note of a password that was looked at."""
        key = source, username
        count, at_s = self._failures.pop(key, (0, 0.0))
        if right:
            return
        self._failures[key] = (count + 1 if now_s - at_s < MEMORY_S else 1, now_s)
        if len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)
