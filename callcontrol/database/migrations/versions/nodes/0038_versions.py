"""Versions of the nodes, and the oldest one that runs on this schema."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schema_compatibility",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("oldest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schema_compatibility")),
    )
    op.add_column("nodes", sa.Column("version", sa.Text()))
    op.add_column("nodes", sa.Column("schema_revision", sa.Text()))


def downgrade() -> None:
    op.drop_column("nodes", "schema_revision")
    op.drop_column("nodes", "version")
    op.drop_table("schema_compatibility")
