"""
Transcripts: segments are handed over while their calls are up, and written behind them.

The store is attached to the writer before that of the calls: what was said is durable before the end of its
call is, and so before anybody is told that the transcript is ready.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from callcontrol.agents.store import transcripts
from callcontrol.agents.transcripts import bounded, count_segment
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.writer import Writer
from callcontrol.database.errors import is_transient
from callcontrol.models import CallRecord, TranscriptSegment

__all__ = ["TranscriptStore"]

log = logging.getLogger(__name__)

Rows = list[dict[str, Any]]


class TranscriptStore:
    """What is said on calls; see ``interfaces.Transcripts``. Attach it to one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._held: Rows = []
        self._taken: Rows = []
        self._careful = False
        writer.attach(self)

    def add(self, record: CallRecord, segment: TranscriptSegment) -> None:
        """Have a segment written soon; one behind the last that is kept of a call is left out."""
        kept = bounded(segment)
        number = count_segment(record, kept)
        if number is not None:
            self._held.append(transcripts.row_of(record, number, kept))
            self._writer.touch()

    async def of_call(self, call_sid: str) -> Sequence[TranscriptSegment]:
        """All that was said on a call so far, in order."""
        await self._writer.catch_up()
        return await self._database.read(partial(_of_call, call_sid))

    async def delete(self, call_sid: str) -> None:
        """Delete what was said on a call that has ended, for ever."""
        await self._writer.flush()
        await self._writer.commit(lambda connection: transcripts.delete(connection, call_sid))

    # The writer asks these four when it puts a transaction together and when that has ended.

    def take(self) -> Operation[None] | None:
        """What writes all that is held now."""
        if not self._held:
            return None
        self._taken, self._held = self._held, []
        return partial(_write_each if self._careful else _write_all, self._taken)

    def written(self, result: None) -> None:
        """What was taken is durable."""
        self._taken = []
        self._careful = False

    def give_back(self) -> None:
        """Hold again what was taken."""
        self._held, self._taken = self._taken + self._held, []

    def refused(self, error: Exception) -> None:
        """Something in it cannot be stored, ever: write each segment apart, so that the others are."""
        # The error of a driver may show the values of its statement, and these are what was said.
        log.error("transcripts could not be written together: %s", type(error).__name__)
        self._careful = True
        self.give_back()
        self._writer.touch()


def _of_call(call_sid: str, connection: Connection) -> list[TranscriptSegment]:
    return transcripts.of_call(connection, call_sid)


def _write_all(rows: Rows, connection: Connection) -> None:
    transcripts.insert(connection, rows)


def _write_each(rows: Rows, connection: Connection) -> None:
    for row in rows:
        try:
            with connection.begin_nested():
                transcripts.insert(connection, [row])
        # Whatever is wrong with one row, its neighbours are to be kept; only what passes is tried again.
        except Exception as error:
            if is_transient(error):
                raise
            lost = "segment %d of a transcript is lost: %s"
            log.error(lost, row["number"], type(error).__name__, extra={"call_sid": row["call_sid"]})
