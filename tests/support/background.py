"""Background thread that works while a block of a test runs."""

from __future__ import annotations

import faulthandler
import threading
from types import TracebackType
from typing import Self

__all__ = ["Background"]

_PATIENCE_S = 60.0


class Background:
    """
    Runs `work` in a thread from the beginning of a block to its end.

    Attributes:
        over: Set at the end of the block; `work` looks at it often, and returns.
    """

    def __init__(self) -> None:
        self.over = threading.Event()
        self._thread = threading.Thread(target=self.work, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self.open()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            # It looks at `over` often; only its stack says what holds it.
            faulthandler.dump_traceback(all_threads=True)
            raise RuntimeError(f"the thread {self._thread.name} does not end; the stacks are on stderr")
        self.close()

    def open(self) -> None:
        """Prepare the work, before the thread starts."""

    def work(self) -> None:
        """Run in the thread."""
        raise NotImplementedError

    def close(self) -> None:
        """Clean up once the thread has ended."""
