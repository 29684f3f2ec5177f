"""Retention of recordings, and recordings marked for removal."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("accounts", sa.Column("recording_retention_days", sa.BigInteger()))
    op.create_table(
        "recording_removals",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("call_sid", name=op.f("pk_recording_removals")),
    )
    op.create_index(op.f("ix_recording_removals_node"), "recording_removals", ["node"])
    recorded = sa.text("recording_path IS NOT NULL")
    op.create_index(
        op.f("ix_calls_recorded"),
        "calls",
        ["account_sid", "ended_at", "call_sid"],
        sqlite_where=recorded,
        postgresql_where=recorded,
    )
    pending = sa.text("recording_status IN ('in-progress', 'paused')")
    op.create_index(
        op.f("ix_calls_recording"), "calls", ["node"], sqlite_where=pending, postgresql_where=pending
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_calls_recording"), table_name="calls")
    op.drop_index(op.f("ix_calls_recorded"), table_name="calls")
    op.drop_table("recording_removals")
    op.drop_column("accounts", "recording_retention_days")
