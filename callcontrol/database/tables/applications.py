"""Applications: named call handling, shared by many numbers."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, mirrored, text

applications: Final = sa.Table(
    "applications",
    metadata,
    sa.Column("app_sid", sa.Text, primary_key=True),
    account(),
    text("name", nullable=False),
    text("binding", nullable=False),
    flag("record_all_calls"),
    *mirrored(),
)
sa.Index("ix_applications_account_sid_created_at", applications.c.account_sid, applications.c.created_at)
sa.Index("ix_applications_revision", applications.c.revision)
