"""Campaigns."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "campaigns",
        sa.Column("campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("template_id", sa.BigInteger(), nullable=False),
        sa.Column("template_name", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("body_parameters", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), nullable=False),
        sa.Column("scheduled_for", sa.BigInteger()),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("handed_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_campaigns_account_sid")
        ),
        sa.PrimaryKeyConstraint("campaign_id", name=op.f("pk_campaigns")),
        sa.UniqueConstraint("reference", name=op.f("uq_campaigns_reference")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_campaigns_list", "campaigns", ["account_sid", "created_at", "campaign_id"])
    unfinished = sa.text("state IN ('scheduled', 'running')")
    for name, column in (("ix_campaigns_open", "starts_at"), ("ix_campaigns_account_open", "account_sid")):
        op.create_index(name, "campaigns", [column], sqlite_where=unfinished, postgresql_where=unfinished)


def downgrade() -> None:
    op.drop_table("campaigns")
