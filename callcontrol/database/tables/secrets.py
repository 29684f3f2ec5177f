"""Sample that shows at the start if a process has the key of the secrets; stored keys of vendors."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, metadata, text, whole

secret_check: Final = sa.Table(
    "secret_check",
    metadata,
    # One row with a known text, which only the right key decrypts.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    text("sealed", nullable=False),
)

# Keys of vendors of speech models.
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
