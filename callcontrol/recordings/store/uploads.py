"""SQL of uploads to the object store."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.calls.records.store import calls as call_rows
from callcontrol.database.statements import insert_into, pack, unpack
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.messages import messages
from callcontrol.database.tables.recordings import recording_removals, recording_uploads
from callcontrol.models import CallRecord
from callcontrol.recordings.uploads import Upload

_INSERT: Final = insert_into(recording_uploads, ignore_conflict=True)
_INSERT_REMOVAL: Final = insert_into(recording_removals, ignore_conflict=True)


def insert(connection: Connection, uploads: Sequence[Upload]) -> None:
    """Insert uploads; existing ones stay unchanged."""
    _INSERT.many(
        connection,
        [
            {
                "sid": upload.sid,
                "call_sid": upload.call_sid,
                "node": upload.node,
                "object": upload.object,
                "details": pack(dict(upload.details)),
            }
            for upload in uploads
        ],
    )


def of_node(connection: Connection, node: str) -> list[Upload]:
    """Uploads of a node."""
    rows = connection.execute(sa.select(recording_uploads).where(recording_uploads.c.node == node))
    return [Upload(row.sid, row.call_sid, row.node, row.object, unpack(row.details)) for row in rows]


def move(connection: Connection, node: str, to: str) -> None:
    """Hand the uploads of a node to another, which sees its files."""
    table = recording_uploads
    connection.execute(sa.update(table).where(table.c.node == node).values(node=to))


def forget(connection: Connection, sid: str) -> None:
    """Delete an upload whose file is gone."""
    connection.execute(sa.delete(recording_uploads).where(recording_uploads.c.sid == sid))


def settle(
    connection: Connection, upload: Upload, path: str, publish: Callable[[Connection, CallRecord], None]
) -> Literal["stored", "removed"]:
    """
    Write the uploaded object to its call or message, and publish its event with ``publish``.

    If the recording was removed in the meantime, its object is marked for removal instead. A second time
    nothing is done.
    """
    table = recording_uploads
    is_due = connection.execute(sa.delete(table).where(table.c.sid == upload.sid)).rowcount
    if not is_due:
        if _object_of(connection, upload) == upload.object:
            return "stored"
        _INSERT_REMOVAL.many(
            connection,
            [{"call_sid": upload.sid, "node": upload.node, "path": path, "object": upload.object}],
        )
        return "removed"
    if upload.is_message:
        connection.execute(
            sa.update(messages)
            .where(messages.c.message_sid == upload.sid, messages.c.path.is_not(None))
            .values(path=upload.object)
        )
    else:
        connection.execute(
            sa.update(calls)
            .where(calls.c.call_sid == upload.sid, calls.c.recording_path.is_not(None))
            .values(recording_path=upload.object)
        )
    record = call_rows.get(connection, upload.call_sid)
    if record is not None:
        publish(connection, record)
        numbered = sa.update(calls).where(calls.c.call_sid == upload.call_sid)
        connection.execute(numbered.values(sequence=record.sequence))
    return "stored"


def _object_of(connection: Connection, upload: Upload) -> str | None:
    path = sa.select(calls.c.recording_path).where(calls.c.call_sid == upload.sid)
    if upload.is_message:
        path = sa.select(messages.c.path).where(messages.c.message_sid == upload.sid)
    found: str | None = connection.scalar(path)
    return found
