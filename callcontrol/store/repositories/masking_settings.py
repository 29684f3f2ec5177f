"""Masking settings of accounts, and the subscription that the masking webhook is."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.masking_settings import SERVICE, WEBHOOK_EVENTS, MaskingSettings
from callcontrol.store.sealing import seal, unseal
from callcontrol.store.statements import Statement, insert_into
from callcontrol.store.tables.masking import masking_settings
from callcontrol.store.tables.subscriptions import subscriptions
from callcontrol.store.values import pack, to_micros, to_moment

_OF: Final = Statement(
    sa.select(
        masking_settings,
        subscriptions.c.url,
        subscriptions.c.secret,
        subscriptions.c.is_active,
    )
    .select_from(
        masking_settings.outerjoin(
            subscriptions, subscriptions.c.subscription_id == masking_settings.c.subscription_id
        )
    )
    .where(masking_settings.c.account_sid == sa.bindparam("account_sid"))
)
_INSERT: Final = insert_into(masking_settings, ignore_conflict=True)


def of(connection: Connection, account_sid: str) -> MaskingSettings:
    """The settings of an account; the defaults when it has none."""
    row = _OF.first(connection, {"account_sid": account_sid})
    if row is None:
        return MaskingSettings(account_sid=account_sid)
    stored = MaskingSettings(
        account_sid=account_sid,
        routing_url=row["routing_url"],
        record_calls=bool(row["record_calls"]),
        updated_at=to_moment(row["updated_at"]),
    )
    subscription_id = row["subscription_id"]
    if row["url"] is None:
        return stored
    return replace(
        stored,
        subscription_id=subscription_id,
        webhook_url=row["url"],
        webhook_secret=unseal(connection, subscriptions.c.secret, subscription_id, row["secret"]),
        webhook_active=bool(row["is_active"]),
    )


def save(connection: Connection, before: MaskingSettings, after: MaskingSettings, now: datetime) -> None:
    """
    Write what the settings of an account have become.

    ``after.subscription_id`` names a new subscription, or the one of ``before``, or none.
    """
    if before.subscription_id is not None and before.subscription_id != after.subscription_id:
        connection.execute(
            sa.delete(subscriptions).where(subscriptions.c.subscription_id == before.subscription_id)
        )
    if after.subscription_id is not None:
        _save_subscription(connection, before, after, now)
    values = {
        "account_sid": after.account_sid,
        "subscription_id": after.subscription_id,
        "routing_url": after.routing_url,
        "record_calls": after.record_calls,
        "updated_at": to_micros(now),
    }
    _INSERT.run(connection, values)
    connection.execute(
        sa.update(masking_settings)
        .where(masking_settings.c.account_sid == after.account_sid)
        .values(**values)
    )


def _save_subscription(
    connection: Connection, before: MaskingSettings, after: MaskingSettings, now: datetime
) -> None:
    sid = after.subscription_id or ""
    values: dict[str, Any] = {
        "url": after.webhook_url,
        "secret": seal(connection, subscriptions.c.secret, sid, after.webhook_secret),
        "is_active": after.webhook_active,
        "updated_at": to_micros(now),
    }
    if before.subscription_id == sid:
        connection.execute(
            sa.update(subscriptions).where(subscriptions.c.subscription_id == sid).values(**values)
        )
        return
    connection.execute(
        sa.insert(subscriptions).values(
            subscription_id=sid,
            account_sid=after.account_sid,
            service=SERVICE,
            event_types=pack(WEBHOOK_EVENTS),
            description=None,
            created_at=to_micros(now),
            **values,
        )
    )
