"""
Revisions of the rows that the directory keeps in memory.

A transaction that changes an account, number, carrier, gateway, application or agent takes the next revision
and writes it into the row. Taking it locks the counter until the commit, so revisions become visible in order
and a reader that has seen revision n has seen all before it. Other servers on PostgreSQL are notified of it.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.notifications import CHANNEL, DIRECTORY
from callcontrol.database.statements import Statement
from callcontrol.database.tables.system import directory_revision

_READ: Final = Statement(sa.select(directory_revision.c.revision))
_NEXT: Final = (
    sa.update(directory_revision)
    .values(revision=directory_revision.c.revision + 1)
    .returning(directory_revision.c.revision)
)
_NEXT_NOTIFIED: Final = _NEXT.returning(
    sa.func.pg_notify(CHANNEL, sa.func.concat(f"{DIRECTORY} ", directory_revision.c.revision))
)


def next_revision(connection: Connection) -> int:
    """Increment and return the revision, for the changes of this transaction."""
    advance = _NEXT_NOTIFIED if connection.dialect.name == "postgresql" else _NEXT
    return int(connection.execute(advance).scalar_one())


def revision(connection: Connection) -> int:
    """Revision of the last committed change."""
    row = _READ.first(connection, {})
    return 0 if row is None else int(row["revision"])
