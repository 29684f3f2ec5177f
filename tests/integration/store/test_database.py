"""Migrations, and what each kind of database does of its own."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateTable

import callcontrol.database.migrations as migrations
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database import schema
from callcontrol.database.aio import database as database_module
from callcontrol.database.aio import sqlite as sqlite_module
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.sqlite import Sqlite
from callcontrol.database.errors import DatabaseMoved, is_transient
from callcontrol.database.tables import metadata
from callcontrol.database.tables.system import directory_revision
from callcontrol.errors import ServiceUnavailable
from tests.support.secrets import SECRETS


async def checkpointed() -> None:
    """Wait for the copies of the write-ahead log that are under way."""
    tasks = asyncio.all_tasks()
    await asyncio.gather(*(task for task in tasks if task.get_name() == "database-checkpoint"))


def differences(connection: Connection) -> list[Any]:
    dialect = connection.dialect.name

    def is_here(item: Any, *_: object) -> bool:
        return bool(item.info.get("only", dialect) == dialect)

    context = MigrationContext.configure(connection, opts={"include_object": is_here})
    return list(compare_metadata(context, metadata))


def tables(connection: Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())


# The comparison of alembic leaves their names out.
FOREIGN_KEYS = {
    (table.name, CreateTable(table).compile().preparer.format_constraint(key))
    for table in metadata.tables.values()
    for key in table.foreign_key_constraints
}


def foreign_keys(connection: Connection) -> set[tuple[str, str | None]]:
    """Table and name of every foreign key in a database."""
    inspector = sa.inspect(connection)
    names = inspector.get_table_names()
    return {(table, key["name"]) for table in names for key in inspector.get_foreign_keys(table)}


def test_the_newest_migration_is_the_head() -> None:
    assert migrations.__file__ is not None
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent), recursive_version_locations=True)
    assert scripts.get_heads() == [schema.HEAD]


async def test_migrations_go_up_and_down_and_agree_with_the_tables(empty_url: str) -> None:
    database = await Database.open(empty_url, migrate=False)
    assert await database.read(schema.current) is None
    for _ in range(2):
        await database.migrate()
        assert await database.read(schema.current) == schema.HEAD
        assert await database.read(differences) == []
        assert await database.read(foreign_keys) == FOREIGN_KEYS
        await database.migrate()
        await database.write(lambda connection: schema.downgrade(connection, "base"))
        assert await database.read(tables) <= {"alembic_version"}
    await database.close()


async def test_many_processes_may_migrate_at_once(empty_url: str) -> None:
    databases = await asyncio.gather(*(Database.open(empty_url) for _ in range(4)))
    assert {await database.read(schema.current) for database in databases} == {schema.HEAD}
    for database in databases:
        await database.close()


async def test_a_failed_transaction_leaves_nothing(url: str) -> None:
    database = await Database.open(url)

    def broken(connection: Connection) -> None:
        connection.execute(sa.update(directory_revision).values(revision=99))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(broken)
    query = sa.select(directory_revision.c.revision)
    assert await database.read(lambda connection: connection.scalar(query)) == 0
    await database.close()


async def test_a_commit_that_this_server_never_heard_of_was_not_made(url: str) -> None:
    database = await Database.open(url)
    assert await database.was_committed(2**40 + 4711) is False
    await database.close()


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://x/y", "sqlite+aiosqlite://", "sqlite:///:memory:"])
async def test_what_is_no_database(url: str) -> None:
    with pytest.raises(ValueError, match="database|SQLite"):
        await Database.open(url)


async def test_an_unreachable_server_is_unavailable(tmp_path: Path) -> None:
    database = await Database.open(f"postgresql+asyncpg://x@/x?host={tmp_path}", migrate=False)
    with pytest.raises(ServiceUnavailable):
        await database.read(lambda connection: connection.execute(sa.text("SELECT 1")))
    with pytest.raises(Exception) as caught:  # noqa: B017 (whatever the driver raises)
        await database.write(lambda connection: connection.execute(sa.text("SELECT 1")))
    assert is_transient(caught.value)
    await database.close()


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    ],
)
def test_a_driver_without_a_usable_connection_is_asked_again(error: Exception) -> None:
    assert is_transient(error)
    assert not is_transient(ValueError("no error of a database"))


async def test_nothing_is_left_behind(url: str) -> None:
    threads = {thread.name for thread in threading.enumerate()}
    storage = await Storage.open(url, secrets=SECRETS)
    await storage.accounts.create("Acme")
    await storage.close()
    await storage.close()
    left = {thread.name for thread in threading.enumerate()} - threads
    assert not {name for name in left if name.startswith("database")}
    assert asyncio.all_tasks() == {asyncio.current_task()}


class TestSqlite:
    """Properties of SQLite alone."""

    async def test_the_file_is_for_its_owner_alone(self, tmp_path: Path) -> None:
        database = await Database.open(f"sqlite+aiosqlite:///{tmp_path}/deep/down/trunkline.db")
        mode = (tmp_path / "deep" / "down" / "trunkline.db").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        await database.close()

    async def test_constraints_are_checked_and_readers_cannot_write(self, tmp_path: Path) -> None:
        database = await Database.open(f"sqlite:///{tmp_path}/trunkline.db")
        orphan = sa.text("INSERT INTO wallets VALUES ('nobody', 0, 0, 0, 0, 0, 0)")
        with pytest.raises(sa.exc.IntegrityError):
            await database.write(lambda connection: connection.execute(orphan))
        with pytest.raises((sa.exc.OperationalError, ServiceUnavailable)):
            await database.read(
                lambda connection: connection.execute(sa.text("UPDATE directory_revision SET revision = 1"))
            )
        await database.close()

    async def test_a_slow_disk_does_not_hold_up_the_loop_for_long(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_module, "_SLOW_S", -1.0)
        database = await Database.open(f"sqlite:///{tmp_path}/trunkline.db")
        seen: list[str] = []

        def note(_: Connection) -> None:
            seen.append(threading.current_thread().name)

        for serving in (False, False, True, True, True):
            database.serving = serving
            await database.write(note)
        here = threading.current_thread().name
        assert seen[:3] == [here] * 3, "what is slow while the process starts says nothing of the disk"
        assert all(name.startswith("database-writer") for name in seen[3:])
        await database.close()

    async def test_a_locked_database_is_refused_at_once_and_is_transient(self, tmp_path: Path) -> None:
        path = tmp_path / "trunkline.db"
        database = await Database.open(f"sqlite:///{path}")
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            await database.write(lambda _: None)
        assert is_transient(caught.value)
        blocker.execute("ROLLBACK")
        blocker.close()
        await database.write(lambda _: None)
        await database.close()

    @pytest.mark.parametrize("somebody_reads", [False, True])
    async def test_the_log_is_checkpointed_and_starts_over_without_refusing_a_writer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, somebody_reads: bool
    ) -> None:
        monkeypatch.setattr(sqlite_module, "_CHECKPOINT_EVERY", 20)
        monkeypatch.setattr(sqlite_module, "_WAL_PAGES", 50)
        path = tmp_path / "trunkline.db"
        backend = Sqlite(sa.make_url(f"sqlite:///{path}"))
        await backend.migrate()
        reader = sqlite3.connect(path, isolation_level=None)

        def touch(connection: Connection) -> None:
            connection.execute(sa.text("UPDATE directory_revision SET revision = revision + 1"))

        for written in range(2000):
            if somebody_reads and written % 200 == 0:
                # Whoever still reads from the log is not interrupted; it starts over some other time.
                reader.execute("BEGIN")
                reader.execute("SELECT revision FROM directory_revision").fetchone()
            elif somebody_reads and written % 200 == 100:
                reader.execute("COMMIT")
            await backend.write(touch)
            await asyncio.sleep(0)
            if written % 200 == 150:
                # On a busy machine the thread that checkpoints would be outrun by this one.
                await checkpointed()
        log_bytes = path.with_name("trunkline.db-wal").stat().st_size
        reader.close()
        await backend.close()
        assert log_bytes < 1000 * 4096, "every transaction wrote a page of 4096 bytes, and there were 2000"
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT revision FROM directory_revision").fetchone() == (2000,)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    async def test_the_log_of_a_process_that_was_killed_is_copied_by_the_next(self, tmp_path: Path) -> None:
        killed, restarted = tmp_path / "killed", tmp_path / "restarted"
        for folder in (killed, restarted):
            folder.mkdir()

        def touch(connection: Connection) -> None:
            connection.execute(sa.text("UPDATE directory_revision SET revision = revision + 1"))

        backend = Sqlite(sa.make_url(f"sqlite:///{killed}/trunkline.db"))
        await backend.migrate()
        await backend.write(touch)
        await checkpointed()
        for _ in range(20):
            await backend.write(touch)
        for name in ("trunkline.db", "trunkline.db-wal"):
            shutil.copy(killed / name, restarted / name)
        await backend.close()

        after = Sqlite(sa.make_url(f"sqlite:///{restarted}/trunkline.db"))
        await after.write(touch)
        await checkpointed()
        shutil.copy(restarted / "trunkline.db", tmp_path / "without-log.db")
        await after.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "without-log.db")) as connection:
            ((revision,),) = connection.execute("SELECT revision FROM directory_revision").fetchall()
        assert revision >= 21

    async def test_a_full_disk_is_transient(self, tmp_path: Path) -> None:
        database = await Database.open(f"sqlite:///{tmp_path}/trunkline.db")

        def fill(connection: Connection) -> None:
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
            connection.exec_driver_sql("CREATE TABLE filler (x BLOB)")
            connection.exec_driver_sql("INSERT INTO filler VALUES (zeroblob(10000000))")

        with pytest.raises(sa.exc.OperationalError) as caught:
            await database.write(fill)
        assert is_transient(caught.value)
        await database.close()


async def test_nobody_waits_long_for_a_database_that_is_known_to_fail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(f"sqlite+aiosqlite:///{tmp_path / 'test.db'}")
    database.unwritable = True
    monkeypatch.setattr(database_module, "_HURRIED_S", 0.05)
    hold = threading.Event()
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            await database.read(lambda _: hold.wait(60))
    assert [record.getMessage() for record in caplog.records] == ["reading the database failed: TimeoutError"]
    hold.set()
    database.unwritable = False
    assert await database.read(lambda _: 1) == 1
    assert caplog.records[-1].getMessage() == "the database can be read again"
    await database.close()


async def test_a_file_that_is_gone_or_another_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    database = await Database.open(f"sqlite+aiosqlite:///{path}")
    away = path.rename(tmp_path / "away.db")
    for replacement in (None, b"another"):
        if replacement is not None:
            path.write_bytes(replacement)
        with pytest.raises(DatabaseMoved) as refusal:
            await database.write(lambda _: None)
        assert is_transient(refusal.value) and str(path) in str(refusal.value)
    path.unlink()
    assert not path.exists(), "nothing makes an empty database in its place"
    away.rename(path)
    await database.write(lambda _: None)
    await database.close()
