"""Keys of vendors of speech models that accounts store."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_model_keys_account_sid")
        ),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_model_keys")),
        sa.UniqueConstraint("account_sid", "name", name=op.f("uq_model_keys_account_sid_name")),
    )


def downgrade() -> None:
    op.drop_table("model_keys")
