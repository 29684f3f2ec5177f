"""When a stream whose connection broke is opened anew: a part of ``callcontrol.calls.steps.agent_stream``."""

from typing import Final

OFFSETS_S: Final = (0.25, 1.0, 2.0, 3.0, 4.0)
"""When each attempt may begin, from the break (streaming 1.6)."""

BUDGET_S: Final = 5.0
"""How long a party is kept waiting for its agent to come back."""

SETTLED_S: Final = 10.0
"""How long a connection has to last for the attempts before it to be forgotten."""


class StreamRetries:
    """Counts the attempts to bring an agent back, of which there are ``allowed`` for each break."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._broken_at_s = 0.0
        self._live_since_s = 0.0
        self._begun = 0
        self.attempt = 0
        """The number of the present attempt, from 1; it goes on counting where agents leave at once again."""

    def live(self, now_s: float) -> None:
        """The agent is there."""
        self._live_since_s = now_s

    def may_begin(self, now_s: float) -> bool:
        """Whether a connection that breaks now may be opened anew."""
        return (0 if self._settled(now_s) else self.attempt) < self._allowed

    def _settled(self, now_s: float) -> bool:
        return now_s - self._live_since_s >= SETTLED_S

    def broken(self, now_s: float) -> None:
        """The connection broke."""
        self._broken_at_s = now_s
        self._begun = 0
        if self._settled(now_s):
            self.attempt = 0

    def delay_s(self, now_s: float) -> float | None:
        """How long to wait before the next attempt; None when it is given up."""
        if self.attempt >= self._allowed or self._begun >= len(OFFSETS_S):
            return None
        delay_s = max(0.0, self._broken_at_s + OFFSETS_S[self._begun] - now_s)
        return delay_s if now_s + delay_s < self._broken_at_s + BUDGET_S else None

    def begin(self, now_s: float) -> float:
        """Begin an attempt; the seconds that it may take."""
        self._begun += 1
        self.attempt += 1
        return max(0.1, self._broken_at_s + BUDGET_S - now_s)
