"""Purchase and renewal of numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OF_NUMBERS = (
    ("region", sa.Text),
    ("order_id", sa.Text),
    ("billing_anchor_at", sa.BigInteger),
    ("paid_months", sa.BigInteger),
    ("next_billing_at", sa.BigInteger),
    ("payment_deadline_at", sa.BigInteger),
)
_OPEN = sa.text("state IN ('pending', 'releasing')")
_DUE = sa.text("next_billing_at IS NOT NULL AND deleted_at IS NULL")


def upgrade() -> None:
    for name, kind in _OF_NUMBERS:
        op.add_column("phone_numbers", sa.Column(name, kind()))
    op.create_index(
        "ix_phone_numbers_due",
        "phone_numbers",
        ["next_billing_at", "phone_number_id"],
        sqlite_where=_DUE,
        postgresql_where=_DUE,
    )
    op.create_table(
        "number_orders",
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("live_ref", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("months", sa.BigInteger(), nullable=False),
        sa.Column("total_paise", sa.BigInteger(), nullable=False),
        sa.Column("phone_number_id", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("order_id", name=op.f("pk_number_orders")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_number_orders_account_sid")
        ),
    )
    op.create_index("ix_number_orders_account_sid_created_at", "number_orders", ["account_sid", "created_at"])
    op.create_index(
        "ix_number_orders_open",
        "number_orders",
        ["created_at"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )


def downgrade() -> None:
    op.drop_table("number_orders")
    op.drop_index("ix_phone_numbers_due", "phone_numbers")
    for name, _ in _OF_NUMBERS:
        op.drop_column("phone_numbers", name)
