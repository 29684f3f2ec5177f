"""Conferences of several servers, and their SIP addresses for each other."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "conferences",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account_sid", "name", name=op.f("pk_conferences")),
    )
    op.add_column("nodes", sa.Column("sip_address", sa.Text()))


def downgrade() -> None:
    op.drop_column("nodes", "sip_address")
    op.drop_table("conferences")
