"""SQL of recordings: expired ones, files marked for removal, and the owner of a file."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import insert_into, to_micros, to_moment, to_moment_or_none
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.messages import messages
from callcontrol.database.tables.recordings import recording_removals
from callcontrol.recordings.retention import FOR_EVER, KeptRecording

_DAY_MICROS: Final = timedelta(days=1) // timedelta(microseconds=1)
_FILES: Final = sa.select(calls.c.call_sid, calls.c.node, calls.c.recording_path.label("path"))
_INSERT_REMOVAL: Final = insert_into(recording_removals, ignore_conflict=True)


@dataclass(frozen=True, slots=True)
class Removal:
    """File marked for removal, and the node that wrote it."""

    call_sid: str
    node: str
    path: str


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
        _INSERT_REMOVAL.many(connection, [dict(row._mapping) for row in rows])
        sids = [row.call_sid for row in rows]
        connection.execute(sa.update(sid.table).where(sid.in_(sids)).values(cleared))
    return len(rows)


def removals(connection: Connection, node: str, after: str, limit: int) -> list[Removal]:
    """Files of a node marked for removal, after the SID ``after``."""
    rows = connection.execute(
        sa.select(recording_removals)
        .where(recording_removals.c.node == node, recording_removals.c.call_sid > after)
        .order_by(recording_removals.c.call_sid)
        .limit(limit)
    )
    return [Removal(row.call_sid, row.node, row.path) for row in rows]


def removal(connection: Connection, call_sid: str) -> Removal | None:
    """File of a call or message marked for removal, or None."""
    row = connection.execute(
        sa.select(recording_removals).where(recording_removals.c.call_sid == call_sid)
    ).first()
    return Removal(row.call_sid, row.node, row.path) if row is not None else None


def removed(connection: Connection, call_sids: Collection[str]) -> None:
    """Clear the removal marks of deleted files."""
    connection.execute(sa.delete(recording_removals).where(recording_removals.c.call_sid.in_(call_sids)))


def kept(connection: Connection, call_sids: Sequence[str]) -> Mapping[str, KeptRecording]:
    """State of the calls among these SIDs, by SID."""
    rows = connection.execute(
        sa.select(calls.c.call_sid, calls.c.ended_at, calls.c.recording_status, calls.c.recording_path).where(
            calls.c.call_sid.in_(call_sids)
        )
    )
    return {
        row.call_sid: KeptRecording(
            to_moment_or_none(row.ended_at), row.recording_status, row.recording_path is not None
        )
        for row in rows
    }
