"""
Overload control: sheds new calls while more work arrives than can be done.

Active calls are always served; only new calls are shed, since refusing one costs a tenth of carrying it. The
measure is how long work waits before it is done: a standing wait means that more comes in than goes out, a
passing one is only a burst.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadSettings:
    """
    Thresholds of refusing new calls, and the speed of recovery.

    A wait of more than `wait_s` that lasts for `standing_s` lowers the share of accepted calls at every
    `look`, by a tenth to a half, the more the longer the wait is. A wait of up to half of `wait_s` raises the
    share again, by a tenth of itself and at least `recovery`. While a share is refused, an INVITE that waited
    longer than `stale_s` is not accepted, because its caller is about to repeat it. At most `refusals_per_s`
    callers get a refusal; the INVITEs of others are dropped unread. A refusal costs a tenth of a call, a drop
    a hundredth. After a wait beyond `severe_s` no INVITE of an unknown source over UDP is read.
    """

    wait_s: float = 0.2
    standing_s: float = 0.4
    stale_s: float = 0.35
    severe_s: float = 1.5
    least_share: float = 0.02
    recovery: float = 0.02
    refusals_per_s: float = 200.0


class CallShedder:
    """Accepts a share of the new calls, sized by the waiting time; no clock of its own."""

    def __init__(self, settings: OverloadSettings) -> None:
        self.share = 1.0
        """Share of new calls that is accepted, from 0 to 1."""
        self.severe = False
        self._settings = settings
        self._waiting_since: float | None = None
        self._credit = 0.0
        self._looked_at = 0.0
        self._refusals = 0.0

    def look(self, waited_s: float, now: float) -> None:
        """Update the share by the wait of the oldest piece of work; call several times a second."""
        settings = self._settings
        passed_s, self._looked_at = min(now - self._looked_at, 1.0), now
        # Unused refusals do not carry over to the next interval: they would make a burst.
        self._refusals = settings.refusals_per_s * passed_s
        if waited_s <= settings.wait_s:
            self._waiting_since = None
            self.severe = self.severe and waited_s > settings.wait_s / 2
            if waited_s <= settings.wait_s / 2:
                self.share = min(1.0, self.share + max(settings.recovery, self.share / 10))
                self._credit = max(self._credit, 1.0)  # With so little to do one call is always accepted.
            return
        if self._waiting_since is None:
            self._waiting_since = now
            return
        if now - self._waiting_since < settings.standing_s:
            return
        self.share = max(settings.least_share, self.share * min(0.9, max(0.5, settings.wait_s / waited_s)))
        self.severe = self.severe or waited_s > settings.severe_s

    def would_accept(self, waited_s: float = 0.0) -> bool:
        """Return what the next `accepts` will return, without counting the call."""
        if self.share >= 1.0:
            return True
        return waited_s <= self._settings.stale_s and self._credit + self.share >= 1.0

    def accepts(self, waited_s: float = 0.0) -> bool:
        """Decide on a new call that waited, and count it; accepted calls are spread evenly, not at random."""
        if self.share >= 1.0:
            return True  # Work that waited while the machine stood still is done as soon as it runs.
        if waited_s > self._settings.stale_s:
            return False
        self._credit += self.share
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True

    def may_refuse(self) -> bool:
        """Use one of the refusals of this interval; False when none is left."""
        if self._refusals < 1.0:
            return False
        self._refusals -= 1.0
        return True
