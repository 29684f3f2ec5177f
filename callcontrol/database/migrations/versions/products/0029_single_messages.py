"""Index of queued single messages, which go before those of campaigns."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_SINGLE = sa.text("status = 'queued' AND campaign_id IS NULL")


def upgrade() -> None:
    op.create_index(
        op.f("ix_chat_messages_single"),
        "chat_messages",
        ["account_sid", "due_at"],
        sqlite_where=_SINGLE,
        postgresql_where=_SINGLE,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_chat_messages_single"), table_name="chat_messages")
