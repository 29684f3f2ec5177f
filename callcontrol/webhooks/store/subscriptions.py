"""Webhook subscriptions and the delivery log of each."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.rows import JSON_TUPLE, Part, ValueTable
from callcontrol.database.rows import count as count_rows
from callcontrol.database.statements import to_micros, to_moment, to_moment_or_none
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.database.tables.webhook_endpoints import webhook_endpoints
from callcontrol.database.tables.webhooks import deliveries
from callcontrol.webhooks.retries import OFFSETS_S
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import LoggedDelivery, Subscription

Window = tuple[datetime | None, datetime | None]
"""Creation times of deliveries: from the first on, before the second; None is no bound."""

_SHOWN: Final[Sequence[sa.Column[Any]]] = (
    deliveries.c.delivery_id,
    deliveries.c.subscription_id,
    deliveries.c.event,
    deliveries.c.call_sid,
    deliveries.c.status,
    deliveries.c.attempts,
    deliveries.c.response_code,
    deliveries.c.last_error,
    deliveries.c.created_at,
    deliveries.c.next_attempt_at,
    deliveries.c.delivered_at,
)
"""Columns of a delivery in the log; never its body."""

_SUBSCRIPTIONS: Final = ValueTable(
    subscriptions,
    Subscription,
    codecs={"event_types": JSON_TUPLE},
    parts={"number": Part(lambda *_: {}, lambda _, row: row["endpoint_id"])},
)
_STORED: Final = sa.select(subscriptions, webhook_endpoints.c.endpoint_id).outerjoin(
    webhook_endpoints, webhook_endpoints.c.subscription_id == subscriptions.c.subscription_id
)
_candidate: Final = deliveries.alias("candidate")
# A literal, so that the partial index of failed rows is used.
_FAILED: Final = _candidate.c.status == sa.literal_column("'failed'")


def insert(connection: Connection, subscription: Subscription, *, numbered: bool = False) -> Subscription:
    """Insert a subscription and return it; with ``numbered`` it gets a new number."""
    _SUBSCRIPTIONS.insert(connection, subscription)
    if not numbered:
        return subscription
    endpoint = sa.insert(webhook_endpoints).values(subscription_id=subscription.subscription_id)
    given = connection.execute(endpoint.returning(webhook_endpoints.c.endpoint_id))
    return replace(subscription, number=given.scalar_one())


def update(connection: Connection, subscription: Subscription) -> None:
    """Write a changed subscription; its pending deliveries stay unchanged."""
    _SUBSCRIPTIONS.update(connection, subscription)


def change(connection: Connection, former: Subscription, changed: Subscription, why_paused: str) -> None:
    """
    Write a changed subscription and update its pending deliveries.

    They go to the new URL; if the subscription is paused, they fail with the given reason.
    """
    update(connection, changed)
    if changed.url != former.url:
        fan_out.redirect(connection, former.subscription_id, changed.url)
    if not changed.is_active:
        fan_out.pause(connection, former.subscription_id, why_paused)


def delete(connection: Connection, subscription_id: str) -> None:
    """Delete a subscription and pending deliveries; finished ones stay until their retention ends."""
    connection.execute(
        sa.delete(webhook_endpoints).where(webhook_endpoints.c.subscription_id == subscription_id)
    )
    connection.execute(sa.delete(subscriptions).where(subscriptions.c.subscription_id == subscription_id))
    fan_out.withdraw(connection, subscription_id)


def get(connection: Connection, subscription_id: str, *, lock: bool = False) -> Subscription | None:
    """Get a subscription of any account and service; ``lock`` keeps other writers from it."""
    wanted = _STORED.where(subscriptions.c.subscription_id == subscription_id)
    row = connection.execute(wanted.with_for_update(of=subscriptions) if lock else wanted).first()
    return _SUBSCRIPTIONS.value_of(connection, row) if row is not None else None


def by_number(connection: Connection, number: int) -> Subscription | None:
    """Get a subscription of any account by its number."""
    row = connection.execute(_STORED.where(webhook_endpoints.c.endpoint_id == number)).first()
    return _SUBSCRIPTIONS.value_of(connection, row) if row is not None else None


def of_account(connection: Connection, account_sid: str, service: str) -> list[Subscription]:
    """List the account's subscriptions of a service, newest first."""
    rows = connection.execute(
        _STORED.where(
            subscriptions.c.account_sid == account_sid, subscriptions.c.service == service
        ).order_by(subscriptions.c.created_at.desc(), subscriptions.c.subscription_id.desc())
    )
    return [_SUBSCRIPTIONS.value_of(connection, row) for row in rows]


def count(connection: Connection, account_sid: str, service: str) -> int:
    """Count the account's subscriptions of a service."""
    mine = (subscriptions.c.account_sid == account_sid, subscriptions.c.service == service)
    return count_rows(connection, subscriptions, *mine)


def log_of(connection: Connection, subscription_id: str, limit: int) -> list[LoggedDelivery]:
    """List the latest deliveries of a subscription, newest first."""
    rows = connection.execute(
        sa.select(*_SHOWN)
        .where(deliveries.c.subscription_id == subscription_id)
        .order_by(deliveries.c.position.desc())
        .limit(limit)
    )
    return [_logged(row) for row in rows]


def replay(connection: Connection, subscription: Subscription, delivery_id: str, now: datetime) -> int | None:
    """
    Reset a delivery to its first attempt; returns the number reset, None if there is no such delivery.

    A delivery in progress stays unchanged and counts as 0.
    """
    mine = (
        deliveries.c.delivery_id == delivery_id,
        deliveries.c.subscription_id == subscription.subscription_id,
    )
    if connection.execute(sa.select(deliveries.c.position).where(*mine)).first() is None:
        return None
    idle = sa.or_(deliveries.c.status != "pending", deliveries.c.leased_until <= to_micros(now))
    again = sa.update(deliveries).where(*mine, idle).values(_queued(subscription, now))
    return connection.execute(again).rowcount


def replay_failed(
    connection: Connection, subscription: Subscription, window: Window, now: datetime, limit: int
) -> int:
    """Reset failed deliveries of a window, oldest first; returns their number."""
    oldest = _failed(subscription, window).limit(limit)
    again = sa.update(deliveries).where(deliveries.c.position.in_(oldest)).values(_queued(subscription, now))
    return connection.execute(again).rowcount


def any_failed(connection: Connection, subscription: Subscription, window: Window) -> bool:
    """Return True if a window has failed deliveries."""
    return connection.execute(_failed(subscription, window).limit(1)).first() is not None


def _failed(subscription: Subscription, window: Window) -> sa.Select[int]:
    since, until = window
    wanted = [_candidate.c.subscription_id == subscription.subscription_id, _FAILED]
    if since is not None:
        wanted.append(_candidate.c.created_at >= to_micros(since))
    if until is not None:
        wanted.append(_candidate.c.created_at < to_micros(until))
    return sa.select(_candidate.c.position).where(*wanted).order_by(_candidate.c.created_at)


def _queued(subscription: Subscription, now: datetime) -> dict[str, Any]:
    """Row values that reset a delivery to newly published."""
    return {
        "url": subscription.url,
        "status": "pending",
        "attempts": 0,
        "next_attempt_at": to_micros(now),
        "leased_until": 0,
        "response_code": 0,
        "last_error": None,
        "delivered_at": None,
        "attempt_log": None,
    }


def _logged(row: Row[Any]) -> LoggedDelivery:
    waits = row.status == "pending"
    return LoggedDelivery(
        delivery_id=row.delivery_id,
        subscription_id=row.subscription_id,
        event_type=row.event,
        call_sid=row.call_sid,
        status="retrying" if waits and row.attempts else row.status,
        attempts=row.attempts,
        max_attempts=len(OFFSETS_S),
        response_code=row.response_code,
        error=row.last_error,
        created_at=to_moment(row.created_at),
        next_attempt_at=to_moment(row.next_attempt_at) if waits else None,
        delivered_at=to_moment_or_none(row.delivered_at),
    )
