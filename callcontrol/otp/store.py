"""Storage of spoken one-time passwords."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.calls.records.store import calls as call_rows
from callcontrol.database.rows import ValueTable, count
from callcontrol.database.statements import Statement, clean, insert_into, to_micros, to_moment
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.otp import otps
from callcontrol.database.tables.wallet import wallets
from callcontrol.errors import DomainError
from callcontrol.models import CallStatus
from callcontrol.otp.otp import (
    MAX_ATTEMPTS,
    PER_DESTINATION,
    WINDOW,
    OtpCall,
    OtpFilter,
    OtpState,
    OtpStats,
    Verification,
    evaluate_guess,
)

_OTPS: Final = ValueTable(otps, OtpState, called="one-time password")
_BOTH: Final = otps.join(calls, calls.c.call_sid == otps.c.call_sid)
_INSERT: Final = insert_into(otps)
_ACCOUNT: Final[sa.BindParameter[str]] = sa.bindparam("account_sid")
_LOCK: Final = Statement(
    sa.select(wallets.c.account_sid).where(wallets.c.account_sid == _ACCOUNT).with_for_update()
)
# The fifth latest call within the window.
_LIMITING: Final = Statement(
    sa.select(otps.c.created_at)
    .where(
        otps.c.account_sid == _ACCOUNT,
        otps.c.to_number == sa.bindparam("to_number"),
        otps.c.created_at > sa.bindparam("after", type_=sa.BigInteger),
    )
    .order_by(otps.c.created_at.desc())
    .limit(sa.literal_column("1"))
    .offset(sa.literal_column(str(PER_DESTINATION - 1)))
)
_NEWEST_FIRST: Final = (otps.c.created_at.desc(), otps.c.otp_id.desc())

get = _OTPS.owned


@dataclass(frozen=True, slots=True)
class NewOtp:
    """The row of a new password, without its digest."""

    otp_id: str
    account_sid: str
    to: str
    created_at: datetime
    expires_at: datetime
    reference: str | None


def insert(connection: Connection, otp: NewOtp, code_hash: str, call_sid: str) -> None:
    """Write a new password as its digest."""
    _INSERT.run(
        connection,
        {
            "otp_id": otp.otp_id,
            "account_sid": otp.account_sid,
            "call_sid": call_sid,
            "to_number": otp.to,
            "reference": clean(otp.reference),
            "code_hash": code_hash,
            "attempts": 0,
            "created_at": to_micros(otp.created_at),
            "expires_at": to_micros(otp.expires_at),
            "verified_at": None,
        },
    )


def delete(connection: Connection, otp_id: str) -> None:
    """Delete a row whose insert was abandoned."""
    connection.execute(sa.delete(otps).where(otps.c.otp_id == otp_id))


def limiting_call(connection: Connection, account_sid: str, to: str, now: datetime) -> datetime | None:
    """
    Time of the call that makes the window of a number full, None while the number may be called.

    The wallet of the account is locked first, so that only one process at a time counts and then inserts; a
    process that waited sees the inserts of the others.
    """
    _LOCK.first(connection, {"account_sid": account_sid})
    values = {"account_sid": account_sid, "to_number": to, "after": to_micros(now - WINDOW)}
    row = _LIMITING.first(connection, values)
    return to_moment(row["created_at"]) if row is not None else None


def verify(
    connection: Connection, account_sid: str, otp_id: str, matches: Callable[[bytes], bool], now: datetime
) -> Verification | DomainError:
    """Compare a guess with a password, and store the result; see ``evaluate_guess``."""
    try:
        state = _OTPS.owned(connection, account_sid, otp_id, lock=True)
    except DomainError as refusal:
        return refusal
    outcome = evaluate_guess(state, matches, now)
    if outcome.verdict in ("verified", "wrong"):
        changes: dict[str, Any] = {"attempts": state.attempts + 1}
        if outcome.verified:
            changes["verified_at"] = to_micros(now)
        if outcome.verified or changes["attempts"] >= MAX_ATTEMPTS:
            changes["code_hash"] = None  # not needed any more
        connection.execute(sa.update(otps).where(otps.c.otp_id == otp_id).values(**changes))
    return outcome


def forget(connection: Connection, now: datetime) -> int:
    """Delete the digests of expired passwords; return their number."""
    gone = connection.execute(
        sa.update(otps)
        .where(otps.c.code_hash.is_not(None), otps.c.expires_at <= to_micros(now))
        .values(code_hash=None)
    )
    return gone.rowcount


def page(
    connection: Connection, account_sid: str, query: OtpFilter, *, offset: int, limit: int
) -> tuple[list[OtpCall], int]:
    """A page of the account's passwords with their calls, newest first, and their total number."""
    conditions = [otps.c.account_sid == account_sid, *_conditions(query)]
    # Skipping rows on the way to a page costs little as long as only the small rows are read.
    searched = _BOTH if query.status is not None else otps
    total = count(connection, searched, *conditions)
    wanted = (
        sa.select(otps.c.otp_id)
        .select_from(searched)
        .where(*conditions)
        .order_by(*_NEWEST_FIRST)
        .offset(offset)
        .limit(limit)
    )
    rows = connection.execute(
        sa.select(calls, *(column.label(f"otp_{column.name}") for column in otps.c))
        .select_from(_BOTH)
        .where(otps.c.otp_id.in_(wanted.scalar_subquery()))
        .order_by(*_NEWEST_FIRST)
    ).mappings()
    return [
        OtpCall(
            _OTPS.value_of(connection, {column.name: row[f"otp_{column.name}"] for column in otps.c}),
            call_rows.record_of({column.name: row[column.name] for column in calls.c}),
        )
        for row in rows
    ], total


def stats(connection: Connection, account_sid: str, start: datetime, end: datetime) -> OtpStats:
    """Statistics of the passwords that were sent from ``start`` to ``end``, both included."""
    status = calls.c.status
    ended = [CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.NO_ANSWER, CallStatus.BUSY]
    ended.append(CallStatus.CANCELED)
    row = connection.execute(
        sa.select(
            sa.func.count().label("total"),
            _count(calls.c.answered_at.is_not(None)).label("answered"),
            *(_count(status == one.value).label(one.name.lower()) for one in ended),
            _count(status.not_in([one.value for one in ended])).label("in_progress"),
            _count(otps.c.verified_at.is_not(None)).label("verified"),
            sa.func.coalesce(sa.func.sum(calls.c.duration_sec), 0).label("duration_sec"),
            sa.func.coalesce(sa.func.sum(calls.c.price_paise), 0).label("cost_paise"),
        )
        .select_from(_BOTH)
        .where(
            otps.c.account_sid == account_sid,
            otps.c.created_at >= to_micros(start),
            otps.c.created_at <= to_micros(end),
        )
    ).one()
    return OtpStats(**{name: int(value) for name, value in row._mapping.items()})


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)


def _conditions(query: OtpFilter) -> list[sa.ColumnElement[bool]]:
    wanted: list[sa.ColumnElement[bool]] = []
    if query.status is not None:
        wanted.append(calls.c.status == query.status.value)
    if query.to is not None:
        wanted.append(otps.c.to_number == query.to)
    if query.reference is not None:
        wanted.append(otps.c.reference == query.reference)
    if query.start is not None:
        wanted.append(otps.c.created_at >= to_micros(query.start))
    if query.end is not None:
        wanted.append(otps.c.created_at < to_micros(query.end))
    return wanted
