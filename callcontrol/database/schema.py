"""
Upgrade and downgrade of the schema, on the caller's connection, within its transaction.

Nodes of two versions share a database during an upgrade. So a database says which revision a program must
know at least to run on it: programs that are older than the schema, and not than that, go on and also start.
"""

import logging
from pathlib import Path
from typing import Final, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import CLOCK_US
from callcontrol.errors import NodesTooOld, SchemaTooNew

HEAD: Final = "0040"
"""Newest revision; a test compares it with the migration scripts."""

NEW_SQLITE: Final = Path(__file__).parent / "new_sqlite"
"""Folder of the statements that make a new SQLite database, in order; scripts/new-sqlite writes it."""

# The row that the migrations add.
_NEW_ROWS: Final = "INSERT INTO directory_revision (id, revision) VALUES (1, 0)"

OLDEST: Final = "0037"
"""Revision of the oldest program that runs on the newest schema; a test compares it with the migrations."""

TURN: Final = 0x7472756E6B77
"""Advisory lock of the process that writes to a PostgreSQL database ("trunkw")."""

# An arbitrary number, equal in every process that migrates the database.
_LOCK: Final = 0x7472_6B6C
_VERSIONS: Final = "0038"
"""Revision from which on a database knows the versions of its nodes, and the oldest that runs on it."""
_BEFORE_VERSIONS: Final = "0037"
_NODES: Final = "0028"

# Whoever needs a table that is being migrated waits for the migration, and it for whoever reads the table.
_LOCK_TIMEOUT_MS: Final = 2000

log = logging.getLogger(__name__)


def upgrade(connection: Connection, revision: str = "head") -> None:
    """
    Run the missing migrations; returns at once if there are none.

    An empty SQLite database gets the newest schema as the migrations leave it, without them: they take half a
    second.

    Raises:
        SchemaTooNew: A later version of the program has changed the database, and this one cannot run on it.
        NodesTooOld: A node runs whose version could not go on; nothing was changed.
    """
    _exclude_others(connection)
    found = current(connection)
    if found is not None and found > HEAD:
        _require_allowed(connection, found)
        log.warning(
            "the database has the schema %s of a newer version, on which this one (%s) runs", found, HEAD
        )
        return
    if revision == "head" and found == HEAD:
        return
    if revision == "head" and _is_empty_sqlite(connection):
        _create(connection)
        return
    if connection.dialect.name == "postgresql":
        _wait_in_turn(connection)
        if found is not None and found >= _NODES:
            _exclude_older(connection, found)
    _alembic(connection, "upgrade", revision)
    if revision in ("head", HEAD):
        _write_oldest(connection)


def downgrade(connection: Connection, revision: str) -> None:
    """Undo migrations down to a revision; ``base`` leaves an empty database."""
    _exclude_others(connection)
    _alembic(connection, "downgrade", revision)


def is_settled(connection: Connection) -> bool:
    """
    Return False while PostgreSQL is migrated; otherwise no migration begins before this transaction ends.

    A node that is entered in the database afterwards is seen by the next migration.

    Raises:
        SchemaTooNew: A migration was made since this program started, and it does not run on that.
    """
    if not connection.scalar(sa.text("SELECT pg_try_advisory_xact_lock_shared(:key)"), {"key": _LOCK}):
        return False
    found = current(connection)
    if found is not None and found > HEAD:
        _require_allowed(connection, found)
    return True


def current(connection: Connection) -> str | None:
    """Revision of the database; None for an empty one."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return version


def _exclude_others(connection: Connection) -> None:
    # SQLite's write transaction excludes other writers from its BEGIN on.
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def _is_empty_sqlite(connection: Connection) -> bool:
    if connection.dialect.name != "sqlite":
        return False
    return connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first() is None


def _create(connection: Connection) -> None:
    for path in sorted(NEW_SQLITE.glob("*.sql")):
        for statement in path.read_text().split(";\n")[:-1]:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql(_NEW_ROWS)
    connection.exec_driver_sql("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
    _write_oldest(connection)


def _require_allowed(connection: Connection, found: str) -> None:
    """
    Check that this program runs on the schema of a later one.

    Raises:
        SchemaTooNew: It does not.
    """
    oldest = connection.scalar(sa.text("SELECT oldest FROM schema_compatibility WHERE id = 1"))
    if oldest is None or oldest > HEAD:
        raise SchemaTooNew(
            f"the database is of a newer version of this program (schema {found}, this one knows {HEAD}); "
            "run that version, or restore the back-up that was made before it"
        )


def _wait_in_turn(connection: Connection) -> None:
    """
    Wait for the turn to write, and keep the migration from making nodes that go on wait for long.

    In turn no transaction of a writer is in progress, with whose row locks those of the migration could
    deadlock. A lock that is not had in time ends the migration, which is then repeated.
    """
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": TURN})
    connection.execute(sa.text(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}"))


def _exclude_older(connection: Connection, found: str) -> None:
    """
    Check that no node lives whose version could not go on, and fence those whose lease is over.

    Raises:
        NodesTooOld: One lives.
    """
    # A node that does not say what it knows is from before there was a place for it.
    known = f"coalesce(schema_revision, '{_BEFORE_VERSIONS}')" if found >= _VERSIONS else ":found"
    too_old = f"adopted_by IS NULL AND {known} < :oldest"
    values = {"oldest": OLDEST} if found >= _VERSIONS else {"oldest": OLDEST, "found": found}
    living = sa.text(f"SELECT node FROM nodes WHERE {too_old} AND lease_until > {CLOCK_US} ORDER BY node")
    nodes = connection.scalars(living, values).all()
    if nodes:
        raise NodesTooOld(nodes)
    # They may be alive, and only cut off from the database: they would renew their leases and go on.
    connection.execute(
        sa.text(f"UPDATE nodes SET incarnation = incarnation || '-over' WHERE {too_old}"), values
    )


def _write_oldest(connection: Connection) -> None:
    connection.execute(sa.text("DELETE FROM schema_compatibility WHERE id = 1"))
    connection.execute(
        sa.text("INSERT INTO schema_compatibility (id, oldest) VALUES (1, :oldest)"), {"oldest": OLDEST}
    )


def _alembic(connection: Connection, action: Literal["upgrade", "downgrade"], revision: str) -> None:
    # Imported here because importing alembic takes longer than a start without migrations.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    # In folders by feature; the order is that of the revisions.
    config.set_main_option("recursive_version_locations", "true")
    config.attributes["connection"] = connection
    run = command.upgrade if action == "upgrade" else command.downgrade
    run(config, revision)
