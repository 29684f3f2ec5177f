"""Webhook subscriptions: URLs and signing secrets of events not bound to a call's own URL."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, text, whole

subscriptions: Final = sa.Table(
    "webhook_subscriptions",
    metadata,
    sa.Column("subscription_id", sa.Text, primary_key=True),
    account(),
    # Service of the events: calls, masking, assistant or messaging.
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
