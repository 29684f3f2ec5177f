"""Orders of phone numbers, so that no started purchase is lost."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, partial_index, text, whole

number_orders: Final = sa.Table(
    "number_orders",
    metadata,
    sa.Column("order_id", sa.Text, primary_key=True),
    account(),
    text("live_ref", nullable=False),
    text("number", nullable=False),
    text("state", nullable=False),
    whole("months", nullable=False),
    whole("total_paise", nullable=False),
    text("phone_number_id"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
)
sa.Index("ix_number_orders_account_sid_created_at", number_orders.c.account_sid, number_orders.c.created_at)
# Orders whose number may have to be returned; few rows, however many numbers were sold.
partial_index(
    "ix_number_orders_open",
    number_orders.c.created_at,
    where=number_orders.c.state.in_(["pending", "releasing"]),
)
