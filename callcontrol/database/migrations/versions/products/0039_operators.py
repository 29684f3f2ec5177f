"""Operators of the console and what they changed, and the log of the attempts at a webhook's delivery."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

# SQLite autoincrements only columns whose type is spelled INTEGER.
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("webhook_deliveries", sa.Column("attempt_log", sa.Text()))
    op.create_table(
        "operator_sessions",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("operator", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_operator_sessions")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_operator_sessions_account_sid_accounts")
        ),
    )
    op.create_index(op.f("ix_operator_sessions_expires_at"), "operator_sessions", ["expires_at"])
    op.create_table(
        "operator_actions",
        sa.Column("position", _SERIAL, nullable=False),
        sa.Column("operator", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_operator_actions")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_operator_actions_account_sid")
        ),
    )


def downgrade() -> None:
    op.drop_table("operator_actions")
    op.drop_table("operator_sessions")
    op.drop_column("webhook_deliveries", "attempt_log")
