"""SQL of voicemail messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import ValueTable
from callcontrol.database.statements import insert_into, to_micros, to_moment
from callcontrol.database.tables.messages import messages
from callcontrol.models import Message
from callcontrol.recordings.retention import KeptRecording
from callcontrol.recordings.store.recordings import mark_removed, place_of

_MESSAGES: Final = ValueTable(messages, Message, order=(messages.c.created_at, messages.c.message_sid))
_INSERT: Final = insert_into(messages, ignore_conflict=True)


def insert(connection: Connection, kept: Sequence[Message]) -> None:
    """Insert messages; existing ones stay unchanged."""
    _INSERT.many(connection, [_MESSAGES.row_of(connection, message) for message in kept])


def get(connection: Connection, message_sid: str) -> Message | None:
    """Get a message, or None."""
    return _MESSAGES.get(connection, message_sid)


def of_call(connection: Connection, call_sid: str) -> list[Message]:
    """List the messages of a call that have a file, oldest first."""
    return _MESSAGES.all(connection, messages.c.call_sid == call_sid, messages.c.path.is_not(None))


def discard(connection: Connection, message_sid: str) -> int:
    """Mark the file of a message for removal; returns 1, or 0 if it has none."""
    return _discard(connection, messages.c.message_sid == message_sid, limit=1)


def discard_older(connection: Connection, account_sid: str, before: datetime, limit: int) -> int:
    """Mark the files of messages left before a time for removal, up to ``limit``; returns their number."""
    old = sa.and_(messages.c.account_sid == account_sid, messages.c.created_at < to_micros(before))
    return _discard(connection, old, limit=limit)


def _discard(connection: Connection, chosen: sa.ColumnElement[bool], *, limit: int) -> int:
    files = sa.select(messages.c.message_sid.label("call_sid"), messages.c.node, messages.c.path)
    wanted = files.where(chosen, messages.c.path.is_not(None)).order_by(messages.c.created_at).limit(limit)
    return mark_removed(connection, wanted, messages.c.message_sid, {"path": None})


def kept(connection: Connection, message_sids: Sequence[str]) -> Mapping[str, KeptRecording]:
    """State of the messages among these SIDs, by SID."""
    rows = connection.execute(sa.select(messages).where(messages.c.message_sid.in_(message_sids)))
    return {
        row.message_sid: KeptRecording(
            to_moment(row.created_at), "completed" if row.path else "deleted", place_of(row.path)
        )
        for row in rows
    }
