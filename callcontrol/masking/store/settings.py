"""Masking settings of accounts, read with the subscription of the masking webhook."""

from dataclasses import replace
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.encryption import unseal
from callcontrol.database.statements import Statement, insert_into, to_micros, to_moment
from callcontrol.database.tables.masking import masking_settings
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.masking.settings import MaskingSettings

_OF: Final = Statement(
    sa.select(
        masking_settings,
        subscriptions.c.url,
        subscriptions.c.secret,
        subscriptions.c.is_active,
        subscriptions.c.updated_at.label("webhook_updated_at"),
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
    # The webhook changes alone when its server answers 410.
    updated_at = max(row["updated_at"], row["webhook_updated_at"])
    return replace(
        stored,
        updated_at=to_moment(updated_at),
        subscription_id=subscription_id,
        webhook_url=row["url"],
        webhook_secret=unseal(connection, subscriptions.c.secret, subscription_id, row["secret"]),
        webhook_active=bool(row["is_active"]),
    )


def save(connection: Connection, settings: MaskingSettings, now: datetime) -> None:
    """Write the settings of an account, without the subscription itself."""
    values = {
        "account_sid": settings.account_sid,
        "subscription_id": settings.subscription_id,
        "routing_url": settings.routing_url,
        "record_calls": settings.record_calls,
        "updated_at": to_micros(now),
    }
    _INSERT.run(connection, values)
    connection.execute(
        sa.update(masking_settings)
        .where(masking_settings.c.account_sid == settings.account_sid)
        .values(**values)
    )
