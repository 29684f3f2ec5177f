"""Reconnect schedule of a broken stream: a part of ``callcontrol.calls.steps.agent_stream``."""

from typing import Final

OFFSETS_S: Final = (0.25, 1.0, 2.0, 3.0, 4.0)
"""Start of each attempt, in seconds after the break (streaming 1.6)."""

BUDGET_S: Final = 5.0
"""Limit for reconnecting an agent while the party waits, in seconds."""

SETTLED_S: Final = 10.0
"""Connection time after which earlier attempts no longer count, in seconds."""


class ReconnectSchedule:
    """Counts reconnect attempts; ``allowed`` attempts for each break."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._broken_at_s = 0.0
        self._live_since_s = 0.0
        self._begun = 0
        self.attempt = 0
        """Number of the present attempt, from 1; not reset by a connection shorter than ``SETTLED_S``."""

    def live(self, now_s: float) -> None:
        """Note that the agent is connected."""
        self._live_since_s = now_s

    def may_begin(self, now_s: float) -> bool:
        """True when a connection that breaks now may be reopened."""
        return (0 if self._settled(now_s) else self.attempt) < self._allowed

    def _settled(self, now_s: float) -> bool:
        return now_s - self._live_since_s >= SETTLED_S

    def broken(self, now_s: float) -> None:
        """Note that the connection broke."""
        self._broken_at_s = now_s
        self._begun = 0
        if self._settled(now_s):
            self.attempt = 0

    def delay_s(self, now_s: float) -> float | None:
        """Return the delay before the next attempt, in seconds; None when no attempt is left."""
        if self.attempt >= self._allowed or self._begun >= len(OFFSETS_S):
            return None
        delay_s = max(0.0, self._broken_at_s + OFFSETS_S[self._begun] - now_s)
        return delay_s if now_s + delay_s < self._broken_at_s + BUDGET_S else None

    def begin(self, now_s: float) -> float:
        """Begin an attempt; return its time limit in seconds."""
        self._begun += 1
        self.attempt += 1
        return max(0.1, self._broken_at_s + BUDGET_S - now_s)
