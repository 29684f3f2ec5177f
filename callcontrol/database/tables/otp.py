"""One-time passwords that are spoken in calls; what a call did is in its own record."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, text, whole

otps: Final = sa.Table(
    "otps",
    metadata,
    sa.Column("otp_id", sa.Text, primary_key=True),
    account(),
    sa.Column("call_sid", sa.Text, nullable=False, unique=True),
    text("to_number", nullable=False),
    text("reference"),
    # A keyed digest; none once the password is used, guessed at too often or long over.
    text("code_hash"),
    whole("attempts", nullable=False),
    whole("created_at", nullable=False),
    whole("expires_at", nullable=False),
    whole("verified_at"),
)
sa.Index("ix_otps_account_sid_created_at", otps.c.account_sid, otps.c.created_at)
# What limits the calls to one number; also the filter of that name.
sa.Index("ix_otps_account_sid_to_number_created_at", otps.c.account_sid, otps.c.to_number, otps.c.created_at)
# What still has to be forgotten: a handful of rows however many passwords there were.
sa.Index(
    "ix_otps_kept",
    otps.c.expires_at,
    sqlite_where=otps.c.code_hash.is_not(None),
    postgresql_where=otps.c.code_hash.is_not(None),
)
