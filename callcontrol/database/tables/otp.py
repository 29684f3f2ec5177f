"""One-time passwords spoken in calls; the call itself has its own record."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, partial_index, text, whole

otps: Final = sa.Table(
    "otps",
    metadata,
    sa.Column("otp_id", sa.Text, primary_key=True),
    account(),
    sa.Column("call_sid", sa.Text, nullable=False, unique=True),
    text("to_number", nullable=False),
    text("reference"),
    # A keyed digest; NULL once the password is used, was guessed too often or expired long ago.
    text("code_hash"),
    whole("attempts", nullable=False),
    whole("created_at", nullable=False),
    whole("expires_at", nullable=False),
    whole("verified_at"),
)
sa.Index("ix_otps_account_sid_created_at", otps.c.account_sid, otps.c.created_at)
# For the limit of calls to one number; also for the filter of that name.
sa.Index("ix_otps_account_sid_to_number_created_at", otps.c.account_sid, otps.c.to_number, otps.c.created_at)
# Digests still to be deleted: few rows, however many passwords there were.
partial_index("ix_otps_kept", otps.c.expires_at, where=otps.c.code_hash.is_not(None))
