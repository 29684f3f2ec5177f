"""
How many new calls to take while there is more to do than can be done.

Calls that are up are served whatever happens; what can be shed is the beginning of new ones, and refusing
one early costs a hundredth of what carrying it does. Measured is how long work waits before it is done: a
wait that stands means that more comes in than goes out, one that passes is only a burst.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

__all__ = ["CallShedder", "OverloadSettings", "Refusals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadSettings:
    """
    When new calls are refused, and how fast that ends.

    A wait of more than `wait_s` that lasts for `standing_s` lowers the share of new calls that are taken at
    every look, to a half at most, the more the longer the wait is; one of less than half raises it again, by
    a tenth of itself and `recovery` at least. While a share is refused, an INVITE that itself waited for
    `stale_s` is not taken, for its caller is about to repeat it, and no more than `refusals_per_s` are told
    so: other datagrams are dropped unread. To refuse costs a tenth of what a call costs, to drop a hundredth.
    Beyond `severe_s` the requests of strangers are not even read.
    """

    wait_s: float = 0.2
    standing_s: float = 0.4
    stale_s: float = 0.35
    severe_s: float = 1.5
    least_share: float = 0.02
    recovery: float = 0.02
    refusals_per_s: float = 200.0


class CallShedder:
    """Takes a share of the new calls, as large as the waiting time allows; no clock of its own."""

    def __init__(self, settings: OverloadSettings) -> None:
        self.share = 1.0
        """The part of new calls that is taken."""
        self.severe = False
        self._settings = settings
        self._waiting_since: float | None = None
        self._credit = 0.0
        self._looked_at = 0.0
        self._refusals = 0.0

    @property
    def pressed(self) -> bool:
        """Whether a part of the new calls is refused."""
        return self.share < 1.0

    def look(self, waited_s: float, now: float) -> None:
        """Take in how long the oldest piece of work had waited; to be called several times a second."""
        settings = self._settings
        passed_s, self._looked_at = min(now - self._looked_at, 1.0), now
        # What was not said in one interval is not said in the next: it would be a burst.
        self._refusals = settings.refusals_per_s * passed_s
        if waited_s <= settings.wait_s:
            self._waiting_since = None
            self.severe = self.severe and waited_s > settings.wait_s / 2
            if waited_s <= settings.wait_s / 2:
                self.share = min(1.0, self.share + max(settings.recovery, self.share / 10))
                self._credit = max(self._credit, 1.0)  # With so little to do one may come in at any rate.
            return
        if self._waiting_since is None:
            self._waiting_since = now
            return
        if now - self._waiting_since < settings.standing_s:
            return
        self.share = max(settings.least_share, self.share * min(0.9, max(0.5, settings.wait_s / waited_s)))
        self.severe = self.severe or waited_s > settings.severe_s

    def would_take(self, waited_s: float = 0.0) -> bool:
        """What `takes` is going to say."""
        if self.share >= 1.0:
            return True
        return waited_s <= self._settings.stale_s and self._credit + self.share >= 1.0

    def takes(self, waited_s: float = 0.0) -> bool:
        """Whether a new call that waited is taken: evenly spread, not by chance."""
        if self.share >= 1.0:
            return True  # What waited while the machine stood still is done as soon as it runs.
        if waited_s > self._settings.stale_s:
            return False
        self._credit += self.share
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True

    def may_refuse(self) -> bool:
        """Whether there is time to tell one more caller that it is refused."""
        if self._refusals < 1.0:
            return False
        self._refusals -= 1.0
        return True


class Refusals:
    """
    Requests that were refused without a transaction, so that a repetition is refused as well.

    Taking a repetition would make a call nobody waits for: its caller has the refusal by then.
    """

    def __init__(self, keep_s: float, limit: int = 4096) -> None:
        self._keep_s = keep_s
        self._limit = limit
        self._until: OrderedDict[Hashable, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def add(self, key: Hashable, now: float) -> None:
        """Remember a refused request by its transaction's key."""
        while self._until and (len(self._until) >= self._limit or next(iter(self._until.values())) <= now):
            self._until.popitem(last=False)
        self._until[key] = now + self._keep_s

    def holds(self, key: Hashable, now: float) -> bool:
        """Whether a request repeats one that was refused."""
        return bool(self._until) and self._until.get(key, now) > now
