"""Listeners of calls."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "call_listeners",
        sa.Column("listener_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("listened_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("reason", sa.Text()),
        sa.PrimaryKeyConstraint("listener_sid", name=op.f("pk_call_listeners")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_call_listeners_account_sid")
        ),
    )
    op.create_index(op.f("ix_call_listeners_call_sid"), "call_listeners", ["call_sid"])


def downgrade() -> None:
    op.drop_table("call_listeners")
