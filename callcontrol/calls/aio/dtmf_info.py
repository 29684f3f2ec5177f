"""DTMF digits in INFO requests, for trunks that accept none in RTP."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from callcontrol.calls.events import DigitsSent, Event
from callcontrol.ids import LegId

_PAUSES_S: Final = {"w": 0.5, "W": 1.0}
_MAX_WAITING: Final = 64


class InfoDigits:
    """
    Sends digits one after the other, each with the duration of a key press.

    ``send_digit`` sends one INFO. Later digits wait for earlier ones of the same leg; requests beyond
    ``_MAX_WAITING`` are dropped.
    """

    def __init__(
        self,
        send_digit: Callable[[LegId, str, int], None],
        post: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._send_digit = send_digit
        self._post = post
        self._spawn = spawn
        self._turns: dict[LegId, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = 0

    def send(self, leg: LegId, digits: str, duration_ms: int, gap_ms: int, *, by_api: bool = False) -> None:
        """Send digits; ``w`` waits 500 ms and ``W`` one second. ``DigitsSent`` follows."""
        if self._waiting >= _MAX_WAITING:
            self._post(DigitsSent(leg, digits, "too many digits are waiting", by_api))
            return
        self._waiting += 1
        task = self._spawn(self._send(leg, digits, duration_ms, gap_ms, by_api))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Cancel all digits: the call is over, and the remaining pauses would only delay its end."""
        for task in list(self._tasks):
            task.cancel()

    async def _send(self, leg: LegId, digits: str, duration_ms: int, gap_ms: int, by_api: bool) -> None:
        try:
            async with self._turns.setdefault(leg, asyncio.Lock()):
                for digit in digits:
                    pause_s = _PAUSES_S.get(digit)
                    if pause_s is None:
                        self._send_digit(leg, digit.upper(), duration_ms)
                        pause_s = (duration_ms + gap_ms) / 1000.0
                    await asyncio.sleep(pause_s)
        finally:
            self._waiting -= 1
        self._post(DigitsSent(leg, digits, by_api=by_api))
