"""Messages over a messaging network, in both directions, and how fast each account may send."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, text, whole

chat_messages: Final = sa.Table(
    "chat_messages",
    metadata,
    sa.Column("message_id", sa.Text, primary_key=True),
    account(),
    text("direction", nullable=False),
    text("from_number", nullable=False),
    text("to_number", nullable=False),
    text("type", nullable=False),
    text("content", nullable=False),
    text("status", nullable=False),
    whole("campaign_id"),
    text("network_ref"),
    text("error_code"),
    text("error_message"),
    whole("created_at", nullable=False),
    whole("due_at", nullable=False),
    whole("sent_at"),
    whole("delivered_at"),
    whole("read_at"),
    whole("failed_at"),
    # Which process hands it to the network, until when it is that one's alone, and how often that failed.
    text("node", nullable=False),
    whole("leased_until", nullable=False),
    whole("attempts", nullable=False),
)
sa.Index(
    "ix_chat_messages_list",
    chat_messages.c.account_sid,
    chat_messages.c.created_at,
    chat_messages.c.message_id,
)
sa.Index(
    "ix_chat_messages_to",
    chat_messages.c.account_sid,
    chat_messages.c.to_number,
    chat_messages.c.created_at,
    chat_messages.c.message_id,
)
# The states of a campaign's messages are counted from this index alone.
sa.Index(
    "ix_chat_messages_campaign",
    chat_messages.c.campaign_id,
    chat_messages.c.status,
    chat_messages.c.error_code,
    sqlite_where=chat_messages.c.campaign_id.is_not(None),
    postgresql_where=chat_messages.c.campaign_id.is_not(None),
)
# What waits for the network, account by account.
sa.Index(
    "ix_chat_messages_queued",
    chat_messages.c.account_sid,
    chat_messages.c.due_at,
    sqlite_where=chat_messages.c.status == "queued",
    postgresql_where=chat_messages.c.status == "queued",
)
# What the network may still tell of.
_under_way: Final = chat_messages.c.status.in_(["sent", "delivered"])
sa.Index(
    "ix_chat_messages_under_way",
    chat_messages.c.sent_at,
    chat_messages.c.message_id,
    sqlite_where=_under_way,
    postgresql_where=_under_way,
)

chat_paces: Final = sa.Table(
    "chat_paces",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    # When the last message that was let through would have left, had all been evenly spaced.
    whole("reached_at", nullable=False),
)
