"""Whether the machine stood still: what has to happen in real time says nothing of the product then."""

from __future__ import annotations

import threading
import time
from types import TracebackType

__all__ = ["Watch"]

_TICK_S = 0.01


class Watch:
    """Looks at the clock while a block runs; `longest_s` is how long nothing of this process ran at most."""

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
        last_s = time.monotonic()
        while not self._over.wait(_TICK_S):
            now_s = time.monotonic()
            self.longest_s = max(self.longest_s, now_s - last_s - _TICK_S)
            last_s = now_s
