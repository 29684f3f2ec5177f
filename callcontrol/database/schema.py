"""Upgrade and downgrade of the schema, on the caller's connection, within its transaction."""

from pathlib import Path
from typing import Final, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.errors import SchemaTooNew

HEAD: Final = "0037"
"""Newest revision; a test compares it with the migration scripts."""

NEW_SQLITE: Final = Path(__file__).parent / "new_sqlite"
"""Folder of the statements that make a new SQLite database, in order; scripts/new-sqlite writes it."""

# The row that the migrations add.
_NEW_ROWS: Final = "INSERT INTO directory_revision (id, revision) VALUES (1, 0)"

# An arbitrary number, equal in every process that migrates the database.
_LOCK: Final = 0x7472_6B6C


def upgrade(connection: Connection, revision: str = "head") -> None:
    """
    Run the missing migrations; returns at once if there are none.

    An empty SQLite database gets the newest schema as the migrations leave it, without them: they take half a
    second.

    Raises:
        SchemaTooNew: A later version of the program has changed the database.
    """
    _exclude_others(connection)
    found = current(connection)
    if found is not None and found > HEAD:
        raise SchemaTooNew(
            f"the database is of a newer version of this program (schema {found}, this one knows {HEAD}); "
            "run that version, or restore the back-up that was made before it"
        )
    if revision == "head" and found == HEAD:
        return
    if revision == "head" and _is_empty_sqlite(connection):
        _create(connection)
        return
    _alembic(connection, "upgrade", revision)


def downgrade(connection: Connection, revision: str) -> None:
    """Undo migrations down to a revision; ``base`` leaves an empty database."""
    _exclude_others(connection)
    _alembic(connection, "downgrade", revision)


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
