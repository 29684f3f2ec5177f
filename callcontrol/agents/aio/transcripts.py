"""
Transcripts: segments are handed over during their calls, and written asynchronously.

The store is attached to the writer before that of the calls: a transcript is durable before the end of its
call is, and so before any event says that it is ready.
"""

import logging
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from callcontrol.agents.store import transcripts
from callcontrol.agents.transcripts import AGENT_ROLES, PARTY_ROLES, bounded, count_segment
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.writer import Writer
from callcontrol.database.errors import is_transient
from callcontrol.models import CallRecord, TranscriptSegment

log = logging.getLogger(__name__)

Rows = list[dict[str, Any]]


class TranscriptStore:
    """Transcripts of calls. Attach it to one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._held: Rows = []
        self._taken: Rows = []
        self._careful = False
        writer.attach(self)

    def add(self, record: CallRecord, segment: TranscriptSegment) -> None:
        """Queue a segment for writing; segments beyond the limits of a transcript are dropped."""
        kept = bounded(segment)
        number = count_segment(record, kept)
        if number is not None:
            self._held.append(transcripts.row_of(record, number, kept))
            self._writer.schedule_flush(self)

    async def of_call(self, call_sid: str) -> Sequence[TranscriptSegment]:
        """All that was said on a call so far, in order: by agent and user, and by parties."""
        await self._writer.flush_pending()
        return await self._database.read(partial(transcripts.of_call, call_sid=call_sid))

    async def of_agent(self, call_sid: str) -> Sequence[TranscriptSegment]:
        """The conversation of a call with its agent so far."""
        return [segment for segment in await self.of_call(call_sid) if segment.role in AGENT_ROLES]

    async def of_parties(self, call_sid: str) -> Sequence[TranscriptSegment]:
        """The transcript of a call that is transcribed, so far."""
        return [segment for segment in await self.of_call(call_sid) if segment.role in PARTY_ROLES]

    async def delete_of_agent(self, call_sid: str) -> None:
        """Delete the conversation of a call that has ended with its agent, for ever."""
        await self._delete(call_sid, AGENT_ROLES)

    async def delete_of_parties(self, call_sid: str) -> None:
        """Delete the transcript of a call that has ended, for ever."""
        await self._delete(call_sid, PARTY_ROLES)

    async def _delete(self, call_sid: str, roles: Collection[str]) -> None:
        await self._writer.flush()
        await self._writer.commit(lambda connection: transcripts.delete(connection, call_sid, roles))

    # The writer calls these four when it assembles a transaction and when that has ended.

    def drain(self) -> Operation[None] | None:
        """An operation that writes all queued segments; None if there are none."""
        if not self._held:
            return None
        self._taken, self._held = self._held, []
        return partial(_write_each if self._careful else transcripts.insert, rows=self._taken)

    def written(self, result: None) -> None:
        """Drop the segments, which are durable now."""
        self._taken = []
        self._careful = False

    def restore(self) -> None:
        """Queue the segments again that ``take`` returned."""
        self._held, self._taken = self._taken + self._held, []

    def rejected(self, error: Exception) -> None:
        """Write each segment separately: one of them can never be stored, and the others should be."""
        # The error of a driver may show the values of its statement, which are the transcript.
        log.error("transcripts could not be written in one batch: %s", type(error).__name__)
        self._careful = True
        self.restore()
        self._writer.schedule_flush(self)


def _write_each(connection: Connection, rows: Rows) -> None:
    for row in rows:
        try:
            with connection.begin_nested():
                transcripts.insert(connection, [row])
        # One bad row must not affect its neighbours; only transient errors are retried.
        except Exception as error:
            if is_transient(error):
                raise
            lost = "segment %d of a transcript is lost: %s"
            log.error(lost, row["number"], type(error).__name__, extra={"call_sid": row["call_sid"]})
