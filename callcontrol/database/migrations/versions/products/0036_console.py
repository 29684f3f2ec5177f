"""Sessions of the console, and the links that open one."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_sessions",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_console_sessions")),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.key_id"], name=op.f("fk_console_sessions_key_id_api_keys")
        ),
    )
    op.create_index(op.f("ix_console_sessions_key_id"), "console_sessions", ["key_id", "created_at"])
    op.create_index(op.f("ix_console_sessions_expires_at"), "console_sessions", ["expires_at"])


def downgrade() -> None:
    op.drop_table("console_sessions")
