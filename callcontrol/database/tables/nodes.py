"""Servers that share a PostgreSQL database; each row is a lease."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import metadata, text, whole

nodes: Final = sa.Table(
    "nodes",
    metadata,
    sa.Column("node", sa.Text, primary_key=True),
    # In a unique constraint with the node: so a change of it is a change of a key, which the lock of a
    # writing transaction (FOR KEY SHARE) notices, and a renewal of the lease is not.
    text("incarnation", nullable=False),
    text("place", nullable=False),
    text("url", nullable=False),
    whole("started_at", nullable=False),
    whole("lease_until", nullable=False),
    text("adopted_by"),
    sa.UniqueConstraint("node", "incarnation"),
)
