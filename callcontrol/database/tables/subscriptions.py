"""Subscriptions: where events go that are not of a call alone, and the secrets they are signed with."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, text, whole

subscriptions: Final = sa.Table(
    "webhook_subscriptions",
    metadata,
    sa.Column("subscription_id", sa.Text, primary_key=True),
    account(),
    # Whose events they are: of calls, of masking, of the voice assistant, of messaging.
    text("service", nullable=False),
    text("url", nullable=False),
    text("secret"),
    text("event_types", nullable=False),
    text("description"),
    flag("is_active"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
)
sa.Index("ix_webhook_subscriptions_list", subscriptions.c.account_sid, subscriptions.c.service)
