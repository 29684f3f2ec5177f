"""Messages over a messaging network, in both directions, and the send rate of each account."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, partial_index, text, whole

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
    # Process that submits the message, end of its lease, and number of failures.
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
# The statuses of a campaign's messages are counted from this index alone.
partial_index(
    "ix_chat_messages_campaign",
    chat_messages.c.campaign_id,
    chat_messages.c.status,
    chat_messages.c.error_code,
    where=chat_messages.c.campaign_id.is_not(None),
)
# Messages waiting for the network, by account.
partial_index(
    "ix_chat_messages_queued",
    chat_messages.c.account_sid,
    chat_messages.c.due_at,
    where=chat_messages.c.status == "queued",
)
# Single ones among them, which go before those of campaigns.
partial_index(
    "ix_chat_messages_single",
    chat_messages.c.account_sid,
    chat_messages.c.due_at,
    where=sa.and_(chat_messages.c.status == "queued", chat_messages.c.campaign_id.is_(None)),
)
# Messages that the network may still report on.
_under_way: Final = chat_messages.c.status.in_(["sent", "delivered"])
partial_index(
    "ix_chat_messages_under_way",
    chat_messages.c.sent_at,
    chat_messages.c.message_id,
    where=_under_way,
)

chat_paces: Final = sa.Table(
    "chat_paces",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    # Send time of the last admitted message if all were evenly spaced.
    whole("reached_at", nullable=False),
)
