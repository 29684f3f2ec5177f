"""Whether the machine stood still: what has to happen in real time says nothing of the product then."""

from __future__ import annotations

import time

from tests.support.background import Background

__all__ = ["Watch", "standstill_s", "tries"]

_TICK_S = 0.01
_TRIES = 3
# Where audio is heard and timers run against another program.
_REAL_TIME = {"integration", "interop", "sipp"}
_DURABLE = {"store", "webhooks"}


def tries(folder: str, below: str, *, durable: bool) -> int:
    """
    How often a test may run while the machine stands still, by where it is below ``tests``.

    What is lost or done twice after a kill is so on any machine: ``durable`` tests have one try.
    """
    return _TRIES if folder in _REAL_TIME and below not in _DURABLE and not durable else 1


def standstill_s(late_s: float, used_s: float) -> float:
    """
    How long the machine held up a look that came late, by what the process used of the processors meanwhile.

    What the process itself did is no standstill: a call that holds the interpreter, a collection or a
    megabyte of JSON, makes the look late too, but it uses the time.
    """
    return late_s if used_s < late_s / 2 else 0.0


class Watch(Background):
    """Looks at the clock while a block runs; `longest_s` is how long the machine stood still at most."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0

    def work(self) -> None:
        """Look at the clock every hundredth of a second."""
        last_s, last_used_s = time.monotonic(), time.process_time()
        while not self.over.wait(_TICK_S):
            now_s, used_s = time.monotonic(), time.process_time()
            still_s = standstill_s(now_s - last_s - _TICK_S, used_s - last_used_s)
            self.longest_s = max(self.longest_s, still_s)
            last_s, last_used_s = now_s, used_s
