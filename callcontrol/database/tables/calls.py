"""Calls, dialogs that a killed process left, and who listened to calls."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, partial_index, text, whole

calls: Final = sa.Table(
    "calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    text("parent_call_sid"),
    text("direction", nullable=False),
    text("from_number", nullable=False),
    text("to_number", nullable=False),
    text("status", nullable=False),
    # The final status. A separate column, because an index over ``status`` would change at every step of a
    # call, and PostgreSQL would update all other indexes with it.
    text("outcome"),
    text("answered_by"),
    text("carrier_sid"),
    text("gateway_sid"),
    text("phone_number_id"),
    text("app_sid"),
    text("stream"),
    whole("created_at", nullable=False),
    whole("ringing_at"),
    whole("answered_at"),
    whole("ended_at"),
    whole("duration_sec"),
    whole("bill_duration_sec"),
    text("hangup_cause"),
    whole("hangup_cause_code"),
    text("hangup_source"),
    whole("sip_status"),
    text("sip_reason"),
    text("sip_call_id"),
    text("sip"),
    whole("price_paise"),
    text("currency", nullable=False),
    text("recording_url"),
    text("recording_path"),
    text("recording_status"),
    text("quality"),
    text("tag"),
    text("status_webhook_url"),
    text("status_webhook_events"),
    text("product"),
    text("details"),
    whole("sequence", nullable=False),
    text("node", nullable=False),
    # Dialog state to end its legs if its process is killed; None once the call has ended.
    text("dialogs"),
)

# Legs of closed calls whose peers have not been notified yet, by the node that notifies them.
former_dialogs: Final = sa.Table(
    "former_dialogs",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    text("node", nullable=False),
    text("dialogs", nullable=False),
    sqlite_with_rowid=False,
)

# Who listened to a call; written before anything could be heard. `listened_by` is the id of a key, or an
# operator. Without `ended_at` a killed process has ended it, with the call.
call_listeners: Final = sa.Table(
    "call_listeners",
    metadata,
    sa.Column("listener_sid", sa.Text, primary_key=True),
    account(),
    text("call_sid", nullable=False),
    text("listened_by", nullable=False),
    whole("created_at", nullable=False),
    whole("ended_at"),
    text("reason"),
)
sa.Index("ix_call_listeners_call_sid", call_listeners.c.call_sid)

# Lists are ordered by (created_at, call_sid), newest first. Each index has the columns of the order, so that
# counting and skipping use the index alone; indexed columns never change once set.
_ORDER: Final = (calls.c.created_at, calls.c.call_sid)
sa.Index("ix_calls_list", calls.c.account_sid, *_ORDER)
sa.Index("ix_calls_list_direction", calls.c.account_sid, calls.c.direction, *_ORDER)
sa.Index("ix_calls_list_from", calls.c.account_sid, calls.c.from_number, *_ORDER)
sa.Index("ix_calls_list_to", calls.c.account_sid, calls.c.to_number, *_ORDER)
partial_index(
    "ix_calls_list_outcome",
    calls.c.account_sid,
    calls.c.outcome,
    *_ORDER,
    where=calls.c.outcome.is_not(None),
)
# Active calls, and calls that a restart must reconcile; few rows, however many calls there were.
partial_index("ix_calls_unfinished", calls.c.account_sid, *_ORDER, where=calls.c.ended_at.is_(None))
