"""Drain of a node, asked for by its operator."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("draining_since", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("nodes", "draining_since")
