"""Webhook subscriptions, and the log of what was sent to each."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.tables import deliveries
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.database.tables.webhook_endpoints import webhook_endpoints
from callcontrol.database.values import pack, to_micros, to_moment, to_moment_or_none, unpack
from callcontrol.secrets.encryption import seal, unseal
from callcontrol.webhooks.signing import OFFSETS_S
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import NUMBERED, LoggedDelivery, Subscription

Window = tuple[datetime | None, datetime | None]
"""When deliveries were created: from the first moment on, before the second; None is no bound."""

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
"""What the log shows of a delivery: never its body."""

_STORED: Final = sa.select(subscriptions, webhook_endpoints.c.endpoint_id).outerjoin(
    webhook_endpoints, webhook_endpoints.c.subscription_id == subscriptions.c.subscription_id
)
_candidate: Final = deliveries.alias("candidate")
# Written out, so that the index of what has failed serves.
_FAILED: Final = _candidate.c.status == sa.literal_column("'failed'")


def insert(connection: Connection, subscription: Subscription) -> Subscription:
    """Write a new subscription, and give it its number if its service has them; what was written."""
    connection.execute(
        sa.insert(subscriptions).values(
            subscription_id=subscription.subscription_id,
            account_sid=subscription.account_sid,
            service=subscription.service,
            created_at=to_micros(subscription.created_at),
            **_mutable(connection, subscription),
        )
    )
    if subscription.service not in NUMBERED:
        return subscription
    numbered = sa.insert(webhook_endpoints).values(subscription_id=subscription.subscription_id)
    given = connection.execute(numbered.returning(webhook_endpoints.c.endpoint_id))
    return replace(subscription, number=given.scalar_one())


def update(connection: Connection, subscription: Subscription) -> None:
    """Write what a subscription has become, and nothing else; what waits to be sent is left as it is."""
    connection.execute(
        sa.update(subscriptions)
        .where(subscriptions.c.subscription_id == subscription.subscription_id)
        .values(_mutable(connection, subscription))
    )


def change(connection: Connection, former: Subscription, changed: Subscription, why_paused: str) -> None:
    """
    Write what a subscription has become, and what that means for what waits to be sent.

    That goes to the new URL; once the subscription is paused it has failed, with the reason given.
    """
    update(connection, changed)
    if changed.url != former.url:
        fan_out.redirect(connection, former.subscription_id, changed.url)
    if not changed.is_active:
        fan_out.pause(connection, former.subscription_id, why_paused)


def delete(connection: Connection, subscription_id: str) -> None:
    """Delete a subscription and what waits to be sent; what was sent stays for as long as anything does."""
    connection.execute(
        sa.delete(webhook_endpoints).where(webhook_endpoints.c.subscription_id == subscription_id)
    )
    connection.execute(sa.delete(subscriptions).where(subscriptions.c.subscription_id == subscription_id))
    fan_out.withdraw(connection, subscription_id)


def get(connection: Connection, subscription_id: str, *, lock: bool = False) -> Subscription | None:
    """One subscription, of whichever account and service; ``lock`` keeps other writers from it."""
    wanted = _STORED.where(subscriptions.c.subscription_id == subscription_id)
    row = connection.execute(wanted.with_for_update(of=subscriptions) if lock else wanted).first()
    return _subscription(connection, row) if row is not None else None


def by_number(connection: Connection, number: int) -> Subscription | None:
    """The subscription with a number, of whichever account."""
    row = connection.execute(_STORED.where(webhook_endpoints.c.endpoint_id == number)).first()
    return _subscription(connection, row) if row is not None else None


def of_account(connection: Connection, account_sid: str, service: str) -> list[Subscription]:
    """The account's subscriptions of a service, newest first."""
    rows = connection.execute(
        _STORED.where(
            subscriptions.c.account_sid == account_sid, subscriptions.c.service == service
        ).order_by(subscriptions.c.created_at.desc(), subscriptions.c.subscription_id.desc())
    )
    return [_subscription(connection, row) for row in rows]


def count(connection: Connection, account_sid: str, service: str) -> int:
    """How many subscriptions of a service the account has."""
    wanted = sa.select(sa.func.count()).where(
        subscriptions.c.account_sid == account_sid, subscriptions.c.service == service
    )
    return connection.scalar(wanted) or 0


def log_of(connection: Connection, subscription_id: str, limit: int) -> list[LoggedDelivery]:
    """The newest deliveries of a subscription, newest first."""
    rows = connection.execute(
        sa.select(*_SHOWN)
        .where(deliveries.c.subscription_id == subscription_id)
        .order_by(deliveries.c.position.desc())
        .limit(limit)
    )
    return [_logged(row) for row in rows]


def replay(connection: Connection, subscription: Subscription, delivery_id: str, now: datetime) -> int | None:
    """
    Have a delivery made again, from its first attempt on; how many that were, None without such a delivery.

    One that is on its way at this moment is left alone: it counts as none.
    """
    mine = (
        deliveries.c.delivery_id == delivery_id,
        deliveries.c.subscription_id == subscription.subscription_id,
    )
    if connection.execute(sa.select(deliveries.c.position).where(*mine)).first() is None:
        return None
    idle = sa.or_(deliveries.c.status != "pending", deliveries.c.leased_until <= to_micros(now))
    again = sa.update(deliveries).where(*mine, idle).values(_anew(subscription, now))
    return connection.execute(again).rowcount


def replay_failed(
    connection: Connection, subscription: Subscription, window: Window, now: datetime, limit: int
) -> int:
    """Have failed deliveries of a window made again, the oldest first; how many those were."""
    oldest = _failed(subscription, window).limit(limit)
    again = sa.update(deliveries).where(deliveries.c.position.in_(oldest)).values(_anew(subscription, now))
    return connection.execute(again).rowcount


def any_failed(connection: Connection, subscription: Subscription, window: Window) -> bool:
    """Whether there are failed deliveries of a window."""
    return connection.execute(_failed(subscription, window).limit(1)).first() is not None


def _failed(subscription: Subscription, window: Window) -> sa.Select[int]:
    since, until = window
    wanted = [_candidate.c.subscription_id == subscription.subscription_id, _FAILED]
    if since is not None:
        wanted.append(_candidate.c.created_at >= to_micros(since))
    if until is not None:
        wanted.append(_candidate.c.created_at < to_micros(until))
    return sa.select(_candidate.c.position).where(*wanted).order_by(_candidate.c.created_at)


def _anew(subscription: Subscription, now: datetime) -> dict[str, Any]:
    """A delivery that is to be made as if it had just been published."""
    return {
        "url": subscription.url,
        "status": "pending",
        "attempts": 0,
        "next_attempt_at": to_micros(now),
        "leased_until": 0,
        "response_code": 0,
        "last_error": None,
        "delivered_at": None,
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


def _mutable(connection: Connection, subscription: Subscription) -> dict[str, Any]:
    return {
        "url": subscription.url,
        "secret": seal(connection, subscriptions.c.secret, subscription.subscription_id, subscription.secret),
        "event_types": pack(list(subscription.event_types)),
        "description": subscription.description,
        "is_active": subscription.is_active,
        "updated_at": to_micros(subscription.updated_at),
    }


def _subscription(connection: Connection, row: Row[Any]) -> Subscription:
    names: Sequence[str] = unpack(row.event_types)
    return Subscription(
        subscription_id=row.subscription_id,
        account_sid=row.account_sid,
        service=row.service,
        url=row.url,
        event_types=tuple(names),
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
        secret=unseal(connection, subscriptions.c.secret, row.subscription_id, row.secret),
        description=row.description,
        is_active=row.is_active,
        number=row.endpoint_id,
    )
