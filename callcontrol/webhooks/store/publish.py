"""
Fan-out of events to the outbox: the transaction that publishes an event determines its recipients.

A ``SubscribedEvent`` becomes one delivery for each active subscription of its account and service that
lists it. An event for one subscription, e.g. of a masked call, goes to the subscription's current URL, and
is not queued while the subscription is paused. So after the transaction that pauses or deletes a
subscription, nothing is queued for it; the outbox checks once more before it sends.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any, Final
from uuid import UUID, uuid5

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database import encryption as sealing
from callcontrol.database.statements import Statement, to_micros, unpack
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.database.tables.webhooks import deliveries as deliveries_table
from callcontrol.errors import SecretsUnreadable
from callcontrol.models import Delivery, PublishedEvent, Recipient, SubscribedEvent, WebhookEvent
from callcontrol.webhooks.store import deliveries

AT_ONCE: Final = 1000
"""Pending deliveries of a subscription changed per transaction, which takes some milliseconds."""

_waits: Final = deliveries_table.alias("waits")

_DELIVERIES: Final = UUID("5f0f3f0e-6a2e-4c0b-9c56-2f3c0d1b7a44")
"""UUID namespace of delivery ids: an event and a subscription always give the same id."""

_ACTIVE: Final = Statement(
    sa.select(subscriptions.c.subscription_id, subscriptions.c.url, subscriptions.c.event_types).where(
        subscriptions.c.account_sid == sa.bindparam("account_sid"),
        subscriptions.c.service == sa.bindparam("service"),
        subscriptions.c.is_active,
    )
)
_ONE: Final = Statement(
    sa.select(
        subscriptions.c.subscription_id,
        subscriptions.c.service,
        subscriptions.c.url,
        subscriptions.c.is_active,
        subscriptions.c.secret,
    ).where(subscriptions.c.subscription_id == sa.bindparam("subscription_id"))
)


def publish(connection: Connection, events: Sequence[PublishedEvent]) -> int:
    """Write the deliveries of events, which queues them for sending; returns their number."""
    if not events:
        return 0
    found: list[WebhookEvent] = []
    # Events of one transaction often go to few subscriptions: each is looked up once.
    actives = cache(partial(_actives, connection))
    urls = cache(partial(_url, connection))
    for event in events:
        if isinstance(event, SubscribedEvent):
            rows = actives(event.account_sid, event.service)
            found.extend(_copy(event, row) for row in rows if event.event in unpack(row["event_types"]))
        elif event.subscription_id is None:
            found.append(event)
        elif (url := urls(event.subscription_id)) is not None:
            found.append(event if event.url == url else replace(event, url=url))
    deliveries.insert(connection, [deliveries.row_of(event) for event in found])
    return len(found)


def has_listeners(connection: Connection, account_sid: str, service: str) -> bool:
    """Return True if an account has an active subscription to a service; events are needless otherwise."""
    return bool(_actives(connection, account_sid, service))


def delivery_id_of(event_id: str, subscription_id: str) -> str:
    """Id of an event's delivery to a subscription; a repeated transaction creates no second one."""
    return str(uuid5(_DELIVERIES, f"{event_id}/{subscription_id}"))


def recipients(connection: Connection, subscription_ids: Iterable[str]) -> dict[str, Recipient]:
    """Current state of the subscriptions, with their secrets; deleted ones are left out."""
    found = {}
    for subscription_id in subscription_ids:
        row = _ONE.first(connection, {"subscription_id": subscription_id})
        if row is not None:
            found[subscription_id] = _recipient(connection, row)
    return found


def with_current_url(connection: Connection, delivery: Delivery, found: Mapping[str, Recipient]) -> Delivery:
    """Delivery with its subscription's current URL; one published during the change has the old URL."""
    recipient = found.get(delivery.event.subscription_id or "")
    if recipient is None or recipient.url == delivery.event.url:
        return delivery
    connection.execute(
        sa.update(deliveries_table)
        .where(deliveries_table.c.delivery_id == delivery.event.delivery_id)
        .values(url=recipient.url)
    )
    return replace(delivery, event=replace(delivery.event, url=recipient.url))


def pause(connection: Connection, subscription_id: str, reason: str) -> int:
    """
    Fail the pending deliveries of a paused subscription, replayable; returns their number.

    At most ``AT_ONCE``, so that writes of calls do not wait; ``clear`` handles the remaining ones. A request
    in progress may still arrive.
    """
    return connection.execute(
        sa.update(deliveries_table)
        .where(deliveries_table.c.position.in_(_waiting(subscription_id)))
        .values(status="failed", leased_until=0, last_error=reason)
    ).rowcount


def withdraw(connection: Connection, subscription_id: str) -> int:
    """Delete the pending deliveries of a deleted subscription; limit and result as for ``pause``."""
    return connection.execute(
        sa.delete(deliveries_table).where(deliveries_table.c.position.in_(_waiting(subscription_id)))
    ).rowcount


def clear(connection: Connection, subscription_id: str, reason: str) -> int:
    """
    Fail or delete some pending deliveries of a paused or deleted subscription; returns their number.

    Changes nothing if the subscription is active again.
    """
    row = _ONE.first(connection, {"subscription_id": subscription_id})
    if row is None:
        return withdraw(connection, subscription_id)
    return 0 if row["is_active"] else pause(connection, subscription_id, reason)


def redirect(connection: Connection, subscription_id: str, url: str) -> int:
    """
    Change the URL of a subscription's pending deliveries; limit and result as for ``pause``.

    The newest are changed, because they must keep their order with later events of their calls. Older ones
    get the new URL when they are leased; see ``with_current_url``.
    """
    newest = _waiting(subscription_id).order_by(_waits.c.position.desc())
    return connection.execute(
        sa.update(deliveries_table).where(deliveries_table.c.position.in_(newest)).values(url=url)
    ).rowcount


def disable(connection: Connection, subscription_id: str, url: str, reason: str, now: datetime) -> bool:
    """
    Pause a subscription whose URL answered 410; returns True if it was paused.

    Only if it still has that URL.
    """
    changed = connection.execute(
        sa.update(subscriptions)
        .where(
            subscriptions.c.subscription_id == subscription_id,
            subscriptions.c.url == url,
            subscriptions.c.is_active,
        )
        .values(is_active=False, updated_at=to_micros(now))
    )
    if changed.rowcount:
        pause(connection, subscription_id, reason)
    return bool(changed.rowcount)


def _actives(connection: Connection, account_sid: str, service: str) -> list[dict[str, Any]]:
    return _ACTIVE.all(connection, {"account_sid": account_sid, "service": service})


def _copy(event: SubscribedEvent, row: dict[str, Any]) -> WebhookEvent:
    delivery_id = delivery_id_of(event.event_id, row["subscription_id"])
    body = {"id": delivery_id, **event.fields}
    return WebhookEvent(
        event_id=event.event_id,
        account_sid=event.account_sid,
        event=event.event,
        url=row["url"],
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"),
        created_at=event.created_at,
        call_sid=event.call_sid,
        delivery_id=delivery_id,
        subscription_id=row["subscription_id"],
    )


def _url(connection: Connection, subscription_id: str) -> str | None:
    """URL of a subscription; None if it is paused or deleted."""
    row = _ONE.first(connection, {"subscription_id": subscription_id})
    return row["url"] if row is not None and row["is_active"] else None


def _recipient(connection: Connection, row: dict[str, Any]) -> Recipient:
    subscription_id, secret, problem = row["subscription_id"], None, None
    try:
        secret = sealing.unseal(connection, subscriptions.c.secret, subscription_id, row["secret"])
    except SecretsUnreadable:
        problem = "the secret of the subscription cannot be read; set it again"
    return Recipient(subscription_id, row["service"], row["url"], bool(row["is_active"]), secret, problem)


def _waiting(subscription_id: str) -> sa.Select[int]:
    return (
        sa.select(_waits.c.position)
        .where(
            _waits.c.subscription_id == subscription_id,
            # A literal, so that the partial index of pending rows is used.
            sa.text("waits.status = 'pending'"),
        )
        .limit(AT_ONCE)
    )
