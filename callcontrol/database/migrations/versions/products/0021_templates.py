"""Channels and templates of messaging."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("number", sa.Text()),
        sa.Column("display_name", sa.Text()),
        sa.Column("is_connected", sa.Boolean(), nullable=False),
        sa.Column("messages_per_second", sa.BigInteger()),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_sid", name=op.f("pk_channels")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_channels_account_sid")
        ),
    )
    _templates()
    op.create_table(
        "template_withdrawals",
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("network_ref", sa.Text()),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("reference", name=op.f("pk_template_withdrawals")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_template_withdrawals_account_sid")
        ),
    )
    op.create_index(op.f("ix_template_withdrawals_due"), "template_withdrawals", ["due_at"])


def _templates() -> None:
    op.create_table(
        "templates",
        sa.Column("template_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("variables", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("network_ref", sa.Text()),
        sa.Column("rejection_reason", sa.Text()),
        sa.Column("check_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("template_id", name=op.f("pk_templates")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_templates_account_sid")
        ),
        sqlite_autoincrement=True,
    )
    name = ["account_sid", "name", "language"]
    op.create_index(op.f("uq_templates_name"), "templates", name, unique=True)
    op.create_index(op.f("uq_templates_reference"), "templates", ["reference"], unique=True)
    op.create_index(op.f("ix_templates_list"), "templates", ["account_sid", "status", "template_id"])
    due = sa.text("check_at IS NOT NULL")
    op.create_index(
        op.f("ix_templates_due"), "templates", ["check_at"], sqlite_where=due, postgresql_where=due
    )


def downgrade() -> None:
    op.drop_table("template_withdrawals")
    op.drop_table("templates")
    op.drop_table("channels")
