"""Messages over a messaging network."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chat_messages",
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("direction", "from_number", "to_number", "type", "content", "status")
        ),
        sa.Column("campaign_id", sa.BigInteger()),
        *(sa.Column(name, sa.Text()) for name in ("network_ref", "error_code", "error_message")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("created_at", "due_at")),
        *(sa.Column(name, sa.BigInteger()) for name in ("sent_at", "delivered_at", "read_at", "failed_at")),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_chat_messages")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_chat_messages_account_sid")
        ),
    )
    order = ["created_at", "message_id"]
    _index("ix_chat_messages_list", ["account_sid", *order])
    _index("ix_chat_messages_to", ["account_sid", "to_number", *order])
    _index(
        "ix_chat_messages_campaign",
        ["campaign_id", "status", "error_code"],
        only="campaign_id IS NOT NULL",
    )
    _index("ix_chat_messages_queued", ["account_sid", "due_at"], only="status = 'queued'")
    _index("ix_chat_messages_under_way", ["sent_at", "message_id"], only="status IN ('sent', 'delivered')")
    op.create_table(
        "chat_paces",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("reached_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_sid", name=op.f("pk_chat_paces")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_chat_paces_account_sid")
        ),
    )


def _index(name: str, columns: list[str], *, only: str | None = None) -> None:
    where = sa.text(only) if only is not None else None
    op.create_index(op.f(name), "chat_messages", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_table("chat_paces")
    op.drop_table("chat_messages")
