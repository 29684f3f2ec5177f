"""Calls with voice agents: transcripts, lists and analytics."""

from typing import Any, Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, partial_index, text, whole

# One row per utterance, numbered within its call, so that a repetition writes none twice.
transcript_segments: Final = sa.Table(
    "transcript_segments",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    account(),
    text("role", nullable=False),
    text("text", nullable=False),
    whole("start_ms", nullable=False),
    whole("end_ms"),
)

# Columns for filters of lists and for analytics, copied from the call's record in the transactions that write
# it; everything else about the call is in its record.
assistant_calls: Final = sa.Table(
    "assistant_calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    text("agent_id", nullable=False),
    text("direction", nullable=False),
    text("phone_number", nullable=False),
    flag("sandbox"),
    # Changes with every step of the call, so it is in no index.
    text("status", nullable=False),
    # The final status, with the results: written once, when the call has ended.
    text("outcome"),
    whole("duration_sec"),
    whole("price_paise"),
    whole("created_at", nullable=False),
)
_ORDER: Final = (assistant_calls.c.created_at, assistant_calls.c.call_sid)
_SUMS: Final = (
    assistant_calls.c.sandbox,
    assistant_calls.c.outcome,
    assistant_calls.c.duration_sec,
    assistant_calls.c.price_paise,
)


def _index(name: str, *columns: sa.Column[Any], where: sa.ColumnElement[bool] | None = None) -> None:
    partial_index(name, assistant_calls.c.account_sid, *columns, where=where)


# All columns of the analytics follow the order of the lists.
_index("ix_assistant_calls_list", *_ORDER, *_SUMS)
_index("ix_assistant_calls_agent", assistant_calls.c.agent_id, *_ORDER, *_SUMS)
_index("ix_assistant_calls_number", assistant_calls.c.phone_number, *_ORDER)
_index(
    "ix_assistant_calls_outcome",
    assistant_calls.c.outcome,
    *_ORDER,
    where=assistant_calls.c.outcome.is_not(None),
)
# Active calls: few rows, however many calls there were.
_index("ix_assistant_calls_live", *_ORDER, where=assistant_calls.c.outcome.is_(None))
