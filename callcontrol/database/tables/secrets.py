"""Sample that shows at the start if a process has the key of the secrets."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import metadata, text

secret_check: Final = sa.Table(
    "secret_check",
    metadata,
    # One row with a known text, which only the right key decrypts.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    text("sealed", nullable=False),
)
