"""Timer values of RFC 3261; no clock, no I/O."""

from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True, slots=True)
class Timers:
    """
    The timer values of one user agent, in seconds.

    Source: RFC 3261 table 4, RFC 6026 8.
    """

    t1_s: float = 0.5
    t2_s: float = 4.0
    t4_s: float = 5.0
    trying_s: float = 0.2
    """Delay before an unanswered INVITE gets a 100 (RFC 3261 17.2.1)."""
    completed_invite_s: float = 32.0
    """Timer D over UDP: period in which repetitions of a final response are acknowledged."""

    timeout_s: float = field(init=False)
    """Timeout of every transaction, 64*T1: timers B, F, H, J, L and M."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "timeout_s", 64 * self.t1_s)


class Repetition:
    """Delays before the repetitions of a response: T1, doubling up to `longest_s`, 64*T1 in all."""

    def __init__(self, timers: Timers, longest_s: float = inf) -> None:
        self.delay_s = timers.t1_s
        self._left_s = timers.timeout_s - timers.t1_s
        self._longest_s = longest_s

    def next(self) -> tuple[float, bool]:
        """Return the wait after this repetition, and True when it was the last one."""
        self.delay_s = min(2 * self.delay_s, self._longest_s)
        if self.delay_s >= self._left_s:
            return self._left_s, True
        self._left_s -= self.delay_s
        return self.delay_s, False
