"""Calls that belong to a product, and limits of accounts."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calls", sa.Column("product", sa.Text()))
    op.add_column("calls", sa.Column("details", sa.Text()))
    op.add_column("accounts", sa.Column("requests_per_minute", sa.BigInteger()))
    op.add_column("accounts", sa.Column("max_spend_paise_per_hour", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("accounts", "max_spend_paise_per_hour")
    op.drop_column("accounts", "requests_per_minute")
    op.drop_column("calls", "details")
    op.drop_column("calls", "product")
