"""Storage of transcripts."""

from callcontrol.agents.transcripts import (
    MAX_CHARACTERS,
    MAX_SEGMENTS,
    MAX_TEXT,
    bounded,
    count_segment,
    segments_of,
)
from callcontrol.models import TranscriptSegment
from tests.support.domain import make_record

HELLO = TranscriptSegment("agent", "hello", 10)


def test_a_call_numbers_its_segments_and_keeps_its_other_details() -> None:
    record = make_record()
    record.details = {"agent_id": "a"}
    assert [count_segment(record, HELLO) for _ in range(3)] == [0, 1, 2]
    assert segments_of(record) == 3
    assert record.details["agent_id"] == "a"


def test_a_full_transcript_takes_no_more() -> None:
    record = make_record()
    record.details = {"segments": MAX_SEGMENTS - 1}
    assert count_segment(record, HELLO) == MAX_SEGMENTS - 1
    assert count_segment(record, HELLO) is None
    assert segments_of(record) == MAX_SEGMENTS


def test_a_transcript_of_long_segments_is_full_sooner() -> None:
    record = make_record()
    long = TranscriptSegment("user", "x" * MAX_TEXT, 0)
    taken = [count_segment(record, long) for _ in range(MAX_SEGMENTS)]
    assert taken[: MAX_CHARACTERS // MAX_TEXT] == list(range(MAX_CHARACTERS // MAX_TEXT))
    assert set(taken[MAX_CHARACTERS // MAX_TEXT :]) == {None}


def test_a_segment_is_bounded() -> None:
    kept = bounded(TranscriptSegment("user", "x" * (MAX_TEXT + 1), -5, -7))
    assert (len(kept.text), kept.start_ms, kept.end_ms) == (MAX_TEXT, 0, 0)
    assert bounded(TranscriptSegment("agent", "hello", 10)) == TranscriptSegment("agent", "hello", 10)


def test_what_parties_say_is_numbered_with_the_conversation_but_is_none() -> None:
    record = make_record()
    said = TranscriptSegment("a", "hello", 10)
    assert [count_segment(record, segment) for segment in (said, HELLO, said)] == [0, 1, 2]
    assert segments_of(record) == 1
