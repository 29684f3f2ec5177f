"""Calls with voice agents: what was said, and how they are listed and counted."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "transcript_segments",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("call_sid", "number", name=op.f("pk_transcript_segments")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_transcript_segments_account_sid")
        ),
    )


def downgrade() -> None:
    op.drop_table("transcript_segments")
