"""Webhook endpoints of messaging: the numbers of its subscriptions."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhook_endpoints",
        sa.Column(
            "endpoint_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("subscription_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("endpoint_id", name=op.f("pk_webhook_endpoints")),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["webhook_subscriptions.subscription_id"],
            name=op.f("fk_webhook_endpoints_subscription_id"),
        ),
        sa.UniqueConstraint("subscription_id", name=op.f("uq_webhook_endpoints_subscription_id")),
        sqlite_autoincrement=True,
    )
    # Subscriptions kept through a downgrade get new numbers.
    op.execute(
        "INSERT INTO webhook_endpoints (subscription_id) SELECT subscription_id FROM webhook_subscriptions"
        " WHERE service = 'messaging' ORDER BY created_at, subscription_id"
    )


def downgrade() -> None:
    op.drop_table("webhook_endpoints")
