"""Campaigns, with the recipients whose messages do not exist yet."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, account, metadata, partial_index, text, whole

campaigns: Final = sa.Table(
    "campaigns",
    metadata,
    sa.Column("campaign_id", SERIAL, primary_key=True),
    # Created before the campaign has a number, so that a repeated transaction creates no second one.
    sa.Column("reference", sa.Text, nullable=False, unique=True),
    account(),
    text("name", nullable=False),
    # No reference: a template may be deleted, its campaigns stay.
    whole("template_id", nullable=False),
    text("template_name", nullable=False),
    text("language", nullable=False),
    text("body_parameters", nullable=False),
    text("state", nullable=False),
    whole("total", nullable=False),
    # Number of recipients whose messages exist. All recipients are kept until the last one has its message.
    whole("made", nullable=False),
    text("recipients", nullable=False),
    whole("created_at", nullable=False),
    whole("starts_at", nullable=False),
    whole("scheduled_for"),
    whole("started_at"),
    whole("handed_at"),
    whole("ended_at"),
    # No number is reused, so that no event of a campaign is attributed to another.
    sqlite_autoincrement=True,
)
sa.Index("ix_campaigns_list", campaigns.c.account_sid, campaigns.c.created_at, campaigns.c.campaign_id)
_OPEN: Final = sa.text("state IN ('scheduled', 'running')")
# Campaigns still to be started, expanded or settled.
partial_index("ix_campaigns_open", campaigns.c.starts_at, where=_OPEN)
partial_index("ix_campaigns_account_open", campaigns.c.account_sid, where=_OPEN)
