"""Limits of calls over all servers that share a PostgreSQL database."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0029"
branch_labels = None
depends_on = None

_RESERVES = "ix_reserves_account_sid"


def upgrade() -> None:
    op.add_column("wallets", sa.Column("paced_until", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "trunk_legs",
        sa.Column("leg", sa.Text(), nullable=False),
        sa.Column("sid", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("leg", "sid", name=op.f("pk_trunk_legs")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_trunk_legs_sid"), "trunk_legs", ["sid"])
    op.create_table(
        "trunk_paces",
        sa.Column("sid", sa.Text(), nullable=False),
        sa.Column("paced_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sid", name=op.f("pk_trunk_paces")),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index(op.f(_RESERVES), "reserves", ["account_sid"])


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index(op.f(_RESERVES), table_name="reserves")
    op.drop_table("trunk_paces")
    op.drop_index(op.f("ix_trunk_legs_sid"), table_name="trunk_legs")
    op.drop_table("trunk_legs")
    op.drop_column("wallets", "paced_until")
