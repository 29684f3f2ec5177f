"""Voicemail messages: files beside the recordings of calls."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, partial_index, text, whole

messages: Final = sa.Table(
    "messages",
    metadata,
    sa.Column("message_sid", sa.Text, primary_key=True),
    account(),
    text("call_sid", nullable=False),
    text("node", nullable=False),
    # None if the file was deleted.
    text("path"),
    whole("duration_ms", nullable=False),
    whole("created_at", nullable=False),
)
sa.Index("ix_messages_call_sid", messages.c.call_sid, messages.c.created_at)
# Messages of an account for deletion, oldest first.
partial_index(
    "ix_messages_kept",
    messages.c.account_sid,
    messages.c.created_at,
    where=messages.c.path.is_not(None),
)
