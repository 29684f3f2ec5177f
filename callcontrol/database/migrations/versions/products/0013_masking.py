"""Number masking: calls and settings."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_ORDER = ("created_at", "call_sid")
_SUMS = ("outcome", "connected", "bill_duration_sec", "price_paise")
_INDEXES = (
    ("list", (*_ORDER, *_SUMS), None),
    ("direction", ("direction", *_ORDER), None),
    ("caller", ("caller_number", *_ORDER, "outcome"), None),
    ("target", ("target_number", *_ORDER, "outcome"), None),
    ("outcome", ("outcome", *_ORDER), "outcome IS NOT NULL"),
    ("session", ("session_id", *_ORDER), "session_id IS NOT NULL"),
    ("live", _ORDER, "outcome IS NULL"),
)


def upgrade() -> None:
    op.create_table(
        "masked_calls",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text()),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("caller_number", sa.Text(), nullable=False),
        sa.Column("target_number", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text()),
        sa.Column("connected", sa.Boolean(), nullable=False),
        sa.Column("bill_duration_sec", sa.BigInteger()),
        sa.Column("price_paise", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call_sid", name=op.f("pk_masked_calls")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_masked_calls_account_sid")
        ),
    )
    for name, columns, condition in _INDEXES:
        where = sa.text(condition) if condition is not None else None
        op.create_index(
            op.f(f"ix_masked_calls_{name}"),
            "masked_calls",
            ["account_sid", *columns],
            sqlite_where=where,
            postgresql_where=where,
        )
    op.create_table(
        "masking_settings",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("subscription_id", sa.Text()),
        sa.Column("routing_url", sa.Text()),
        sa.Column("record_calls", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_sid", name=op.f("pk_masking_settings")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_masking_settings_account_sid")
        ),
    )


def downgrade() -> None:
    op.drop_table("masking_settings")
    op.drop_table("masked_calls")
