"""Keys of vendors of speech models."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, text, whole

model_keys: Final = sa.Table(
    "model_keys",
    metadata,
    sa.Column("key_id", sa.Text, primary_key=True),
    account(),
    text("name", nullable=False),
    text("provider", nullable=False),
    text("secret", nullable=False),
    whole("created_at", nullable=False),
    sa.UniqueConstraint("account_sid", "name"),
)
