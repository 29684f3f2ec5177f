"""Transcripts of calls with voice agents: how much of one is kept, and how its segments are numbered."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from callcontrol.models import CallRecord, TranscriptSegment

__all__ = ["MAX_SEGMENTS", "MAX_TEXT", "bounded", "count_segment", "segments_of"]

MAX_SEGMENTS: Final = 10_000
"""What is said after that many segments of a call is not kept."""

MAX_TEXT: Final = 4000
"""Characters of a segment that are kept."""

MAX_CHARACTERS: Final = 500_000
"""Characters of all segments of a call that are kept, twice what can be said in four hours."""

_COUNT: Final = "segments"
_CHARACTERS: Final = "segment_characters"


def segments_of(record: CallRecord) -> int:
    """How many segments the transcript of a call has."""
    details: Mapping[str, Any] = record.details or {}
    return int(details.get(_COUNT, 0))


def count_segment(record: CallRecord, segment: TranscriptSegment) -> int | None:
    """
    The number of a call's next segment, None when the transcript is too full for it.

    The record counts them, so that whoever has it, in this process or a later one, knows whether
    anything was said.
    """
    details: Mapping[str, Any] = record.details or {}
    number = segments_of(record)
    characters = int(details.get(_CHARACTERS, 0)) + len(segment.text)
    if number >= MAX_SEGMENTS or characters > MAX_CHARACTERS:
        return None
    record.details = {**details, _COUNT: number + 1, _CHARACTERS: characters}
    return number


def bounded(segment: TranscriptSegment) -> TranscriptSegment:
    """A segment as it is kept: its text cut where it is too long, its times those of a call."""
    start_ms = max(0, segment.start_ms)
    end_ms = None if segment.end_ms is None else max(start_ms, segment.end_ms)
    return replace(segment, text=segment.text[:MAX_TEXT], start_ms=start_ms, end_ms=end_ms)
