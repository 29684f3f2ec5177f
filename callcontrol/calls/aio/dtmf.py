"""Telephone digits that are sent to the parties of a call in RTP."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from callcontrol.calls.aio.media.leg import LegMedia
from callcontrol.calls.events import DigitsSent, Event
from callcontrol.ids import LegId
from media.errors import MediaError

_SHORTEST_DIGIT_MS: Final = 40  # Q.24: receivers take digits of 40 ms, and the engine sends no shorter ones
_GAP_MS: Final = 80  # after a digit that is sent anew


class LegDigits:
    """Sends digits in RTP, as telephone events or as tones. ``post`` hears when they are out."""

    def __init__(self, legs: Mapping[LegId, LegMedia], post: Callable[[Event], None]) -> None:
        self._legs = legs
        self._post = post
        self._waiting: dict[LegId, deque[bool]] = {}
        """For each text of digits on its way, in order: whether the API asked for it."""

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
        """Report that the oldest digits of a leg are out: they leave in the order they were asked for."""
        waiting = self._waiting.get(leg)
        self._post(DigitsSent(leg, digits, by_api=waiting.popleft() if waiting else False))

    def relay(self, leg: LegId, digit: str, duration_ms: int) -> None:
        """
        Send on a digit that came in the RTP of the leg linked with this one, unless the engine has.

        Only legs joined through this process need it. A tone passes there with the other audio.
        """
        media = self._legs.get(leg)
        if media is None or not media.by_taps or media.other is None:
            return
        if media.policy.dtmf_type == media.other.policy.dtmf_type == "tones":
            return
        self.send(leg, digit, duration_ms, _GAP_MS)
