"""Timer values of RFC 3261 and one queue for all running timers of a transaction layer; no clock, no I/O."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from sip.values import constructed_natively


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


@constructed_natively
@dataclass(slots=True, eq=False)
class Timer:
    """One armed timer; its callback is None once it has fired or was disarmed."""

    due_s: float
    callback: Callable[[int], object] | None
    event: int


class TimerQueue:
    """
    All running timers, in one queue per delay.

    SIP uses few different delays, and timers of one delay expire in the order of arming. Arming and firing
    therefore take constant time, independent of the number of calls. A heap would cost its logarithm for
    tens of thousands of 32 s timers, nearly all of which expire unneeded. Empty queues are removed.
    """

    def __init__(self) -> None:
        self._lines: dict[float, deque[Timer]] = {}
        self._armed = 0

    def __len__(self) -> int:
        return self._armed

    def arm(self, now: float, delay_s: float, callback: Callable[[int], object], event: int) -> Timer:
        """Call `callback(event)` from `run` once `delay_s` has passed; `now` must never go back."""
        timer = Timer(now + delay_s, callback, event)
        line = self._lines.get(delay_s)
        if line is None:
            line = self._lines[delay_s] = deque()
        line.append(timer)
        self._armed += 1
        return timer

    def disarm(self, timer: Timer) -> None:
        """Cancel a timer; no-op when it has fired or was disarmed before."""
        if timer.callback is not None:
            timer.callback = None
            self._armed -= 1

    def next_due_s(self) -> float | None:
        """Return the time the next timer is due, None when none is armed."""
        earliest: float | None = None
        for delay_s, line in list(self._lines.items()):
            while line and line[0].callback is None:
                line.popleft()
            if not line:
                del self._lines[delay_s]
            elif earliest is None or line[0].due_s < earliest:
                earliest = line[0].due_s
        return earliest

    def run(self, now: float) -> float | None:
        """Fire every timer that is due at `now`, earliest first, and return when the next one is due."""
        due: list[Timer] = []
        for line in self._lines.values():
            while line and (line[0].callback is None or line[0].due_s <= now):
                timer = line.popleft()
                if timer.callback is not None:
                    due.append(timer)
        due.sort(key=lambda timer: timer.due_s)
        for timer in due:
            callback = timer.callback
            if callback is not None:  # An earlier timer of this round may have disarmed it.
                timer.callback = None
                self._armed -= 1
                callback(timer.event)
        return self.next_due_s()
