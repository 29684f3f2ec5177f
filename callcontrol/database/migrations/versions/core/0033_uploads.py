"""Recordings that are to be uploaded to an object store, and objects that are to be removed."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "recording_uploads",
        sa.Column("sid", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sid", name=op.f("pk_recording_uploads")),
    )
    op.create_index(op.f("ix_recording_uploads_node"), "recording_uploads", ["node"])
    op.add_column("recording_removals", sa.Column("object", sa.Text()))


def downgrade() -> None:
    op.drop_column("recording_removals", "object")
    op.drop_index(op.f("ix_recording_uploads_node"), table_name="recording_uploads")
    op.drop_table("recording_uploads")
