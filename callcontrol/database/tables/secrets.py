"""What tells a process at its start whether it has the key that the secrets are sealed with."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import metadata, text

secret_check: Final = sa.Table(
    "secret_check",
    metadata,
    # There is one row; its text is known, so only the right key opens it.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    text("sealed", nullable=False),
)
