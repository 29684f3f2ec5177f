"""Voice OTP."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "otps",
        sa.Column("otp_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text()),
        sa.Column("code_hash", sa.Text()),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("verified_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("otp_id", name=op.f("pk_otps")),
        sa.ForeignKeyConstraint(["account_sid"], ["accounts.account_sid"], name=op.f("fk_otps_account_sid")),
        sa.UniqueConstraint("call_sid", name=op.f("uq_otps_call_sid")),
    )
    op.create_index(op.f("ix_otps_account_sid_created_at"), "otps", ["account_sid", "created_at"])
    op.create_index(
        op.f("ix_otps_account_sid_to_number_created_at"), "otps", ["account_sid", "to_number", "created_at"]
    )
    kept = sa.text("code_hash IS NOT NULL")
    op.create_index(op.f("ix_otps_kept"), "otps", ["expires_at"], sqlite_where=kept, postgresql_where=kept)


def downgrade() -> None:
    op.drop_table("otps")
