"""Recordings marked for removal; the data of a recording is in the record of its call."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.columns import metadata, partial_index, text

# Files without a call that are still on the disk of a node. A row is written in the transaction that removes
# the recording from its call, and deleted after the file: so a file whose deletion was interrupted, or that
# is on the disk of another server, is never left behind.
recording_removals: Final = sa.Table(
    "recording_removals",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    text("node", nullable=False),
    text("path", nullable=False),
)
sa.Index("ix_recording_removals_node", recording_removals.c.node)

# Recordings of an account for deletion, oldest first; calls without a recording are not in it.
partial_index(
    "ix_calls_recorded",
    calls.c.account_sid,
    calls.c.ended_at,
    calls.c.call_sid,
    where=calls.c.recording_path.is_not(None),
)
# Incomplete recordings: of active calls, and of a killed process.
_PENDING: Final = sa.text("recording_status IN ('in-progress', 'paused')")
partial_index("ix_calls_recording", calls.c.node, where=_PENDING)
