"""Leases of the servers that share a PostgreSQL database."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "nodes",
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("adopted_by", sa.Text()),
        sa.PrimaryKeyConstraint("node", name=op.f("pk_nodes")),
        sa.UniqueConstraint("node", "incarnation", name=op.f("uq_nodes_node_incarnation")),
    )


def downgrade() -> None:
    op.drop_table("nodes")
