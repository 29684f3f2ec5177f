"""Recording status of a call."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calls", sa.Column("recording_status", sa.Text()))
    op.execute("UPDATE calls SET recording_status = 'completed' WHERE recording_url IS NOT NULL")


def downgrade() -> None:
    op.drop_column("calls", "recording_status")
