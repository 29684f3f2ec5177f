"""DTMF digits sent to the parties of a call in RTP."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from callcontrol.calls.aio.media.leg import LegMedia
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import DigitsSent
from callcontrol.ids import LegId
from media.errors import MediaError

_SHORTEST_DIGIT_MS: Final = 40  # Q.24: receivers accept digits of 40 ms, and the engine sends no shorter ones
_GAP_MS: Final = 80  # after a relayed digit


class LegDigits:
    """Sends digits in RTP, as telephone events or as tones. ``post`` receives their end."""

    def __init__(self, legs: Mapping[LegId, LegMedia], post: Callable[[Event], None]) -> None:
        self._legs = legs
        self._post = post
        self._waiting: dict[LegId, deque[bool]] = {}
        """Per leg, for each string of digits in progress, in order: True when the API asked for it."""

    def send(self, leg: LegId, digits: str, duration_ms: int, gap_ms: int, *, by_api: bool = False) -> None:
        """Send digits, none too short to be recognised; ``DigitsSent`` follows."""
        media = self._legs.get(leg)
        if media is None:
            return
        try:
            media.stream.send_dtmf(digits, max(duration_ms, _SHORTEST_DIGIT_MS), gap_ms)
        except MediaError as error:
            self._post(DigitsSent(leg, digits, str(error), by_api))
        else:
            self._waiting.setdefault(leg, deque()).append(by_api)

    def sent(self, leg: LegId, digits: str) -> None:
        """Report that the oldest digits of a leg are sent: they leave in the order of the requests."""
        waiting = self._waiting.get(leg)
        self._post(DigitsSent(leg, digits, by_api=waiting.popleft() if waiting else False))

    def relay(self, leg: LegId, digit: str, duration_ms: int) -> None:
        """
        Forward a digit that came in the RTP of the linked leg, unless the engine has.

        Only legs linked through this process need it. A tone passes there with the other audio.
        """
        media = self._legs.get(leg)
        if media is None or not media.by_taps or media.other is None:
            return
        if media.policy.dtmf_type == media.other.policy.dtmf_type == "tones":
            return
        self.send(leg, digit, duration_ms, _GAP_MS)


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
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._send_digit = send_digit
        self._post = post
        self._spawn = spawn
        self._turns: dict[LegId, asyncio.Lock] = {}
        self._waiting = 0

    def send(self, leg: LegId, digits: str, duration_ms: int, gap_ms: int, *, by_api: bool = False) -> None:
        """Send digits; ``w`` waits 500 ms and ``W`` one second. ``DigitsSent`` follows."""
        if self._waiting >= _MAX_WAITING:
            self._post(DigitsSent(leg, digits, "too many digits are waiting", by_api))
            return
        self._waiting += 1
        self._spawn(self._send(leg, digits, duration_ms, gap_ms, by_api))

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
