"""What is kept of what was said on calls."""

from callcontrol.models import TranscriptSegment
from callcontrol.transcripts import MAX_SEGMENTS, MAX_TEXT, bounded, count_segment, segments_of
from tests.unit.callcontrol.test_call_parts import make_record


def test_a_call_numbers_its_segments_and_keeps_its_other_details() -> None:
    record = make_record()
    record.details = {"agent_id": "a"}
    assert [count_segment(record) for _ in range(3)] == [0, 1, 2]
    assert segments_of(record) == 3
    assert record.details["agent_id"] == "a"


def test_a_full_transcript_takes_no_more() -> None:
    record = make_record()
    record.details = {"segments": MAX_SEGMENTS - 1}
    assert count_segment(record) == MAX_SEGMENTS - 1
    assert count_segment(record) is None
    assert segments_of(record) == MAX_SEGMENTS


def test_a_segment_is_bounded() -> None:
    kept = bounded(TranscriptSegment("user", "x" * (MAX_TEXT + 1), -5, -7))
    assert (len(kept.text), kept.start_ms, kept.end_ms) == (MAX_TEXT, 0, 0)
    assert bounded(TranscriptSegment("agent", "hello", 10)) == TranscriptSegment("agent", "hello", 10)
