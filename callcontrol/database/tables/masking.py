"""Number masking: calls for lists and statistics, and settings of accounts."""

from typing import Any, Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, partial_index, text, whole

# Columns for filters of lists and for statistics, copied from the call's record by the transactions that
# write it; everything else about the call is in its record.
masked_calls: Final = sa.Table(
    "masked_calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    text("session_id"),
    text("direction", nullable=False),
    text("caller_number", nullable=False),
    text("target_number"),
    # Changes with every step of the call, so it is in no index.
    text("status", nullable=False),
    # The final status, with the results: written once, when the call has ended.
    text("outcome"),
    flag("connected"),
    whole("bill_duration_sec"),
    whole("price_paise"),
    whole("created_at", nullable=False),
)
_ORDER: Final = (masked_calls.c.created_at, masked_calls.c.call_sid)


def _index(name: str, *columns: sa.Column[Any], where: sa.ColumnElement[bool] | None = None) -> None:
    partial_index(name, masked_calls.c.account_sid, *columns, where=where)


# All columns of the statistics follow the order of the list.
_index(
    "ix_masked_calls_list",
    *_ORDER,
    masked_calls.c.outcome,
    masked_calls.c.connected,
    masked_calls.c.bill_duration_sec,
    masked_calls.c.price_paise,
)
_index("ix_masked_calls_direction", masked_calls.c.direction, *_ORDER)
# Outcomes by caller are the most frequent query; the outcome after the order lets the index answer it.
_index("ix_masked_calls_caller", masked_calls.c.caller_number, *_ORDER, masked_calls.c.outcome)
_index("ix_masked_calls_target", masked_calls.c.target_number, *_ORDER, masked_calls.c.outcome)
_index("ix_masked_calls_outcome", masked_calls.c.outcome, *_ORDER, where=masked_calls.c.outcome.is_not(None))
_index(
    "ix_masked_calls_session",
    masked_calls.c.session_id,
    *_ORDER,
    where=masked_calls.c.session_id.is_not(None),
)
# Active calls: few rows, however many calls there were.
_index("ix_masked_calls_live", *_ORDER, where=masked_calls.c.outcome.is_(None))

masking_settings: Final = sa.Table(
    "masking_settings",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    # The subscription for masking webhooks.
    text("subscription_id"),
    text("routing_url"),
    flag("record_calls"),
    whole("updated_at", nullable=False),
)
