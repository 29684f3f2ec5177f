"""The counter of revisions, idempotency keys, the probe of the writer, and what concerns versions, nodes."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import metadata, partial_index, text, whole

directory_revision: Final = sa.Table(
    "directory_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    whole("revision", nullable=False),
)

idempotency_keys: Final = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    text("endpoint", nullable=False),
    text("body_hash", nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("body", sa.LargeBinary),
    # Process and effect of the running request, in case the process is killed.
    text("node"),
    text("effect"),
    whole("created_at", nullable=False),
)
sa.Index("ix_idempotency_keys_created_at", idempotency_keys.c.created_at)
# Finds requests of a killed process at the next start without reading stored responses.
partial_index(
    "ix_idempotency_keys_running",
    idempotency_keys.c.node,
    where=idempotency_keys.c.status.is_(None),
)

schema_compatibility: Final = sa.Table(
    "schema_compatibility",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # Revision that a program must know at least to run on this database.
    text("oldest", nullable=False),
)

writer_probe: Final = sa.Table(
    "writer_probe",
    metadata,
    sa.Column("node", sa.Text, primary_key=True),
    whole("probed_at", nullable=False),
)

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
    # Written by the operator's command as well as by the node, so it is in no key either.
    whole("draining_since"),
    text("sip_address"),
    # Of the program: what it is called, and the newest schema that it knows.
    text("version"),
    text("schema_revision"),
    sa.UniqueConstraint("node", "incarnation"),
)

duties: Final = sa.Table(
    "duties",
    metadata,
    sa.Column("duty", sa.Text, primary_key=True),
    # Held while this node lives, which is no key of the table: the row outlasts a start of the node.
    text("node", nullable=False),
)

conferences: Final = sa.Table(
    "conferences",
    metadata,
    sa.Column("account_sid", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    # As a duty's, this node is no key of the table of nodes.
    text("node", nullable=False),
)
