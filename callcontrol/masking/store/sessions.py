"""Masking sessions and their mappings."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.listing import Condition, Listing
from callcontrol.database.rows import ValueTable
from callcontrol.database.rows import count as count_rows
from callcontrol.database.statements import to_micros
from callcontrol.database.tables.masking_sessions import mappings, sessions
from callcontrol.masking.sessions import MaskingSession, SessionCounts, SessionFilter

LISTING: Final = Listing(sessions.c.created_at, sessions.c.session_id)

_SESSIONS: Final = ValueTable(sessions, MaskingSession, columns={"call_time_limit_s": "call_time_limit_sec"})
_LIVE: Final = mappings.c.ended_at.is_(None)
_BOTH: Final = mappings.join(sessions, sessions.c.session_id == mappings.c.session_id)


def insert(connection: Connection, session: MaskingSession) -> None:
    """Write a new session with its mappings."""
    _SESSIONS.insert(connection, session)
    connection.execute(
        sa.insert(mappings),
        [
            {
                "session_id": session.session_id,
                "account_sid": session.account_sid,
                "caller_number": caller,
                "masked_number": session.masked_number,
                "target_number": target,
                "ended_at": None,
            }
            for caller, target in session.mappings
        ],
    )


def get(
    connection: Connection, account_sid: str, session_id: str, *, lock: bool = False
) -> MaskingSession | None:
    """A session of the account; ``lock`` blocks other writers until the transaction ends."""
    mine = (sessions.c.session_id == session_id, sessions.c.account_sid == account_sid)
    return _SESSIONS.first(connection, *mine, lock=lock)


def update(connection: Connection, session: MaskingSession) -> None:
    """Write the changed fields of a session."""
    _SESSIONS.update(connection, session)


def end(
    connection: Connection, session: MaskingSession, how: Literal["closed", "expired"], now: datetime
) -> MaskingSession:
    """End a session: its number is free for its parties again."""
    ended = replace(session, ended=how, ended_at=now, updated_at=now)
    update(connection, ended)
    _end_mappings(connection, [session.session_id], now)
    return ended


def find(
    connection: Connection, account_sid: str, caller_number: str, masked_number: str, now: datetime
) -> MaskingSession | None:
    """The active session that routes a caller of a masked number; None when there is none."""
    row = connection.execute(
        sa.select(sessions)
        .select_from(_BOTH)
        .where(
            mappings.c.account_sid == account_sid,
            mappings.c.caller_number == caller_number,
            mappings.c.masked_number == masked_number,
            _LIVE,
            sessions.c.expires_at > to_micros(now),
        )
    ).first()
    return None if row is None else _SESSIONS.value_of(connection, row)


def taken(connection: Connection, account_sid: str, parties: Collection[str], now: datetime) -> set[str]:
    """The masked numbers on which one of these parties has a mapping; expired sessions are ended first."""
    rows = connection.execute(
        sa.select(mappings.c.session_id, mappings.c.masked_number, sessions.c.expires_at)
        .select_from(_BOTH)
        .where(mappings.c.account_sid == account_sid, mappings.c.caller_number.in_(parties), _LIVE)
    ).all()
    expired = {row.session_id for row in rows if row.expires_at <= to_micros(now)}
    if expired:
        _expire(connection, list(expired), now)
    return {row.masked_number for row in rows if row.session_id not in expired}


def active_on(
    connection: Connection, account_sid: str, masked_number: str, now: datetime
) -> list[MaskingSession]:
    """The active sessions of a masked number."""
    mine = (sessions.c.account_sid == account_sid, sessions.c.masked_number == masked_number)
    return _SESSIONS.all(connection, *mine, *_active(now))


def expire_due(connection: Connection, now: datetime, limit: int) -> int:
    """End sessions past their expiry, oldest expiry first; return their number."""
    rows = connection.execute(
        sa.select(sessions.c.session_id)
        .where(sessions.c.ended.is_(None), sessions.c.expires_at <= to_micros(now))
        .order_by(sessions.c.expires_at)
        .limit(limit)
    )
    due = list(rows.scalars())
    _expire(connection, due, now)
    return len(due)


def conditions(account_sid: str, query: SessionFilter, now: datetime) -> Sequence[Condition]:
    """The conditions of a list of sessions."""
    wanted = _unchanging(account_sid, query)
    past = sessions.c.expires_at <= to_micros(now)
    match query.status:
        case "active":
            wanted += [sessions.c.ended.is_(None), sa.not_(past)]
        case "expired":
            wanted.append(sa.or_(sessions.c.ended == "expired", sa.and_(sessions.c.ended.is_(None), past)))
        case "closed":
            wanted.append(sessions.c.ended == "closed")
    return wanted


def count(connection: Connection, account_sid: str, query: SessionFilter, now: datetime) -> int:
    """Number of sessions of a list; expired ones are in two indexes, by whether the expiry was recorded."""
    if query.status != "expired":
        return LISTING.count(connection, conditions(account_sid, query, now))
    rest = _unchanging(account_sid, query)
    noted = LISTING.count(connection, [*rest, sessions.c.ended == "expired"])
    past = sessions.c.expires_at <= to_micros(now)
    return noted + LISTING.count(connection, [*rest, sessions.c.ended.is_(None), past])


def _unchanging(account_sid: str, query: SessionFilter) -> list[Condition]:
    """The conditions of a filter that do not change during the life of a session."""
    if query.party is None:
        wanted: list[Condition] = [sessions.c.account_sid == account_sid]
    else:
        own = sa.select(mappings.c.session_id).where(
            mappings.c.account_sid == account_sid, mappings.c.caller_number == query.party
        )
        # The account is wrapped: a party has few sessions, and a planner must not read all those of the
        # account.
        wanted = [sa.func.coalesce(sessions.c.account_sid, "") == account_sid, sessions.c.session_id.in_(own)]
    if query.masked_number is not None:
        wanted.append(sessions.c.masked_number == query.masked_number)
    return wanted


def by_ids(connection: Connection, session_ids: Sequence[str]) -> list[MaskingSession]:
    """The sessions with these identifiers, in their order."""
    return _SESSIONS.by_keys(connection, session_ids)


def counts(
    connection: Connection, account_sid: str, start: datetime, end: datetime, now: datetime
) -> SessionCounts:
    """Number of sessions created from ``start`` on and before ``end``, and of those active now."""
    made = (
        sessions.c.account_sid == account_sid,
        sessions.c.created_at >= to_micros(start),
        sessions.c.created_at < to_micros(end),
    )
    total = count_rows(connection, sessions, *made)
    active = count_rows(connection, sessions, *made, *_active(now))
    return SessionCounts(total, active, mappings=2 * total)  # one for each of its parties


def _active(now: datetime) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return sessions.c.ended.is_(None), sessions.c.expires_at > to_micros(now)


def _expire(connection: Connection, session_ids: Sequence[str], now: datetime) -> None:
    if not session_ids:
        return
    connection.execute(
        sa.update(sessions)
        .where(sessions.c.session_id.in_(session_ids), sessions.c.ended.is_(None))
        # It ended when it expired, not when that was recorded.
        .values(ended="expired", ended_at=sessions.c.expires_at)
    )
    _end_mappings(connection, session_ids, now)


def _end_mappings(connection: Connection, session_ids: Sequence[str], now: datetime) -> None:
    connection.execute(
        sa.update(mappings)
        .where(mappings.c.session_id.in_(session_ids), _LIVE)
        .values(ended_at=to_micros(now))
    )
