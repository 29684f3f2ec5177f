"""Applications."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "applications",
        sa.Column("app_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("binding", sa.Text(), nullable=False),
        sa.Column("record_all_calls", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_applications_account_sid")
        ),
        sa.PrimaryKeyConstraint("app_sid", name=op.f("pk_applications")),
    )
    op.create_index("ix_applications_account_sid_created_at", "applications", ["account_sid", "created_at"])
    op.create_index("ix_applications_revision", "applications", ["revision"])


def downgrade() -> None:
    op.drop_table("applications")
