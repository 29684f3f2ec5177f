"""
The database: functions of a connection, run where that is cheapest.

A repository function takes a synchronous connection. On PostgreSQL it runs on the event loop through
SQLAlchemy's asyncio engine. On SQLite it runs on a thread that owns the connection, in one go: the asyncio
driver for SQLite would send every single statement to a thread and back, which costs about seven times the
work itself.
"""

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from callcontrol.errors import ServiceUnavailable
from callcontrol.store import schema
from callcontrol.store.failures import is_transient

T = TypeVar("T")
Operation = Callable[[Connection], T]

log = logging.getLogger(__name__)

_READERS: Final = 2
_MAX_WAITING_READS: Final = 1000
_BUSY_TIMEOUT_MS: Final = 1000
_POSTGRES_TIMEOUT_S: Final = 10.0


class _Backend(Protocol):
    async def read(self, operation: Operation[T]) -> T: ...
    async def write(self, operation: Operation[T]) -> T: ...
    async def close(self) -> None: ...


class Database:
    """One database, SQLite or PostgreSQL, by its URL."""

    def __init__(self, backend: _Backend) -> None:
        self._backend = backend

    @classmethod
    async def open(cls, url: str, *, migrate: bool = True) -> "Database":
        """
        Open a database, creating an SQLite file and its folder when they are missing.

        Args:
            url: ``sqlite+aiosqlite:///path`` (or ``sqlite:///path``), or ``postgresql+asyncpg://...``.
            migrate: Bring the schema up to date.

        Raises:
            ValueError: The URL names no database that is supported.
        """
        database = cls(_backend_for(url))
        if migrate:
            try:
                await database.migrate()
            except BaseException:
                await database.close()
                raise
        return database

    async def migrate(self) -> None:
        """Run the migrations that are missing; other processes wait meanwhile."""
        await self._backend.write(schema.upgrade)

    async def read(self, operation: Operation[T]) -> T:
        """
        Run a function that only reads.

        Raises:
            ServiceUnavailable: The database is failing, or too many readers wait for it.
        """
        try:
            return await self._backend.read(operation)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("reading the database failed: %s", error)
            raise ServiceUnavailable("The database does not answer; try again shortly.") from error

    async def write(self, operation: Operation[T]) -> T:
        """
        Run a function in one transaction and commit it; any exception rolls it back.

        The writer uses this. Exceptions are those of the function and of the driver.
        """
        return await self._backend.write(operation)

    async def close(self) -> None:
        """Close all connections."""
        await self._backend.close()


def _backend_for(url: str) -> _Backend:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError(f"{url!r} is not a database URL") from error
    name = parsed.get_backend_name()
    if name == "sqlite":
        return _Sqlite(parsed)
    if name == "postgresql":
        return _Postgres(parsed)
    raise ValueError(f"a database of the kind {name!r} is not supported: use SQLite or PostgreSQL")


class _Sqlite:
    """
    SQLite in WAL mode: one writing thread, a few reading ones.

    ``synchronous`` is NORMAL: a commit is in the operating system's hands when it returns, so it survives
    the end of this process however it comes; after a loss of power the database is intact and may lack
    the last moments.
    """

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise ValueError("SQLite needs a file: its connections do not share a database in memory")
        path = Path(url.database)
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file holds the secrets of trunks; nobody else on the machine has a business in it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        plain = url.set(drivername="sqlite+pysqlite")
        self._writer = _Threads(_sqlite_engine(plain, begin="BEGIN IMMEDIATE"), 1, "database-writer")
        self._readers = _Threads(
            _sqlite_engine(plain, begin="BEGIN", query_only=True), _READERS, "database-reader"
        )

    async def read(self, operation: Operation[T]) -> T:
        return await self._readers.run(operation)

    async def write(self, operation: Operation[T]) -> T:
        return await self._writer.run(operation)

    async def close(self) -> None:
        await self._readers.close()
        await self._writer.close()


def _sqlite_engine(url: URL, *, begin: str, query_only: bool = False) -> Engine:
    engine = sa.create_engine(url, poolclass=NullPool, connect_args={"check_same_thread": False})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # The driver must not begin transactions of its own: it would do so too late, and not for DDL.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA query_only = {int(query_only)}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


class _Threads:
    """Threads that each own a connection and run what is asked of them, one transaction at a time."""

    def __init__(self, engine: Engine, count: int, name: str) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{index}", daemon=True) for index in range(count)
        ]
        self._closed = False
        for thread in self._threads:
            thread.start()

    async def run(self, operation: Operation[T]) -> T:
        if self._closed:
            raise ServiceUnavailable("The database is closed.")
        if self._jobs.qsize() >= _MAX_WAITING_READS:
            raise ServiceUnavailable("The database has too much to do; try again shortly.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(operation, future, loop))
        return await future

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._engine.dispose()

    def _work(self) -> None:
        connection: Connection | None = None
        while (job := self._jobs.get()) is not None:
            try:
                if connection is None:
                    connection = self._engine.connect()
                with connection.begin():
                    result = job.operation(connection)
            except BaseException as error:
                if not _usable(connection):
                    _discard(connection)
                    connection = None
                job.settle(None, error)
            else:
                job.settle(result, None)
        _discard(connection)


class _Job:
    __slots__ = ("future", "loop", "operation")

    def __init__(
        self, operation: Operation[Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.operation = operation
        self.future = future
        self.loop = loop

    def settle(self, result: Any, error: BaseException | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:
            log.debug("the event loop was closed before a transaction ended")

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


def _usable(connection: Connection | None) -> bool:
    return (
        connection is not None
        and not connection.closed
        and not connection.invalidated
        and not connection.in_transaction()
    )


def _discard(connection: Connection | None) -> None:
    if connection is not None:
        try:
            connection.invalidate()
            connection.close()
        except Exception as error:
            log.debug("closing a broken connection failed: %s", error)


class _Postgres:
    """PostgreSQL through asyncpg, on the event loop."""

    def __init__(self, url: URL) -> None:
        self._engine = create_async_engine(
            url.set(drivername="postgresql+asyncpg"),
            pool_size=5,
            max_overflow=5,
            pool_timeout=_POSTGRES_TIMEOUT_S,
            connect_args={"timeout": _POSTGRES_TIMEOUT_S, "command_timeout": _POSTGRES_TIMEOUT_S},
        )

    async def read(self, operation: Operation[T]) -> T:
        async with self._engine.connect() as connection:
            return await connection.run_sync(operation)

    async def write(self, operation: Operation[T]) -> T:
        async with self._engine.begin() as connection:
            return await connection.run_sync(operation)

    async def close(self) -> None:
        await self._engine.dispose()
