"""Every migration, up and down, with rows in every table: nothing that both sides know is lost or changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

import callcontrol.database.migrations as migrations
from callcontrol.database import schema
from callcontrol.database.aio.database import Database
from tests.support.secrets import SECRETS

Rows = dict[str, dict[str, dict[str, Any]]]

# What a column must hold so that the rules of its table are met; anything else may hold anything.
GIVEN: dict[str, Any] = {"status": "completed", "balance_paise": 1000, "ended_at": 5}


def revisions() -> list[str]:
    """All revisions, oldest first."""
    assert migrations.__file__ is not None
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent), recursive_version_locations=True)
    return [script.revision for script in scripts.walk_revisions()][::-1]


def tables(connection: Connection) -> list[sa.Table]:
    metadata = sa.MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def value(column: sa.Column[Any], revision: str) -> Any:
    """A value of the column's kind that no other revision's row has."""
    given = GIVEN.get(column.name)
    if given is not None and isinstance(column.type, sa.Integer) == isinstance(given, int):
        return given
    if isinstance(column.type, sa.Boolean):
        return True
    if isinstance(column.type, sa.Integer):
        return int(revision) + 1
    if isinstance(column.type, sa.LargeBinary):
        return revision.encode()
    # A row of a revision refers to the rows of the same revision.
    referred = next(iter(column.foreign_keys)).column if column.foreign_keys else column
    return f"{referred.table.name}.{referred.name} of {revision}"


def allow_pauses(connection: Connection) -> None:
    """Keep PostgreSQL from ending the transaction while a busy machine computes between two statements."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")


def fill(connection: Connection, known: Sequence[sa.Table], revision: str) -> None:
    """Add a row to every table, in all its columns."""
    for table in known:
        row = {column.name: value(column, revision) for column in table.columns}
        connection.execute(sa.insert(table).values(row))


def contents(connection: Connection, known: Sequence[sa.Table]) -> Rows:
    """Every row, by its table and primary key."""
    found: Rows = {}
    for table in known:
        rows = [dict(row._mapping) for row in connection.execute(sa.select(table))]
        keys = [column.name for column in table.primary_key]
        found[table.name] = {repr([row[key] for key in keys]): row for row in rows}
    return found


def shape(known: Sequence[sa.Table]) -> dict[str, Any]:
    """Columns and indexes, whatever order they were made in."""
    return {
        table.name: (
            sorted((column.name, str(column.type), bool(column.nullable)) for column in table.columns),
            sorted((str(item.name), tuple(item.columns.keys()), item.unique) for item in table.indexes),
        )
        for table in known
    }


def assert_kept(before: Rows, after: Rows) -> None:
    """Assert that data with a place in both schemas is unchanged."""
    for table in before.keys() & after.keys():
        for key, row in before[table].items():
            kept = after[table][key]
            known = row.keys() & kept.keys()
            assert {name: kept[name] for name in known} == {name: row[name] for name in known}, table


_each_revision = pytest.mark.long(reason="stops at each revision twice, and looks at all rows there")


@pytest.mark.parametrize(
    ("empty_url", "stride"),
    [
        ("sqlite", 8),
        pytest.param("sqlite", 1, marks=_each_revision),
        pytest.param("postgres", 1, marks=_each_revision),
    ],
    indirect=["empty_url"],
)
async def test_rows_survive_all_migrations_and_their_undoing(empty_url: str, stride: int) -> None:
    database = await Database.open(empty_url, migrate=False, secrets=SECRETS)
    # Each migration runs up and down; rows are added and compared at every `stride`th, and at both ends.
    *early, last = revisions()
    steps = [*early[::stride], last]
    shapes: dict[str, Any] = {}
    before: Rows = {}

    def up(connection: Connection, revision: str) -> Rows:
        allow_pauses(connection)
        schema.upgrade(connection, revision)
        known = tables(connection)
        assert_kept(before, contents(connection, known))
        fill(connection, known, revision)
        shapes[revision] = shape(known)
        return contents(connection, known)

    def down(connection: Connection, revision: str) -> Rows:
        allow_pauses(connection)
        schema.downgrade(connection, revision)
        known = tables(connection)
        assert shape(known) == shapes[revision], revision
        return contents(connection, known)

    for revision in steps:
        before = await database.write(partial(up, revision=revision))
    assert await database.read(schema.current) == schema.HEAD
    for revision in steps[-2::-1]:
        after = await database.write(partial(down, revision=revision))
        assert_kept(before, after)
        before = after
    await database.migrate()
    known = await database.read(tables)
    assert_kept(before, await database.read(partial(contents, known=known)))
    assert shape(known) == shapes[steps[-1]]
    await database.close()


def everything(connection: Connection) -> dict[str, Any]:
    """Statements that an SQLite database was made with, whatever their white space, and all rows."""
    made = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
    found: dict[str, Any] = {
        f"{kind} {name} of {table}": " ".join((sql or "").split()) for kind, name, table, sql in made
    }
    for name in sa.inspect(connection).get_table_names():
        found[f"rows of {name}"] = connection.exec_driver_sql(f"SELECT * FROM {name}").all()
        # Which of several the planner takes depends on their order.
        found[f"indexes of {name}"] = connection.exec_driver_sql(f"PRAGMA index_list({name})").all()
    counted = connection.exec_driver_sql("SELECT * FROM sqlite_sequence WHERE seq > 0")
    found["rows of sqlite_sequence"] = counted.all()
    return found


@pytest.mark.parametrize("empty_url", ["sqlite"], indirect=True)
async def test_a_new_database_is_as_the_migrations_make_it(empty_url: str) -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        schema.upgrade(connection, schema.HEAD)
        expected = everything(connection)
    engine.dispose()
    database = await Database.open(empty_url)
    assert await database.read(everything) == expected, "run .venv/bin/python scripts/new-sqlite"
    await database.close()


async def test_calls_from_before_have_their_outcome(empty_url: str) -> None:
    database = await Database.open(empty_url, migrate=False, secrets=SECRETS)
    await database.write(lambda connection: schema.upgrade(connection, "0009"))

    def calls(connection: Connection) -> None:
        known = tables(connection)
        fill(connection, known, "0009")
        table = next(table for table in known if table.name == "calls")
        row = dict(connection.execute(sa.select(table)).one()._mapping)
        up = {"call_sid": "up", "status": "ringing", "ended_at": None}
        connection.execute(sa.insert(table).values(row | up))

    await database.write(calls)
    await database.migrate()
    query = sa.text("SELECT status, outcome FROM calls ORDER BY status")
    assert await database.read(lambda connection: [tuple(row) for row in connection.execute(query)]) == [
        ("completed", "completed"),
        ("ringing", None),
    ]
    await database.close()


async def test_a_program_of_the_oldest_version_works_on_the_newest_schema(empty_url: str) -> None:
    """Whatever a program of that version can read and write is there, and nothing else is required of it."""
    database = await Database.open(empty_url, migrate=False, secrets=SECRETS)

    def before(connection: Connection) -> list[sa.Table]:
        schema.upgrade(connection, schema.OLDEST)
        known = tables(connection)
        fill(connection, known, schema.OLDEST)
        return known

    def works(connection: Connection, known: Sequence[sa.Table]) -> None:
        rows = contents(connection, known)
        fill(connection, known, "0900")
        for table in known:
            # As programs do: by the columns that they know.
            changed = {column.name: column for column in table.columns}
            connection.execute(sa.update(table).values(changed))
        assert_kept(rows, contents(connection, known))
        for table in reversed(known):
            connection.execute(sa.delete(table))

    known = await database.write(before)
    await database.migrate()
    await database.write(partial(works, known=known))
    await database.close()
