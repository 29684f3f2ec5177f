"""Webhook subscriptions and their deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhook_subscriptions",
        sa.Column("subscription_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text()),
        sa.Column("event_types", sa.Text(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subscription_id", name=op.f("pk_webhook_subscriptions")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_webhook_subscriptions_account_sid")
        ),
    )
    op.create_index(
        op.f("ix_webhook_subscriptions_list"), "webhook_subscriptions", ["account_sid", "service"]
    )
    op.add_column("webhook_deliveries", sa.Column("subscription_id", sa.Text()))
    subscribed = sa.text("subscription_id IS NOT NULL")
    op.create_index(
        op.f("ix_webhook_deliveries_subscription"),
        "webhook_deliveries",
        ["subscription_id", "position"],
        sqlite_where=subscribed,
        postgresql_where=subscribed,
    )
    waiting = sa.text("subscription_id IS NOT NULL AND status = 'pending'")
    op.create_index(
        op.f("ix_webhook_deliveries_subscription_pending"),
        "webhook_deliveries",
        ["subscription_id"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    failed = sa.text("status = 'failed' AND subscription_id IS NOT NULL")
    op.create_index(
        op.f("ix_webhook_deliveries_failed"),
        "webhook_deliveries",
        ["subscription_id", "created_at"],
        sqlite_where=failed,
        postgresql_where=failed,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_webhook_deliveries_subscription_pending"), "webhook_deliveries")
    op.drop_index(op.f("ix_webhook_deliveries_failed"), "webhook_deliveries")
    op.drop_index(op.f("ix_webhook_deliveries_subscription"), "webhook_deliveries")
    op.drop_column("webhook_deliveries", "subscription_id")
    op.drop_table("webhook_subscriptions")
