"""
The webhook outbox: one row per delivery of an event to a URL.

A row is leased to the process that holds it in memory; the lease of a process that died runs out, and then
any process may take the row. Releasing what a former run of the same node had leased makes a restart not
wait for that. Only the oldest pending row of a call and URL can be leased, which keeps their order whoever
delivers them, across restarts too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.statements import Statement, insert_into
from callcontrol.database.tables import deliveries
from callcontrol.database.values import clean, to_micros, to_micros_or_none, to_moment, to_moment_or_none
from callcontrol.models import Delivery, WebhookEvent
from callcontrol.webhooks.signing import is_gone

_HOPELESS: Final = timedelta(days=7)
"""All attempts at a delivery are made within two days, unless there is never room for them."""

_INSERT: Final = insert_into(deliveries, ignore_conflict=True)
_PENDING: Final = deliveries.c.status == "pending"
# An outcome that comes late, after the lease has run out, does not undo what another process achieved. One
# that arrived is told although its subscription was paused while it was under way.
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
            )
        }
    )
)
_DUE: Final = Statement(
    sa.select(deliveries.c.position)
    .where(
        # Written out, so that the index of what is pending serves.
        sa.text("status = 'pending'"),
        deliveries.c.next_attempt_at <= sa.bindparam("micros", type_=sa.BigInteger),
        deliveries.c.leased_until <= sa.bindparam("micros", type_=sa.BigInteger),
    )
    .limit(sa.literal_column("1"))
)
_older: Final = deliveries.alias("older")
_waiting: Final = deliveries.alias("waiting")


def _goes_before(row: Any) -> sa.ColumnElement[bool]:
    """Whether ``_older`` has to be delivered before a row."""
    return sa.and_(
        _older.c.status == "pending",
        _older.c.call_sid == row.c.call_sid,
        _older.c.url == row.c.url,
        _older.c.position < row.c.position,
    )


def _taking(order: Any) -> Statement:
    """Lease what is due; the index of what is pending gives it in order, so that little is looked at."""
    due = (
        sa.select(_waiting.c.position)
        .where(
            # Written out, so that the index of what is pending serves.
            sa.text("waiting.status = 'pending'"),
            _waiting.c.next_attempt_at <= sa.bindparam("micros", type_=sa.BigInteger),
            _waiting.c.leased_until <= sa.bindparam("micros", type_=sa.BigInteger),
            ~sa.exists().where(_goes_before(_waiting)),
        )
        .order_by(order)
        .limit(sa.bindparam("limit", type_=sa.Integer))
        .with_for_update(skip_locked=True, of=_waiting)
        # PostgreSQL may run a subquery several times, and would each time lock as many rows again.
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
    Make what is behind a delivery that waits for its next attempt due when that one is.

    Else whatever calls publish to a receiver that is down would be looked at again at every turn.
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
    """Who takes so many deliveries that are due now, and until when they are its own."""

    node: str
    now: datetime
    until: datetime
    limit: int


def row_of(event: WebhookEvent) -> dict[str, Any]:
    """The row of an event that is published now, due at once and held by nobody."""
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
    }


def insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write new deliveries; one that is there already is left as it is."""
    _INSERT.many(connection, rows)


def withdraw(connection: Connection, delivery_ids: Sequence[str]) -> None:
    """Take back deliveries of something that is undone."""
    connection.execute(sa.delete(deliveries).where(deliveries.c.delivery_id.in_(delivery_ids)))


def outcome_row(delivery: Delivery) -> dict[str, Any]:
    """The state of a delivery that nobody holds any longer."""
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
    }


def record_outcomes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the outcomes of attempts."""
    _OUTCOME.many(connection, rows)


def release(connection: Connection, node: str, lease: Lease | None = None) -> int:
    """Free what a former run of this node had leased, or a lease that nobody heard of; how many rows."""
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
    Lease due deliveries that no living process holds and none of their call goes before.

    Those that have been due longest come first, or those that have just become due. They are returned in the
    order of their publication.
    """
    micros = to_micros(lease.now)
    # Most of the time nothing is due, and what follows costs more than this does.
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
    """The deliveries of a call's events, in the order of publication."""
    rows = connection.execute(
        sa.select(deliveries).where(deliveries.c.call_sid == call_sid).order_by(deliveries.c.position)
    )
    return [to_delivery(row) for row in rows]


def purge(connection: Connection, before: datetime, place: int, limit: int) -> tuple[int, int | None]:
    """
    Delete deliveries older than ``before`` that are done with, of so many rows behind a place.

    One that is still pending goes when it is older by ``_HOPELESS`` than that: its receiver takes fewer than
    it is sent, and would have the table grow for ever. Rows are in the order of their publication, so no
    index over their time is needed.

    Returns:
        How many are gone, and the place to go on from; None when no older one is left.
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
    """How many deliveries are not done, up to a bound, and when the first of them is due, in microseconds."""
    # Written out, so that the index of what is pending serves.
    pending = sa.select(deliveries.c.next_attempt_at).where(sa.text("status = 'pending'"))
    count = connection.scalar(sa.select(sa.func.count()).select_from(pending.limit(at_most).subquery()))
    first = connection.scalar(pending.order_by(deliveries.c.next_attempt_at).limit(1))
    return count or 0, first


def counts(connection: Connection) -> dict[str, int]:
    """How many deliveries have each status."""
    rows = connection.execute(sa.select(deliveries.c.status, sa.func.count()).group_by(deliveries.c.status))
    return {row[0]: row[1] for row in rows}


def to_delivery(row: Row[Any]) -> Delivery:
    """The delivery that a row holds."""
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
    )
