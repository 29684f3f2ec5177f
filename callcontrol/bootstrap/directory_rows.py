"""Rows that the directory keeps in memory, read from the stores of their features."""

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.agents.store import agents
from callcontrol.applications import store as applications
from callcontrol.database.revisions import revision
from callcontrol.directory.directory import Changes
from callcontrol.numbers.store import numbers
from callcontrol.trunks import store as trunks


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
