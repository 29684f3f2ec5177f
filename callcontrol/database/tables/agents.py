"""Voice agents of accounts."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, mirrored, text

agents: Final = sa.Table(
    "agents",
    metadata,
    sa.Column("agent_id", sa.Text, primary_key=True),
    account(),
    text("workspace_id"),
    text("name", nullable=False),
    text("language", nullable=False),
    text("voice"),
    text("greeting"),
    text("instructions"),
    text("binding"),
    text("script"),
    *mirrored(),
)
sa.Index("ix_agents_account_sid_created_at", agents.c.account_sid, agents.c.created_at)
sa.Index("ix_agents_revision", agents.c.revision)
