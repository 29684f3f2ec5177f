"""Masking sessions and their mappings."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _sessions()
    op.create_table(
        "masking_mappings",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("caller_number", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("masked_number", sa.Text(), nullable=False),
        sa.Column("target_number", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("session_id", "caller_number", name=op.f("pk_masking_mappings")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["masking_sessions.session_id"], name=op.f("fk_masking_mappings_session_id")
        ),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_masking_mappings_account_sid")
        ),
        sqlite_with_rowid=False,
    )
    live = sa.text("ended_at IS NULL")
    op.create_index(
        op.f("uq_masking_mappings_caller"),
        "masking_mappings",
        ["account_sid", "caller_number", "masked_number"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_index(op.f("ix_masking_mappings_party"), "masking_mappings", ["account_sid", "caller_number"])


def _sessions() -> None:
    op.create_table(
        "masking_sessions",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("party_a", sa.Text(), nullable=False),
        sa.Column("party_b", sa.Text(), nullable=False),
        sa.Column("masked_number", sa.Text(), nullable=False),
        sa.Column("call_time_limit_sec", sa.BigInteger()),
        sa.Column("record", sa.Boolean()),
        sa.Column("geo_match", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.Text()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_masking_sessions")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_masking_sessions_account_sid")
        ),
    )
    order = ["created_at", "session_id"]
    _index("ix_masking_sessions_list", ["account_sid", *order])
    _index("ix_masking_sessions_number", ["account_sid", "masked_number", *order])
    _index("ix_masking_sessions_ended", ["account_sid", "ended", *order], only="ended IS NOT NULL")
    _index("ix_masking_sessions_open", ["account_sid", *order, "expires_at"], only="ended IS NULL")
    _index("ix_masking_sessions_due", ["expires_at"], only="ended IS NULL")


def _index(name: str, columns: list[str], *, only: str | None = None) -> None:
    where = sa.text(only) if only is not None else None
    op.create_index(op.f(name), "masking_sessions", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_table("masking_mappings")
    op.drop_table("masking_sessions")
