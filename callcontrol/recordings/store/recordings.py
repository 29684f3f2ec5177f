"""SQL of recordings: expired ones, files marked for removal, and the owner of a file."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.listing import Condition, Listing
from callcontrol.database.statements import (
    insert_into,
    to_micros,
    to_micros_or_none,
    to_moment,
    to_moment_or_none,
)
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.messages import messages
from callcontrol.database.tables.recordings import recording_removals, recording_uploads
from callcontrol.models import Position
from callcontrol.recordings.objects import is_object
from callcontrol.recordings.retention import FOR_EVER, KeptRecording, Place

_DAY_MICROS: Final = timedelta(days=1) // timedelta(microseconds=1)
_FILES: Final = sa.select(calls.c.call_sid, calls.c.node, calls.c.recording_path.label("path"))
_LISTING: Final = Listing(calls.c.ended_at, calls.c.call_sid)
_INSERT_REMOVAL: Final = insert_into(recording_removals, ignore_conflict=True)


@dataclass(frozen=True, slots=True)
class Removal:
    """
    File marked for removal, and the node that wrote it.

    ``path`` is the URL of an object if it was uploaded; ``object`` is that of an upload that may have begun.
    """

    call_sid: str
    node: str
    path: str
    object: str | None = None

    @property
    def file(self) -> str | None:
        """Path of the file; None if it was uploaded."""
        return None if is_object(self.path) else self.path

    @property
    def stored(self) -> str | None:
        """URL of the object; None if there is none."""
        return self.path if is_object(self.path) else self.object


def due(connection: Connection, now: datetime, default_days: int) -> list[tuple[str, datetime]]:
    """Accounts with expired recordings or messages, each with the cutoff time."""
    days = sa.func.coalesce(accounts.c.recording_retention_days, default_days)
    before = to_micros(now) - days * _DAY_MICROS
    old = sa.exists().where(
        calls.c.account_sid == accounts.c.account_sid,
        calls.c.recording_path.is_not(None),
        calls.c.ended_at < before,
    )
    left = sa.exists().where(
        messages.c.account_sid == accounts.c.account_sid,
        messages.c.path.is_not(None),
        messages.c.created_at < before,
    )
    rows = connection.execute(
        sa.select(accounts.c.account_sid, before.label("before")).where(days != FOR_EVER, sa.or_(old, left))
    )
    return [(row.account_sid, to_moment(row.before)) for row in rows]


def count(connection: Connection, account_sid: str, start: datetime | None, end: datetime | None) -> int:
    """Count the recordings of an account's calls that ended from ``start`` on, before ``end``."""
    return _LISTING.count(connection, _recorded(account_sid, start, end))


def page(
    connection: Connection,
    account_sid: str,
    start: datetime | None,
    end: datetime | None,
    *,
    offset: int,
    limit: int,
    total: int,
    after: Position | None,
) -> list[Position]:
    """Calls with a recording, the last to end first; with ``after`` those behind it, for any offset."""
    conditions = _recorded(account_sid, start, end)
    if after is not None:
        return _LISTING.after(connection, conditions, after, limit=limit)
    return _LISTING.page(connection, conditions, offset=offset, limit=limit, total=total)


def _recorded(account_sid: str, start: datetime | None, end: datetime | None) -> list[Condition]:
    recorded: list[Condition] = [
        calls.c.account_sid == account_sid,
        calls.c.recording_path.is_not(None),
        calls.c.ended_at.is_not(None),
    ]
    return recorded + _LISTING.between(to_micros_or_none(start), to_micros_or_none(end))


def discard_older(connection: Connection, account_sid: str, before: datetime, limit: int) -> int:
    """Mark recordings of calls that ended before a time for removal, up to ``limit``; returns the count."""
    return _discard(
        connection,
        _FILES.where(
            calls.c.account_sid == account_sid,
            calls.c.recording_path.is_not(None),
            calls.c.ended_at < to_micros(before),
        )
        .order_by(calls.c.ended_at, calls.c.call_sid)
        .limit(limit),
    )


def discard(connection: Connection, call_sid: str) -> int:
    """Mark the recording of an ended call for removal; returns 1, or 0 if it has none."""
    return _discard(
        connection,
        _FILES.where(
            calls.c.call_sid == call_sid, calls.c.recording_path.is_not(None), calls.c.ended_at.is_not(None)
        ),
    )


def _discard(connection: Connection, chosen: sa.Select[Any]) -> int:
    cleared = {"recording_url": None, "recording_path": None, "recording_status": "deleted"}
    return mark_removed(connection, chosen, calls.c.call_sid, cleared)


def mark_removed(
    connection: Connection,
    chosen: sa.Select[Any],
    sid: sa.Column[str],
    cleared: Mapping[str, Any],
) -> int:
    """
    Mark files for removal and write ``cleared`` to their rows; returns their number.

    ``chosen`` selects ``call_sid``, ``node`` and ``path`` of each; a message has its own SID in ``call_sid``.
    """
    rows = connection.execute(chosen).all()
    if rows:
        sids = [row.call_sid for row in rows]
        begun = _end_uploads(connection, sids)
        marks = [{**row._mapping, "object": begun.get(row.call_sid)} for row in rows]
        _INSERT_REMOVAL.many(connection, marks)
        connection.execute(sa.update(sid.table).where(sid.in_(sids)).values(cleared))
    return len(rows)


def _end_uploads(connection: Connection, sids: Sequence[str]) -> Mapping[str, str]:
    """Delete the uploads of recordings that are removed; returns the object of each."""
    table = recording_uploads
    chosen = table.c.sid.in_(sids)
    rows = connection.execute(sa.select(table.c.sid, table.c.object).where(chosen)).all()
    if rows:
        connection.execute(sa.delete(table).where(chosen))
    return {row.sid: row.object for row in rows}


def removals(connection: Connection, node: str, after: str, limit: int) -> list[Removal]:
    """Files of a node, and objects of all, that are marked for removal, after the SID ``after``."""
    table = recording_removals
    rows = connection.execute(
        sa.select(table)
        .where(sa.or_(table.c.node == node, table.c.path.like("s3://%")), table.c.call_sid > after)
        .order_by(table.c.call_sid)
        .limit(limit)
    )
    return [Removal(row.call_sid, row.node, row.path, row.object) for row in rows]


def removal(connection: Connection, call_sid: str) -> Removal | None:
    """File of a call or message marked for removal, or None."""
    row = connection.execute(
        sa.select(recording_removals).where(recording_removals.c.call_sid == call_sid)
    ).first()
    return Removal(row.call_sid, row.node, row.path, row.object) if row is not None else None


def removed(connection: Connection, call_sids: Collection[str]) -> None:
    """Clear the removal marks of deleted files."""
    connection.execute(sa.delete(recording_removals).where(recording_removals.c.call_sid.in_(call_sids)))


def place_of(path: str | None) -> Place:
    """Place of a recording by the path in its row."""
    if path is None:
        return "nowhere"
    return "store" if is_object(path) else "disk"


def kept(connection: Connection, call_sids: Sequence[str]) -> Mapping[str, KeptRecording]:
    """State of the calls among these SIDs, by SID."""
    rows = connection.execute(
        sa.select(calls.c.call_sid, calls.c.ended_at, calls.c.recording_status, calls.c.recording_path).where(
            calls.c.call_sid.in_(call_sids)
        )
    )
    return {
        row.call_sid: KeptRecording(
            to_moment_or_none(row.ended_at), row.recording_status, place_of(row.recording_path)
        )
        for row in rows
    }
