"""
Revisions of the directory, and the changes since an earlier one.

A transaction that changes an account, number, carrier, gateway, application or agent takes the next revision
and writes it into the row. Taking it locks the counter until the commit, so revisions become visible in order
and a reader that has seen revision n has seen all before it.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.agents.store import agents
from callcontrol.applications import store as applications
from callcontrol.database.statements import Statement
from callcontrol.database.tables import directory_revision
from callcontrol.directory.directory import Changes
from callcontrol.numbers.store import numbers
from callcontrol.trunks import store as trunks

_READ: Final = Statement(sa.select(directory_revision.c.revision))
_NEXT: Final = (
    sa.update(directory_revision)
    .values(revision=directory_revision.c.revision + 1)
    .returning(directory_revision.c.revision)
)


def next_revision(connection: Connection) -> int:
    """Increment and return the revision, for the changes of this transaction."""
    return int(connection.execute(_NEXT).scalar_one())


def revision(connection: Connection) -> int:
    """Revision of the last committed change."""
    row = _READ.first(connection, {})
    return 0 if row is None else int(row["revision"])


def changes_since(connection: Connection, seen: int) -> Changes:
    """All changes after the revision ``seen``; 0 returns all rows."""
    newest = revision(connection)
    if newest == seen:
        return Changes(revision=seen)
    return Changes(
        revision=newest,
        accounts=tuple(accounts.changed_since(connection, seen)),
        numbers=tuple(numbers.changed_since(connection, seen)),
        carriers=tuple(trunks.carriers_changed_since(connection, seen)),
        gateways=tuple(trunks.gateways_changed_since(connection, seen)),
        applications=tuple(applications.changed_since(connection, seen)),
        agents=tuple(agents.changed_since(connection, seen)),
    )
