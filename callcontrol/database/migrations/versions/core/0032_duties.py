"""Duties that one of several servers has."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "duties",
        sa.Column("duty", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("duty", name=op.f("pk_duties")),
    )


def downgrade() -> None:
    op.drop_table("duties")
