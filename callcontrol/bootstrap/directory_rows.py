"""Rows that the directory keeps in memory, read from the stores of their features."""

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.agents.store.agents import AGENTS
from callcontrol.applications.store import APPLICATIONS
from callcontrol.database.revisions import revision
from callcontrol.directory.directory import Changes
from callcontrol.numbers.store.numbers import NUMBERS
from callcontrol.trunks.store import CARRIERS, GATEWAYS


def changes_since(connection: Connection, seen: int) -> Changes:
    """All changes after the revision ``seen``; 0 returns all rows."""
    newest = revision(connection)
    if newest == seen:
        return Changes(revision=seen)
    return Changes(
        revision=newest,
        accounts=tuple(accounts.changed_since(connection, seen)),
        numbers=tuple(NUMBERS.changed_since(connection, seen)),
        carriers=tuple(CARRIERS.changed_since(connection, seen)),
        gateways=tuple(GATEWAYS.changed_since(connection, seen)),
        applications=tuple(APPLICATIONS.changed_since(connection, seen)),
        agents=tuple(AGENTS.changed_since(connection, seen)),
    )
