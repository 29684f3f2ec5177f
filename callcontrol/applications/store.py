"""Applications."""

from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.database.rows import ValueTable, count
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.trunks import carriers, phone_numbers
from callcontrol.models import Application

APPLICATIONS: Final = ValueTable(
    applications, Application, called="application", order=(applications.c.created_at, applications.c.app_sid)
)
"""Applications of all accounts, oldest first."""


def attached(connection: Connection, app_sid: str) -> dict[str, int]:
    """Count of the numbers and carriers attached to an application; zeros are omitted."""
    counts = {
        name: count(connection, table, table.c.app_sid == app_sid, table.c.deleted_at.is_(None))
        for name, table in (("numbers", phone_numbers), ("carriers", carriers))
    }
    return {name: number for name, number in counts.items() if number}
