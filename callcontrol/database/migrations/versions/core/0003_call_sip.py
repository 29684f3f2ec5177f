"""Further header fields of a call's INVITE."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calls", sa.Column("sip", sa.Text()))


def downgrade() -> None:
    op.drop_column("calls", "sip")
