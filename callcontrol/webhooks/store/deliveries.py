"""
Table of the webhook outbox: one row per delivery of an event to a URL.

A row is leased to the process that holds it in memory; the lease of a crashed process expires, and then any
process may lease the row. At its start a node releases the leases of its earlier run, so a restart does not
wait for that. Only the oldest pending row of a call and URL can be leased, which keeps their order across
processes and restarts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.statements import (
    Statement,
    clean,
    insert_into,
    to_micros,
    to_micros_or_none,
    to_moment,
    to_moment_or_none,
)
from callcontrol.database.tables.webhooks import deliveries
from callcontrol.models import Delivery, WebhookEvent
from callcontrol.webhooks.attempts import packed, unpacked
from callcontrol.webhooks.retries import is_gone

_HOPELESS: Final = timedelta(days=7)
"""Pending rows this much older than the retention are deleted: all their attempts could have been made."""

_INSERT: Final = insert_into(deliveries, ignore_conflict=True)
_PENDING: Final = deliveries.c.status == "pending"
# An outcome written after its lease expired must not overwrite that of another process. A successful one
# is recorded even if its subscription was paused while the request was in progress.
_OUTCOME: Final = Statement(
    sa.update(deliveries)
    .where(
        deliveries.c.delivery_id == sa.bindparam("_delivery_id"),
        sa.or_(
            _PENDING,
            sa.and_(sa.bindparam("_arrived", type_=sa.Boolean), deliveries.c.status == "failed"),
        ),
    )
    .values(
        {
            name: sa.bindparam(name)
            for name in (
                "status",
                "attempts",
                "next_attempt_at",
                "leased_until",
                "response_code",
                "last_error",
                "delivered_at",
                "attempt_log",
            )
        }
    )
)
_DUE: Final = Statement(
    sa.select(deliveries.c.position)
    .where(
        # A literal, so that the partial index of pending rows is used.
        sa.text("status = 'pending'"),
        deliveries.c.next_attempt_at <= sa.bindparam("micros", type_=sa.BigInteger),
        deliveries.c.leased_until <= sa.bindparam("micros", type_=sa.BigInteger),
    )
    .limit(sa.literal_column("1"))
)
_older: Final = deliveries.alias("older")
_waiting: Final = deliveries.alias("waiting")


def _goes_before(row: Any) -> sa.ColumnElement[bool]:
    """Condition that ``_older`` must be delivered before a row."""
    return sa.and_(
        _older.c.status == "pending",
        _older.c.call_sid == row.c.call_sid,
        _older.c.url == row.c.url,
        _older.c.position < row.c.position,
    )


def _taking(order: Any) -> Statement:
    """Lease due rows; the index of pending rows returns them in order, so few are read."""
    due = (
        sa.select(_waiting.c.position)
        .where(
            # A literal, so that the partial index of pending rows is used.
            sa.text("waiting.status = 'pending'"),
            _waiting.c.next_attempt_at <= sa.bindparam("micros", type_=sa.BigInteger),
            _waiting.c.leased_until <= sa.bindparam("micros", type_=sa.BigInteger),
            ~sa.exists().where(_goes_before(_waiting)),
        )
        .order_by(order)
        .limit(sa.bindparam("limit", type_=sa.Integer))
        .with_for_update(skip_locked=True, of=_waiting)
        # PostgreSQL may run a subquery several times, and would lock as many more rows each time.
        .cte("due")
    )
    return Statement(
        sa.update(deliveries)
        .where(deliveries.c.position.in_(sa.select(due.c.position)))
        .values(node=sa.bindparam("node"), leased_until=sa.bindparam("leased_until"))
        .returning(*deliveries.c)
    )


_TAKE: Final = _taking(_waiting.c.next_attempt_at)
_TAKE_NEWEST: Final = _taking(_waiting.c.next_attempt_at.desc())


def _deferring() -> Statement:
    """
    Postpone rows behind a delivery that waits for its next attempt until that delivery is due.

    Otherwise every event for a receiver that is down would be read again at every poll.
    """
    micros = sa.bindparam("micros", type_=sa.BigInteger)
    blocked = (
        sa.select(_waiting.c.position)
        .where(
            sa.text("waiting.status = 'pending'"),
            _waiting.c.next_attempt_at <= micros,
            _waiting.c.leased_until <= micros,
            sa.exists().where(_goes_before(_waiting), _older.c.next_attempt_at > micros),
        )
        .with_for_update(skip_locked=True, of=_waiting)
    )
    until = sa.select(sa.func.max(_older.c.next_attempt_at)).where(_goes_before(deliveries))
    return Statement(
        sa.update(deliveries)
        .where(deliveries.c.position.in_(blocked))
        .values(next_attempt_at=until.scalar_subquery())
    )


_DEFER_BLOCKED: Final = _deferring()


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease request of a node: current time, end of the lease, and maximum number of deliveries."""

    node: str
    now: datetime
    until: datetime
    limit: int


def row_of(event: WebhookEvent) -> dict[str, Any]:
    """Row of a newly published event: due at once and not leased."""
    return {
        "delivery_id": event.delivery_id,
        "event_id": event.event_id,
        "account_sid": event.account_sid,
        "subscription_id": event.subscription_id,
        "call_sid": event.call_sid,
        "event": event.event,
        "method": event.method,
        "url": event.url,
        "body": event.body,
        "status": "pending",
        "attempts": 0,
        "next_attempt_at": to_micros(event.created_at),
        "node": "",
        "leased_until": 0,
        "response_code": 0,
        "last_error": None,
        "created_at": to_micros(event.created_at),
        "delivered_at": None,
        "attempt_log": None,
    }


def insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new deliveries; existing ones stay unchanged."""
    _INSERT.many(connection, rows)


def withdraw(connection: Connection, call_sid: str) -> bool:
    """Delete the deliveries of a call; False, and none is, if one was ever leased: it may have been sent."""
    of_call = deliveries.c.call_sid == call_sid
    leased = sa.select(deliveries.c.position).where(of_call, deliveries.c.node != "").limit(1)
    if connection.scalar(leased) is not None:
        return False
    connection.execute(sa.delete(deliveries).where(of_call))
    return True


def outcome_row(delivery: Delivery) -> dict[str, Any]:
    """Row values of a delivery whose lease ends."""
    return {
        "_delivery_id": delivery.event.delivery_id,
        "_arrived": delivery.status == "delivered",
        "_gone": (delivery.event.subscription_id, delivery.event.url)
        if delivery.event.subscription_id and delivery.status == "failed" and is_gone(delivery.response_code)
        else None,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "next_attempt_at": to_micros(delivery.next_attempt_at),
        "leased_until": 0,
        "response_code": delivery.response_code,
        "last_error": clean(delivery.last_error),
        "delivered_at": to_micros_or_none(delivery.delivered_at),
        "attempt_log": packed(delivery.attempt_log),
    }


def record_outcomes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the outcomes of attempts."""
    _OUTCOME.many(connection, rows)


def release(connection: Connection, node: str, lease: Lease | None = None) -> int:
    """Release all leases of a node, or one whose result was lost; returns the number of rows."""
    leased_until = deliveries.c.leased_until
    freed = connection.execute(
        sa.update(deliveries)
        .where(
            _PENDING,
            deliveries.c.node == node,
            leased_until > 0 if lease is None else leased_until == to_micros(lease.until),
        )
        .values(leased_until=0)
    )
    return freed.rowcount


def take_due(connection: Connection, lease: Lease, *, newest_first: bool = False) -> list[Delivery]:
    """
    Lease due deliveries that no process has leased and that are the oldest of their call and URL.

    Those due longest come first, or with ``newest_first`` those due last. They are returned in order of
    publication.
    """
    micros = to_micros(lease.now)
    # Usually nothing is due, and this query is cheaper than the lease.
    if _DUE.first(connection, {"micros": micros}) is None:
        return []
    values = {
        "micros": micros,
        "limit": lease.limit,
        "node": lease.node,
        "leased_until": to_micros(lease.until),
    }
    rows = (_TAKE_NEWEST if newest_first else _TAKE).all(connection, values)
    if len(rows) < lease.limit:
        _DEFER_BLOCKED.run(connection, {"micros": micros})
    rows.sort(key=itemgetter("position"))
    return [_delivery(row) for row in rows]


def of_call(connection: Connection, call_sid: str) -> list[Delivery]:
    """Deliveries of a call's events, in order of publication."""
    rows = connection.execute(
        sa.select(deliveries).where(deliveries.c.call_sid == call_sid).order_by(deliveries.c.position)
    )
    return [to_delivery(row) for row in rows]


def of_subscription(connection: Connection, subscription_id: str, delivery_id: str) -> Delivery | None:
    """Delivery of a subscription; None if it has no such one."""
    row = connection.execute(
        sa.select(deliveries).where(
            deliveries.c.delivery_id == delivery_id, deliveries.c.subscription_id == subscription_id
        )
    ).one_or_none()
    return None if row is None else to_delivery(row)


def purge(connection: Connection, before: datetime, place: int, limit: int) -> tuple[int, int | None]:
    """
    Delete finished deliveries older than ``before``, among the next ``limit`` rows after ``place``.

    A pending delivery is deleted once it is older by ``_HOPELESS``: its receiver accepts fewer than it is
    sent, and the table would grow without bound. Rows are in order of publication, so no index over their
    time is needed.

    Returns:
        Number of deleted rows, and the place to continue from; None when no older one is left.
    """
    rows = connection.execute(
        sa.select(deliveries.c.position, deliveries.c.status, deliveries.c.created_at)
        .where(deliveries.c.position > place)
        .order_by(deliveries.c.position)
        .limit(limit)
    ).all()
    old = [row for row in rows if row.created_at < to_micros(before)]
    hopeless = to_micros(before - _HOPELESS)
    done = [row.position for row in old if row.status != "pending" or row.created_at < hopeless]
    if done:
        connection.execute(sa.delete(deliveries).where(deliveries.c.position.in_(done)))
    return len(done), rows[-1].position if len(old) == limit else None


def backlog(connection: Connection, at_most: int) -> tuple[int, int | None]:
    """Number of pending deliveries, up to a bound, and the due time of the first, in microseconds."""
    # A literal, so that the partial index of pending rows is used.
    pending = sa.select(deliveries.c.next_attempt_at).where(sa.text("status = 'pending'"))
    count = connection.scalar(sa.select(sa.func.count()).select_from(pending.limit(at_most).subquery()))
    first = connection.scalar(pending.order_by(deliveries.c.next_attempt_at).limit(1))
    return count or 0, first


def counts(connection: Connection) -> dict[str, int]:
    """Count deliveries by status."""
    rows = connection.execute(sa.select(deliveries.c.status, sa.func.count()).group_by(deliveries.c.status))
    return {row[0]: row[1] for row in rows}


def to_delivery(row: Row[Any]) -> Delivery:
    """Delivery of a row."""
    return _delivery(row._mapping)


def _delivery(row: Any) -> Delivery:
    return Delivery(
        event=WebhookEvent(
            event_id=row["event_id"],
            account_sid=row["account_sid"],
            event=row["event"],
            url=row["url"],
            body=bytes(row["body"]),
            created_at=to_moment(row["created_at"]),
            call_sid=row["call_sid"],
            method=row["method"],
            delivery_id=row["delivery_id"],
            subscription_id=row["subscription_id"],
        ),
        status=row["status"],
        attempts=row["attempts"],
        next_attempt_at=to_moment(row["next_attempt_at"]),
        response_code=row["response_code"],
        last_error=row["last_error"],
        delivered_at=to_moment_or_none(row["delivered_at"]),
        attempt_log=unpacked(row["attempt_log"], row["attempts"]),
    )
