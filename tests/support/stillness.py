"""Whether the machine stood still: what has to happen in real time says nothing of the product then."""

from __future__ import annotations

import threading
import time
from types import TracebackType

__all__ = ["Watch"]

_TICK_S = 0.01


class Watch:
    """
    Looks at the clock while a block runs; `longest_s` is how long the process was kept from running at most.

    What the process itself did is no standstill: a call that holds the interpreter, a collection or a
    megabyte of JSON, makes the look late too, but it uses the time.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="stillness", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        last_s, last_used_s = time.monotonic(), time.process_time()
        while not self._over.wait(_TICK_S):
            now_s, used_s = time.monotonic(), time.process_time()
            late_s = now_s - last_s - _TICK_S
            if used_s - last_used_s < late_s / 2:
                self.longest_s = max(self.longest_s, late_s)
            last_s, last_used_s = now_s, used_s
