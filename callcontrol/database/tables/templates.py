"""Messaging channels of accounts, and templates that the network has to approve."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, account, flag, metadata, partial_index, text, whole

# A channel without a row has the defaults of a new account; so has a column without a value.
channels: Final = sa.Table(
    "channels",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    text("number"),
    text("display_name"),
    flag("is_connected"),
    whole("messages_per_second"),
    whole("updated_at", nullable=False),
)

templates: Final = sa.Table(
    "templates",
    metadata,
    sa.Column("template_id", SERIAL, primary_key=True),
    account(),
    text("reference", nullable=False),
    text("name", nullable=False),
    text("language", nullable=False),
    text("category", nullable=False),
    text("body", nullable=False),
    whole("variables", nullable=False),
    text("status", nullable=False),
    text("network_ref"),
    text("rejection_reason"),
    whole("check_at"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    # No number is reused, so that references to a deleted template find nothing.
    sqlite_autoincrement=True,
)
sa.Index("uq_templates_name", templates.c.account_sid, templates.c.name, templates.c.language, unique=True)
# Makes a repeated insert harmless if the result of the first commit was lost.
sa.Index("uq_templates_reference", templates.c.reference, unique=True)
sa.Index("ix_templates_list", templates.c.account_sid, templates.c.status, templates.c.template_id)
# Templates to query at the network, soonest first.
partial_index("ix_templates_due", templates.c.check_at, where=templates.c.check_at.is_not(None))

template_withdrawals: Final = sa.Table(
    "template_withdrawals",
    metadata,
    sa.Column("reference", sa.Text, primary_key=True),
    account(),
    text("network_ref"),
    whole("due_at", nullable=False),
    whole("created_at", nullable=False),
)
sa.Index("ix_template_withdrawals_due", template_withdrawals.c.due_at)
