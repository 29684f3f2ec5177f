"""Masking sessions, and the two mappings of each."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, partial_index, text, whole

sessions: Final = sa.Table(
    "masking_sessions",
    metadata,
    sa.Column("session_id", sa.Text, primary_key=True),
    account(),
    text("party_a", nullable=False),
    text("party_b", nullable=False),
    text("masked_number", nullable=False),
    whole("call_time_limit_sec"),
    # NULL means the account's setting for all of its masked calls.
    sa.Column("record", sa.Boolean),
    flag("geo_match"),
    whole("expires_at", nullable=False),
    # closed or expired; an expired session is marked here with a delay, ``expires_at`` applies at once.
    text("ended"),
    whole("ended_at"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
)
_ORDER: Final = (sessions.c.created_at, sessions.c.session_id)
_OPEN: Final = sessions.c.ended.is_(None)
sa.Index("ix_masking_sessions_list", sessions.c.account_sid, *_ORDER)
sa.Index("ix_masking_sessions_number", sessions.c.account_sid, sessions.c.masked_number, *_ORDER)
_OVER: Final = sessions.c.ended.is_not(None)
partial_index(
    "ix_masking_sessions_ended",
    sessions.c.account_sid,
    sessions.c.ended,
    *_ORDER,
    where=_OVER,
)
partial_index(
    "ix_masking_sessions_open",
    sessions.c.account_sid,
    *_ORDER,
    sessions.c.expires_at,
    where=_OPEN,
)
# Sessions to be marked as expired.
partial_index("ix_masking_sessions_due", sessions.c.expires_at, where=_OPEN)

mappings: Final = sa.Table(
    "masking_mappings",
    metadata,
    sa.Column("session_id", sa.Text, sa.ForeignKey("masking_sessions.session_id"), primary_key=True),
    sa.Column("caller_number", sa.Text, primary_key=True),
    account(),
    text("masked_number", nullable=False),
    text("target_number", nullable=False),
    whole("ended_at"),
    sqlite_with_rowid=False,
)
# A caller of a masked number reaches one other party, even if two processes write at once.
partial_index(
    "uq_masking_mappings_caller",
    mappings.c.account_sid,
    mappings.c.caller_number,
    mappings.c.masked_number,
    where=mappings.c.ended_at.is_(None),
    unique=True,
)
# Sessions of a party, ended ones included.
sa.Index("ix_masking_mappings_party", mappings.c.account_sid, mappings.c.caller_number)
