"""Number masking: its calls as its lists and statistics read them, and what an account has set."""

from typing import Final

import sqlalchemy as sa

from callcontrol.store.tables.columns import account, flag, metadata, text, whole

# What lists are narrowed by and statistics add up, taken from the record of the call when that is inserted
# and when it has ended; everything else about the call is in its record.
masked_calls: Final = sa.Table(
    "masked_calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    text("session_id"),
    text("direction", nullable=False),
    text("caller_number", nullable=False),
    text("target_number"),
    text("masked_number", nullable=False),
    text("outcome"),
    whole("bill_duration_sec"),
    whole("price_paise"),
    whole("created_at", nullable=False),
)
_ORDER: Final = (masked_calls.c.created_at, masked_calls.c.call_sid)
sa.Index("ix_masked_calls_list", masked_calls.c.account_sid, *_ORDER)

masking_settings: Final = sa.Table(
    "masking_settings",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    # The subscription that masking webhooks go to.
    text("subscription_id"),
    text("routing_url"),
    flag("record_calls"),
    whole("updated_at", nullable=False),
)
