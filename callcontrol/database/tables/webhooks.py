"""Deliveries of webhooks."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, account, metadata, partial_index, text, whole

deliveries: Final = sa.Table(
    "webhook_deliveries",
    metadata,
    # Rows are numbered in order of publication, which is the order of a call's events.
    sa.Column("position", SERIAL, primary_key=True),
    sa.Column("delivery_id", sa.Text, nullable=False, unique=True),
    text("event_id", nullable=False),
    account(),
    # None for a delivery to the URL given for the call itself.
    text("subscription_id"),
    text("call_sid"),
    text("event", nullable=False),
    text("method", nullable=False),
    text("url", nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    text("status", nullable=False),
    whole("attempts", nullable=False),
    whole("next_attempt_at", nullable=False),
    text("node", nullable=False),
    whole("leased_until", nullable=False),
    whole("response_code", nullable=False),
    text("last_error"),
    whole("created_at", nullable=False),
    whole("delivered_at"),
    # JSON: the newest attempts, with the beginning of what was answered.
    text("attempt_log"),
)
partial_index(
    "ix_webhook_deliveries_pending",
    deliveries.c.next_attempt_at,
    where=deliveries.c.status == "pending",
)
# The older deliveries of its call, which a delivery has to wait for.
sa.Index("ix_webhook_deliveries_call_sid_position", deliveries.c.call_sid, deliveries.c.position)
sa.Index("ix_webhook_deliveries_account_sid_created_at", deliveries.c.account_sid, deliveries.c.created_at)
# The log of a subscription, newest first.
partial_index(
    "ix_webhook_deliveries_subscription",
    deliveries.c.subscription_id,
    deliveries.c.position,
    where=deliveries.c.subscription_id.is_not(None),
)
# Pending deliveries of subscriptions, for pausing, deletion and a change of URL.
_waits: Final = sa.and_(deliveries.c.subscription_id.is_not(None), deliveries.c.status == "pending")
partial_index(
    "ix_webhook_deliveries_subscription_pending",
    deliveries.c.subscription_id,
    where=_waits,
)
# Failed deliveries for bulk replays: few rows, and none to a call's own URL.
partial_index(
    "ix_webhook_deliveries_failed",
    deliveries.c.subscription_id,
    deliveries.c.created_at,
    where=sa.text("status = 'failed' AND subscription_id IS NOT NULL"),
)
