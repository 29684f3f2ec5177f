"""
Notifications between servers that share a PostgreSQL database (NOTIFY), sent with the commit of a change.

They make others look at once and carry no state: who hears none looks a little later.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

CHANNEL: Final = "trunkline"

DIRECTORY: Final = "directory"
"""Topic of a new revision of the directory; its value is the revision."""

KEY: Final = "key"
"""Topic of a new or changed API key; its value is the identifier of the key."""

_NOTIFY: Final = sa.text("SELECT pg_notify(:channel, :payload)")


def notify(connection: Connection, topic: str, value: str) -> None:
    """Notify the other servers when the transaction is committed; SQLite has one server."""
    if connection.dialect.name == "postgresql":
        connection.execute(_NOTIFY, {"channel": CHANNEL, "payload": f"{topic} {value}"})
