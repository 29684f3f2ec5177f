"""Segments of transcripts of calls: of conversations with voice agents, and of what parties say."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, clean, insert_into
from callcontrol.database.tables.assistant import transcript_segments
from callcontrol.models import CallRecord, TranscriptSegment

Row = Mapping[str, Any]

_INSERT: Final = insert_into(transcript_segments, ignore_conflict=True)
_OF_CALL: Final = Statement(
    sa.select(transcript_segments)
    .where(transcript_segments.c.call_sid == sa.bindparam("call_sid"))
    .order_by(transcript_segments.c.start_ms, transcript_segments.c.number)
)


def row_of(record: CallRecord, number: int, segment: TranscriptSegment) -> dict[str, Any]:
    """The row of the segment with this number in its call."""
    return {
        "call_sid": record.call_sid,
        "number": number,
        "account_sid": record.account_sid,
        "role": segment.role,
        "text": clean(segment.text),
        "start_ms": segment.start_ms,
        "end_ms": segment.end_ms,
    }


def insert(connection: Connection, rows: Sequence[Row]) -> None:
    """Write segments; an existing one stays as it is."""
    _INSERT.many(connection, rows)


def of_call(connection: Connection, call_sid: str) -> list[TranscriptSegment]:
    """The transcript of a call, ordered by start time."""
    return [
        TranscriptSegment(row["role"], row["text"], row["start_ms"], row["end_ms"])
        for row in _OF_CALL.all(connection, {"call_sid": call_sid})
    ]


def delete(connection: Connection, call_sid: str, roles: Collection[str]) -> int:
    """Delete the segments of these roles of a call; return their number."""
    return connection.execute(
        sa.delete(transcript_segments).where(
            transcript_segments.c.call_sid == call_sid, transcript_segments.c.role.in_(roles)
        )
    ).rowcount
