"""Transcripts of calls, and of conversations with voice agents: limits, and numbering of segments."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from callcontrol.models import CallRecord, TranscriptSegment

MAX_SEGMENTS: Final = 10_000
"""Segments that are kept of a call; later ones are dropped."""

MAX_TEXT: Final = 4000
"""Characters of a segment that are kept."""

MAX_CHARACTERS: Final = 500_000
"""Characters of all segments of a call that are kept, twice what can be said in four hours."""

_COUNT: Final = "segments"
_CHARACTERS: Final = "segment_characters"
_PARTIES: Final = "party_segments"

AGENT_ROLES: Final = frozenset({"agent", "user"})
PARTY_ROLES: Final = frozenset({"a", "b"})
"""Roles of a conversation with an agent; others are parties of a call that is transcribed."""


def segments_of(record: CallRecord) -> int:
    """Number of segments in the conversation of a call with an agent."""
    details: Mapping[str, Any] = record.details or {}
    return int(details.get(_COUNT, 0)) - int(details.get(_PARTIES, 0))


def count_segment(record: CallRecord, segment: TranscriptSegment) -> int | None:
    """
    The number of a call's next segment, None when the transcript is full.

    The record counts them, so that any process that has the record knows if the transcript is empty.
    """
    details: Mapping[str, Any] = record.details or {}
    number = int(details.get(_COUNT, 0))
    characters = int(details.get(_CHARACTERS, 0)) + len(segment.text)
    if number >= MAX_SEGMENTS or characters > MAX_CHARACTERS:
        return None
    parties = int(details.get(_PARTIES, 0)) + (segment.role in PARTY_ROLES)
    counted = {_COUNT: number + 1, _CHARACTERS: characters, **({_PARTIES: parties} if parties else {})}
    record.details = {**details, **counted}
    return number


def bounded(segment: TranscriptSegment) -> TranscriptSegment:
    """A segment within the limits: its text cut to length, its times not negative and in order."""
    start_ms = max(0, segment.start_ms)
    end_ms = None if segment.end_ms is None else max(start_ms, segment.end_ms)
    return replace(segment, text=segment.text[:MAX_TEXT], start_ms=start_ms, end_ms=end_ms)
