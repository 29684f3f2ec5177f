"""Events of `telephone-event` formats that both sides support (RFC 4733 2.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from media.sdp.formats import TELEPHONE_EVENTS
from media.sdp.model import MediaDescription

__all__ = ["DIGITS", "telephone_event"]

DIGITS: Final = "0-15"
"""Supported events: 0 to 9, *, #, A to D."""

_KNOWN = frozenset(range(16))


def telephone_event(media: MediaDescription, clock_rate: int) -> tuple[int, str] | None:
    """Return payload type and shared events of a section's telephone-event format with the codec's clock."""
    for entry in media.codecs():
        if TELEPHONE_EVENTS[clock_rate].is_meant_by(entry):
            # Without the parameter, events 0 to 15 apply (RFC 4733 2.4.1).
            events = _common_events(media.fmtp(entry.payload_type) or DIGITS)
            if events:
                return entry.payload_type, events
    return None


@lru_cache(maxsize=64)
def _common_events(text: str) -> str:
    """Narrow a list of events such as `0-11,66` to the supported digits; empty when none is left."""
    return _ranges(sorted(_KNOWN & _events(text)))


def _events(text: str) -> set[int]:
    """Parse a list of event numbers; malformed items are ignored (RFC 4733 2.4.1)."""
    events: set[int] = set()
    for item in text.removeprefix("events=").split(","):
        first, dash, last = item.strip().partition("-")
        last = last if dash else first
        if all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in (first, last)):
            events.update(range(int(first), min(int(last), 255) + 1))
    return events


def _ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers as ranges, `0-9,11`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
