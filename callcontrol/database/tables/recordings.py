"""Recordings to upload or to remove; the data of a recording is in the record of its call."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.columns import metadata, partial_index, text

# Files without a call that are still on the disk of a node. A row is written in the transaction that removes
# the recording from its call, and deleted after the file: so a file whose deletion was interrupted, or that
# is on the disk of another server, is never left behind. `path` is the URL of an object once it is uploaded;
# `object` is that of one whose upload may have begun.
recording_removals: Final = sa.Table(
    "recording_removals",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    text("node", nullable=False),
    text("path", nullable=False),
    text("object"),
)
sa.Index("ix_recording_removals_node", recording_removals.c.node)

# Files on the disk of a node that are to be uploaded to `object`. A row goes in the transaction that writes
# the object to the call or message, or that removes the recording.
recording_uploads: Final = sa.Table(
    "recording_uploads",
    metadata,
    sa.Column("sid", sa.Text, primary_key=True),
    text("call_sid", nullable=False),
    text("node", nullable=False),
    text("object", nullable=False),
    text("details", nullable=False),
)
sa.Index("ix_recording_uploads_node", recording_uploads.c.node)

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
