"""Calls with voice agents: transcripts, lists and analytics; names of API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_ORDER = ("created_at", "call_sid")
_SUMS = ("sandbox", "outcome", "duration_sec", "price_paise")
_INDEXES = (
    ("list", (*_ORDER, *_SUMS), None),
    ("agent", ("agent_id", *_ORDER, *_SUMS), None),
    ("number", ("phone_number", *_ORDER), None),
    ("outcome", ("outcome", *_ORDER), "outcome IS NOT NULL"),
    ("live", _ORDER, "outcome IS NULL"),
)


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
    op.create_table(
        "assistant_calls",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text()),
        sa.Column("duration_sec", sa.BigInteger()),
        sa.Column("price_paise", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call_sid", name=op.f("pk_assistant_calls")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_assistant_calls_account_sid")
        ),
    )
    for name, columns, condition in _INDEXES:
        where = sa.text(condition) if condition is not None else None
        op.create_index(
            op.f(f"ix_assistant_calls_{name}"),
            "assistant_calls",
            ["account_sid", *columns],
            sqlite_where=where,
            postgresql_where=where,
        )
    op.add_column("api_keys", sa.Column("name", sa.Text()))
    op.add_column("api_keys", sa.Column("environment", sa.Text()))
    op.add_column("accounts", sa.Column("assistant_requests_per_minute", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("accounts", "assistant_requests_per_minute")
    op.drop_column("api_keys", "environment")
    op.drop_column("api_keys", "name")
    op.drop_table("assistant_calls")
    op.drop_table("transcript_segments")
