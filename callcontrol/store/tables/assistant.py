"""Calls with voice agents: what was said on them."""

from typing import Final

import sqlalchemy as sa

from callcontrol.store.tables.columns import account, metadata, text, whole

# One row for each thing that was said, numbered within its call: a repeat writes none twice.
transcript_segments: Final = sa.Table(
    "transcript_segments",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    account(),
    text("role", nullable=False),
    text("text", nullable=False),
    whole("start_ms", nullable=False),
    whole("end_ms"),
)
