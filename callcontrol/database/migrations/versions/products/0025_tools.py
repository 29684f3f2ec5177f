"""Tools of accounts and their usage."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def _account(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["account_sid"], ["accounts.account_sid"], name=op.f(f"fk_{table}_account_sid")
    )


def upgrade() -> None:
    op.create_table(
        "tools",
        sa.Column("tool_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text()),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        _account("tools"),
        sa.PrimaryKeyConstraint("tool_id", name=op.f("pk_tools")),
        sa.UniqueConstraint("account_sid", "name", name=op.f("uq_tools_account_sid_name")),
    )
    op.create_table(
        "disabled_tools",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        _account("disabled_tools"),
        sa.PrimaryKeyConstraint("account_sid", "name", name=op.f("pk_disabled_tools")),
    )
    op.create_table(
        "tool_changes",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        _account("tool_changes"),
        sa.PrimaryKeyConstraint("account_sid", name=op.f("pk_tool_changes")),
    )
    op.create_index(op.f("ix_tool_changes_revision"), "tool_changes", ["revision"])
    op.create_table(
        "tool_usage",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.BigInteger(), nullable=False),
        sa.Column("total_ms", sa.BigInteger(), nullable=False),
        sa.Column("max_ms", sa.BigInteger(), nullable=False),
        _account("tool_usage"),
        sa.PrimaryKeyConstraint("account_sid", "day", "tool", "key_id", name=op.f("pk_tool_usage")),
    )
    op.create_index(op.f("ix_tool_usage_day"), "tool_usage", ["day"])


def downgrade() -> None:
    for table in ("tool_usage", "tool_changes", "disabled_tools", "tools"):
        op.drop_table(table)
