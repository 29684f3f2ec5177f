"""Tools of accounts, tools they have disabled, and usage counts."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, text, whole

tools: Final = sa.Table(
    "tools",
    metadata,
    sa.Column("tool_id", sa.Text, primary_key=True),
    account(),
    text("name", nullable=False),
    # Public definition, as JSON.
    text("definition", nullable=False),
    text("headers"),
    text("secret", nullable=False),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    sa.UniqueConstraint("account_sid", "name"),
)

# Built-in tools have no row in ``tools``, and can be disabled too.
disabled_tools: Final = sa.Table(
    "disabled_tools",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
)

# The revision of the directory at which the tools of an account were last changed, for other processes.
tool_changes: Final = sa.Table(
    "tool_changes",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    whole("revision", nullable=False),
)
sa.Index("ix_tool_changes_revision", tool_changes.c.revision)

tool_usage: Final = sa.Table(
    "tool_usage",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    # YYYY-MM-DD in UTC.
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("tool", sa.Text, primary_key=True),
    sa.Column("key_id", sa.Text, primary_key=True),
    whole("calls", nullable=False),
    whole("errors", nullable=False),
    whole("total_ms", nullable=False),
    whole("max_ms", nullable=False),
)
sa.Index("ix_tool_usage_day", tool_usage.c.day)
