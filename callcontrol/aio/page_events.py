"""Events for one open web page (server-sent events)."""

import asyncio
from collections import deque


class PageEvents:
    """
    Events for one page, in order.

    At most ``kept`` wait for a page that reads too slowly. One more replaces all of them by ``overflow``, or
    the oldest of them where that is None.

    Attributes:
        doubted: True once it was asked if the page is still admitted; who answers sets it to False.
    """

    def __init__(self, kept: int, overflow: bytes | None = None) -> None:
        self._events: deque[bytes] = deque(maxlen=kept)
        self._overflow = overflow
        self._ready = asyncio.Event()
        self._over = False
        self.doubted = False

    @property
    def waiting(self) -> bool:
        """True while events wait to be read."""
        return bool(self._events)

    def put(self, event: bytes) -> None:
        """Queue an event."""
        if self._overflow is not None and len(self._events) == self._events.maxlen:
            self._events.clear()
            event = self._overflow
        self._events.append(event)
        self._ready.set()

    def doubt(self) -> None:
        """Ask at once if the page is still admitted."""
        self.doubted = True
        self._ready.set()

    def end(self) -> None:
        """End the events; those that wait are lost."""
        self._over = True
        self._ready.set()

    async def next(self, timeout_s: float) -> bytes | None:
        """Wait for events and return all of them; empty after the time or in doubt, None at the end."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            return b""
        if self._over:
            return None
        self._ready.clear()
        found = b"".join(self._events)
        self._events.clear()
        return found
