"""A clock that stands still until a test moves it."""

import heapq
from collections.abc import Callable
from itertools import count


class VirtualHandle:
    """One scheduled call."""

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """Has what the code under test uses of an event loop: `time`, `call_at`, `call_soon`, `call_later`."""

    def __init__(self, start_s: float = 1000.0) -> None:
        self._now = start_s
        self._queue: list[tuple[float, int, VirtualHandle]] = []
        self._order = count()

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> VirtualHandle:
        handle = VirtualHandle(callback, args)
        heapq.heappush(self._queue, (max(when, self._now), next(self._order), handle))
        return handle

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> VirtualHandle:
        return self.call_at(self._now + delay_s, callback, *args)

    def call_soon(self, callback: Callable[..., object], *args: object) -> VirtualHandle:
        return self.call_at(self._now, callback, *args)

    def advance(self, seconds: float = 0.0) -> None:
        """Move on, making every call on its way at its own time."""
        end = self._now + seconds
        while self._queue and self._queue[0][0] <= end:
            when, _, handle = heapq.heappop(self._queue)
            if not handle.cancelled:
                self._now = max(self._now, when)
                handle.callback(*handle.args)
        self._now = end

    @property
    def scheduled(self) -> int:
        return sum(not handle.cancelled for _, _, handle in self._queue)
