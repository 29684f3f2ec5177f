"""Voicemail messages."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "messages",
        sa.Column("message_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("path", sa.Text()),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_messages_account_sid")
        ),
        sa.PrimaryKeyConstraint("message_sid", name=op.f("pk_messages")),
    )
    op.create_index(op.f("ix_messages_call_sid"), "messages", ["call_sid", "created_at"])
    kept = sa.text("path IS NOT NULL")
    op.create_index(
        op.f("ix_messages_kept"),
        "messages",
        ["account_sid", "created_at"],
        sqlite_where=kept,
        postgresql_where=kept,
    )


def downgrade() -> None:
    op.drop_table("messages")
