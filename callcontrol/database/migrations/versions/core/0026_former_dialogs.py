"""SIP dialogs of calls, to end their legs after their process was killed."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calls", sa.Column("dialogs", sa.Text()))
    op.create_table(
        "former_dialogs",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("dialogs", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("call_sid", name=op.f("pk_former_dialogs")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("former_dialogs")
    op.drop_column("calls", "dialogs")
