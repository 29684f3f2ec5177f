"""Standstills of the machine, in which results in real time say nothing of the product."""

from __future__ import annotations

import time

from tests.support.background import Background

__all__ = ["Watch", "standstill_s", "tries"]

_TICK_S = 0.01
_TRIES = 3
# Where audio is heard and timers run against another program.
_REAL_TIME = {"acceptance", "integration", "interop", "sipp"}
_DURABLE = {"store", "webhooks"}


def tries(folder: str, below: str, *, durable: bool) -> int:
    """
    Return the number of tries of a test while the machine stands still, by its path below ``tests``.

    What is lost or done twice after a kill is so on any machine: ``durable`` tests have one try.
    """
    return _TRIES if folder in _REAL_TIME and below not in _DURABLE and not durable else 1


def standstill_s(late_s: float, used_s: float) -> float:
    """
    Return the time that the machine held up a late check, from the CPU time that the process used meanwhile.

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
