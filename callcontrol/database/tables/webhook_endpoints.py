"""Numbers of messaging's webhook subscriptions."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, metadata

webhook_endpoints: Final = sa.Table(
    "webhook_endpoints",
    metadata,
    sa.Column("endpoint_id", SERIAL, primary_key=True, autoincrement=True),
    sa.Column(
        "subscription_id",
        sa.Text,
        sa.ForeignKey("webhook_subscriptions.subscription_id"),
        nullable=False,
        unique=True,
    ),
    # No number is reused, even after the highest one was deleted.
    sqlite_autoincrement=True,
)
