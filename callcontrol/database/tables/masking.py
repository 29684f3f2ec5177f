"""Number masking: its calls as its lists and statistics read them, and what an account has set."""

from typing import Any, Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, text, whole

# What lists are narrowed by and statistics add up, taken from the record of the call in the transactions that
# write that; everything else about the call is in its record.
masked_calls: Final = sa.Table(
    "masked_calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    text("session_id"),
    text("direction", nullable=False),
    text("caller_number", nullable=False),
    text("target_number"),
    # Changes with every step of the call, and therefore stands in no index.
    text("status", nullable=False),
    # The status once it is final, with what it came to: written once, when the call has ended.
    text("outcome"),
    flag("connected"),
    whole("bill_duration_sec"),
    whole("price_paise"),
    whole("created_at", nullable=False),
)
_ORDER: Final = (masked_calls.c.created_at, masked_calls.c.call_sid)


def _index(name: str, *columns: sa.Column[Any], where: sa.ColumnElement[bool] | None = None) -> None:
    sa.Index(name, masked_calls.c.account_sid, *columns, sqlite_where=where, postgresql_where=where)


# Behind the order of the list stands all that statistics add up.
_index(
    "ix_masked_calls_list",
    *_ORDER,
    masked_calls.c.outcome,
    masked_calls.c.connected,
    masked_calls.c.bill_duration_sec,
    masked_calls.c.price_paise,
)
_index("ix_masked_calls_direction", masked_calls.c.direction, *_ORDER)
# How the calls of somebody went is asked most; the outcome behind the order answers that from the index too.
_index("ix_masked_calls_caller", masked_calls.c.caller_number, *_ORDER, masked_calls.c.outcome)
_index("ix_masked_calls_target", masked_calls.c.target_number, *_ORDER, masked_calls.c.outcome)
_index("ix_masked_calls_outcome", masked_calls.c.outcome, *_ORDER, where=masked_calls.c.outcome.is_not(None))
_index(
    "ix_masked_calls_session",
    masked_calls.c.session_id,
    *_ORDER,
    where=masked_calls.c.session_id.is_not(None),
)
# What is up: a handful of rows however many calls there were.
_index("ix_masked_calls_live", *_ORDER, where=masked_calls.c.outcome.is_(None))

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
