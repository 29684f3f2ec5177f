"""Programs of two versions on one database: what is migrated under whom, and which does not start."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only

from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database import schema
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.postgres import Postgres
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import NodesTooOld, SchemaTooNew
from callcontrol.nodes import store
from callcontrol.nodes.aio import Membership
from callcontrol.nodes.lease import Node
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.waiting import until

BEFORE = "0037"
LATER = "9001"


def execute(statement: str, connection: Connection) -> None:
    connection.execute(sa.text(statement))


async def migrated_by_a_later_version(url: str, oldest: str) -> None:
    """Pretend that a later version has migrated a database, on which programs of a revision still run."""
    database = await Database.open(url)
    for statement in (
        f"UPDATE alembic_version SET version_num = '{LATER}'",
        f"UPDATE schema_compatibility SET oldest = '{oldest}'",
    ):
        await database.write(partial(execute, statement))
    await database.close()


async def test_a_program_starts_on_a_later_schema_that_allows_it(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await migrated_by_a_later_version(url, schema.HEAD)
    database = await Database.open(url)
    assert await database.read(schema.current) == LATER
    assert f"has the schema {LATER} of a newer version" in caplog.text
    await database.close()


async def test_a_program_does_not_start_on_a_later_schema_that_does_not(url: str) -> None:
    await migrated_by_a_later_version(url, LATER)
    with pytest.raises(SchemaTooNew, match=f"schema {LATER}, this one knows {schema.HEAD}"):
        await Database.open(url)


async def test_a_migration_says_what_runs_on_it(empty_url: str) -> None:
    database = await Database.open(empty_url)
    found = await database.read(
        lambda connection: connection.scalar(sa.text("SELECT oldest FROM schema_compatibility"))
    )
    assert found == schema.OLDEST <= schema.HEAD
    await database.close()


def node(name: str, schema_revision: str | None, lease_s: int, connection: Connection) -> Node:
    """Add the row of a node whose program knows a schema."""
    made = Node(name, new_id(), "", "", 0.0)
    assert store.join(connection, made, lease_s)
    values = {"revision": schema_revision, "node": name}
    connection.execute(sa.text("UPDATE nodes SET schema_revision = :revision WHERE node = :node"), values)
    return made


async def shared(url: str, *, migrate: bool = True) -> Postgres:
    """Open a database that has leases."""
    database = await Database.open(url, migrate=migrate)
    assert database.shared is not None
    return database.shared


async def test_no_migration_under_nodes_that_would_not_go_on(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Nodes that are too old are named, and those that are dead or know enough are not. One whose lease is over
    may be cut off alone: it does not get its lease back.
    """
    database = await shared(await postgres.url())
    made = {
        name: await database.write(partial(node, name, revision, lease_s))
        for name, revision, lease_s in (
            ("old", schema.HEAD, 600),
            ("silent", None, 600),
            ("new", LATER, 600),
            ("old-and-cut-off", schema.HEAD, -1),
            ("new-and-cut-off", LATER, -1),
        )
    }
    later = f"{int(schema.HEAD) + 1:04}"
    monkeypatch.setattr(schema, "HEAD", LATER)
    monkeypatch.setattr(schema, "OLDEST", later)
    with pytest.raises(NodesTooOld, match="the schema of this version: old, silent;"):
        await database.migrate()
    for name in ("old", "silent"):
        await database.write(partial(execute, f"DELETE FROM nodes WHERE node = '{name}'"))
    await database.migrate()
    for name, goes_on in (("new", True), ("old-and-cut-off", False), ("new-and-cut-off", True)):
        renewal = partial(store.renew, node=made[name], url="", lease_s=600)
        assert await database.write_lease(renewal) is goes_on, name
    await database.close()


async def test_a_node_that_does_not_say_its_version_is_from_before(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a node is too old for what does not run beside it, though the database has been migrated since."""
    database = await shared(await postgres.url())
    await database.write(partial(node, "silent", None, 600))
    head = schema.HEAD
    monkeypatch.setattr(schema, "HEAD", LATER)
    monkeypatch.setattr(schema, "OLDEST", head)
    with pytest.raises(NodesTooOld, match="the schema of this version: silent;"):
        await database.migrate()
    monkeypatch.setattr(schema, "OLDEST", BEFORE)
    await database.migrate()
    await database.close()


async def test_a_node_does_not_join_in_the_middle_of_a_migration(postgres: PostgresServer) -> None:
    """A node that starts meanwhile is not missed: it joins afterwards, if it runs on what was made."""
    url = await postgres.url()
    joining, migrating = [await shared(url) for _ in range(2)]
    join = partial(store.join, node=Node("a", new_id(), "", "", 0.0), lease_s=600)
    async with migrating._engine.begin() as connection:
        await connection.run_sync(schema._exclude_others)
        assert await joining.write_lease(join) is None
    await migrated_by_a_later_version(url, LATER)
    with pytest.raises(SchemaTooNew, match=f"schema {LATER}, this one knows {schema.HEAD}"):
        await joining.write_lease(join)
    await joining.write(partial(execute, f"UPDATE schema_compatibility SET oldest = '{schema.HEAD}'"))
    assert await joining.write_lease(join)
    await joining.close()
    await migrating.close()


async def test_a_node_waits_for_a_migration(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start in the middle of a migration goes on when that is made."""
    attempts: list[bool | None] = []

    def join(*arguments: Any, **values: Any) -> bool | None:
        attempts.append(joined(*arguments, **values))
        return attempts[-1]

    joined = store.join
    monkeypatch.setattr(store, "join", join)
    url = await postgres.url()
    database, migrating = [await shared(url) for _ in range(2)]
    membership = Membership(database, Writer(database), "one", "", lambda: "")
    async with migrating._engine.begin() as connection:
        await connection.run_sync(schema._exclude_others)
        joining = asyncio.create_task(membership.join())
        await until(lambda: len(attempts) == 3 or joining.done())
        assert attempts == [None, None, None]
    await joining
    assert attempts[-1] is True
    await membership.close()
    await database.close()
    await migrating.close()


async def test_a_migration_whose_process_stops_holds_nobody_up(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL undoes a migration of which it hears no more, as when its machine is lost; others write."""
    monkeypatch.setattr("callcontrol.database.aio.postgres._MIGRATION_STOPPED_MS", 200)
    url = await postgres.empty_url()
    migrating, other = [await shared(url, migrate=False) for _ in range(2)]
    began, never = asyncio.Event(), asyncio.Event()

    def stops(connection: Connection, action: str, revision: str) -> None:
        execute("CREATE TABLE half_done (thing text)", connection)
        began.set()
        await_only(never.wait())

    monkeypatch.setattr(schema, "_alembic", stops)
    migration = asyncio.create_task(migrating.migrate())
    await began.wait()
    tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'half_done'"
    assert await other.write(lambda connection: connection.scalar(sa.text(tables))) == 0
    assert not migration.done()
    never.set()
    with pytest.raises(DBAPIError):
        await migration
    await other.close()
    await migrating.close()


async def test_a_migration_lets_whoever_needs_a_table_go_on(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A migration that cannot have a table, because somebody reads it for long, lets others have it meanwhile,
    and is made when it can be.
    """
    monkeypatch.setattr(schema, "_LOCK_TIMEOUT_MS", 200)
    url = await postgres.empty_url()
    database, reader = [await Database.open(url, migrate=False) for _ in range(2)]
    await database.write(lambda connection: schema.upgrade(connection, BEFORE))
    read, is_read = asyncio.Event(), asyncio.Event()

    async def reads_long() -> None:
        assert reader.shared is not None
        async with reader.shared._engine.begin() as connection:
            await connection.execute(sa.text("SELECT * FROM nodes"))
            read.set()
            await is_read.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reads_long())
        await read.wait()
        migration = tasks.create_task(database.migrate())
        for _ in range(3):
            await until(lambda: waits_for_a_lock(url))
            # In the queue behind the migration, whose attempt ends.
            await reader.read(partial(execute, "SELECT * FROM nodes"))
        assert not migration.done()
        is_read.set()
    assert await database.read(schema.current) == schema.HEAD
    await database.close()
    await reader.close()


async def waits_for_a_lock(url: str) -> bool:
    database = await Database.open(url, migrate=False)
    try:
        waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'")
        return bool(await database.read(lambda connection: connection.scalar(waiting)))
    finally:
        await database.close()


async def test_nodes_say_their_version(postgres: PostgresServer) -> None:
    """`trunkline nodes list` shows the program of a node."""
    settings = StorageSettings(node="one", version="1.2.3")
    storage = await Storage.open(await postgres.url(), settings, secrets=SECRETS)
    [found] = await storage.database.read(store.reports)
    assert (found.version, found.schema_revision) == ("1.2.3", schema.HEAD)
    await storage.close()
