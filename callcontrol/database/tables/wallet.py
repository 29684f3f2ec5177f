"""Wallets, reserves and the ledger."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, account, metadata, partial_index, text, whole

wallets: Final = sa.Table(
    "wallets",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    whole("balance_paise", nullable=False),
    whole("reserved_paise", nullable=False),
    # Sum charged for calls in one clock hour (hours since the epoch), for the limit of the account.
    whole("spent_hour", nullable=False),
    whole("spent_paise", nullable=False),
    whole("updated_at", nullable=False),
    # Moment up to which the account's rate of new calls is used, by the clock of PostgreSQL; 0 on SQLite.
    sa.Column("paced_until", sa.BigInteger, nullable=False, server_default="0"),
    # Last line of defence: no wrong statement can spend a rupee twice.
    sa.CheckConstraint("reserved_paise >= 0", name="reserved"),
    sa.CheckConstraint("balance_paise >= reserved_paise", name="balance"),
    sqlite_with_rowid=False,
)

# Only open reserves: a settlement deletes the row, so the table stays within a page or two, and a restart
# finds the reserves to reconcile without searching.
reserves: Final = sa.Table(
    "reserves",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    whole("amount_paise", nullable=False),
    whole("created_at", nullable=False),
    sqlite_with_rowid=False,
)
# Counts the calls that an account has up on all servers; SQLite has one server, which counts in memory.
sa.Index("ix_reserves_account_sid", reserves.c.account_sid, info={"only": "postgresql"})

ledger: Final = sa.Table(
    "ledger",
    metadata,
    sa.Column("entry_id", SERIAL, primary_key=True),
    account(),
    text("kind", nullable=False),
    whole("amount_paise", nullable=False),
    text("call_sid"),
    text("reference"),
    text("note"),
    whole("created_at", nullable=False),
)
# The kind comes last, so that lists of one kind use the index alone.
sa.Index("ix_ledger_list", ledger.c.account_sid, ledger.c.created_at, ledger.c.entry_id, ledger.c.kind)
# A call is charged once, and a top-up repeated with the same reference is the same top-up.
partial_index(
    "uq_ledger_call_sid",
    ledger.c.call_sid,
    where=ledger.c.call_sid.is_not(None),
    unique=True,
)
partial_index(
    "uq_ledger_reference",
    ledger.c.account_sid,
    ledger.c.reference,
    where=ledger.c.reference.is_not(None),
    unique=True,
)
