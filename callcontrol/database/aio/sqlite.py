"""SQLite in WAL mode, as the embedded database of one process and the command line."""

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool

from callcontrol.database import schema
from callcontrol.database.aio.database import Database, Operation, T
from callcontrol.database.encryption import OPTION, Cipher
from callcontrol.database.errors import DatabaseMoved, is_busy, is_transient
from callcontrol.errors import ServiceUnavailable

log = logging.getLogger(__name__)

_READERS: Final = 2
_MAX_WAITING: Final = 1000
_MIGRATION_TIMEOUT_MS: Final = 30_000
_WAL_TIMEOUT_MS: Final = 5000
_WAL_PAUSE_MS: Final = 10
_SLOW_S: Final = 0.03
_SLOW_FOR_S: Final = 30.0
_CHECKPOINT_EVERY: Final = 1000
_WAL_PAGES: Final = 32_000
_RESTART_TIMEOUT_MS: Final = 500
# Changes a value: SQLite does not write unchanged pages.
_TOUCH: Final = """
    INSERT INTO writer_probe (node, probed_at) VALUES ('checkpoint', 0)
    ON CONFLICT (node) DO UPDATE SET probed_at = probed_at + 1
"""

# Else the driver looks for a way to adapt each None and drops an error; the rows of a call have some fifty.
sqlite3.register_adapter(type(None), {None: None}.get)


class Sqlite(Database):
    """
    SQLite database: a writing connection, a lookup connection, two reader threads, a checkpoint thread.

    Transactions run on the event loop itself while the disk is fast. A commit only copies pages into the
    operating system's cache; handing that to a thread takes longer than the commit, and the thread would
    have to reacquire the interpreter lock after every statement: with a busy loop a transaction then takes
    a hundred times as long. The same holds for looking up a row by its key. Slow operations do not run on
    the loop: longer queries (threads), waiting for another process's lock (fails at once, the writer
    retries), checkpoints with their fsync (a thread), and a disk that stalls: after one slow transaction the
    next ones run on a thread until the disk is fast again.

    ``synchronous`` is NORMAL: a commit that returned is in the operating system's cache, so it survives any
    end of this process; after a power loss the database is intact and may lack the last transactions.
    """

    def __init__(self, url: URL, secrets: Cipher | None = None) -> None:
        if not url.database or url.database == ":memory:":
            raise ValueError("SQLite needs a file: its connections do not share a database in memory")
        super().__init__()
        path = Path(url.database)
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file holds customers' data, so only its owner may read it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._url = url.set(drivername="sqlite+pysqlite")
        self._engine = _engine(self._url, secrets)
        self._connection: Connection | None = None
        self._driver: sqlite3.Connection
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="database-writer")
        self._reading = _engine(self._url, secrets, query_only=True)
        self._looker: Connection | None = None
        self._readers = _Readers(self._reading)
        self._checkpoints = _Checkpoints(_engine(self._url, secrets), self._writing)
        self._slow_until = 0.0
        self._closed = False
        self._path = path
        self._address = os.fspath(path)
        found = path.stat()
        self._identity = found.st_dev, found.st_ino

    async def _read(self, operation: Operation[T]) -> T:
        """Run a function that only reads, on a thread."""
        return await self._readers.run(operation)

    async def _look_up(self, operation: Operation[T]) -> T:
        """Run a function that reads a few rows by their keys, on the event loop unless the disk is slow."""
        if self._closed or asyncio.get_running_loop().time() < self._slow_until:
            return await self._read(operation)
        return self._here(self._look, operation)

    async def write(self, operation: Operation[T]) -> T:
        """Run a function in one transaction and commit it."""
        loop = asyncio.get_running_loop()
        async with self._writing:
            if loop.time() < self._slow_until:
                started = loop.time()
                try:
                    result = await loop.run_in_executor(self._thread, self._transact, operation)
                finally:
                    # Stay on the thread until the disk is fast again.
                    if loop.time() - started > _SLOW_S:
                        self._slow_until = loop.time() + _SLOW_FOR_S
            else:
                result = self._here(self._transact, operation)
        self._checkpoints.count()
        return result

    async def was_committed(self, transaction: Any) -> bool | None:
        """Return False: a commit that fails here has certainly failed."""
        return False

    async def migrate(self) -> None:
        """Bring the schema up to date, waiting for another process that migrates."""
        try:
            if await self._read(schema.current) == schema.HEAD:
                return
        except sa.exc.OperationalError as error:
            # Another process is creating the file. Unlike a read, the migration waits for it.
            log.info("the database is busy, waiting for it: %s", error)
        loop = asyncio.get_running_loop()
        async with self._writing:
            await loop.run_in_executor(self._thread, self._migrate)

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        if self._looker is not None:
            _close(self._looker)
            self._looker = None
        await self._readers.close()
        await self._checkpoints.close()
        async with self._writing:
            self._discard()
        self._thread.shutdown(wait=True)
        self._engine.dispose()

    def _here(self, run: Callable[[Operation[T]], T], operation: Operation[T]) -> T:
        loop = asyncio.get_running_loop()
        started, computed_s = loop.time(), time.thread_time()
        try:
            return run(operation)
        finally:
            ended = loop.time()
            # A statement that is compiled takes time as well, but only the disk can make us wait.
            waited_s = ended - started - (time.thread_time() - computed_s)
            if self.serving and waited_s > _SLOW_S:
                self._slow_until = ended + _SLOW_FOR_S
                log.warning("the database took %.0f ms; using a thread for a while", waited_s * 1000)

    def _look(self, operation: Operation[T]) -> T:
        if self._looker is None:
            self._looker = self._reading.connect()
        try:
            with self._looker.begin():
                return operation(self._looker)
        except BaseException:
            _close(self._looker)
            self._looker = None
            raise

    def _transact(self, operation: Operation[T]) -> T:
        if self._connection is None:
            self._check_place()
            self._connection = self._engine.connect()
            self._driver = _driver(self._connection)
        connection, driver = self._connection, self._driver
        try:
            # SQLAlchemy's own begin costs more than a small transaction; operations through SQLAlchemy find
            # the transaction already begun.
            driver.execute("BEGIN IMMEDIATE")
            result = operation(connection)
            self._check_place()
            if connection.in_transaction():
                connection.commit()
            else:
                driver.commit()
        except BaseException as error:
            self._roll_back(connection, driver)
            if is_transient(error) and not is_busy(error):
                # The connection's page cache may no longer match the file.
                self._discard()
            raise
        return result

    def _check_place(self) -> None:
        """
        Reject writes to a file that was moved or replaced.

        SQLite itself would keep writing to the open file, and the data would be lost.

        Raises:
            DatabaseMoved: The file at the database's path is not the one that was opened.
        """
        try:
            found = os.stat(self._address)
        except OSError:
            raise DatabaseMoved(f"{self._path} is gone; put it back") from None
        if (found.st_dev, found.st_ino) != self._identity:
            raise DatabaseMoved(f"{self._path} is another file than before; restart the server to use it")

    def _roll_back(self, connection: Connection, driver: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction():
                connection.rollback()
            if driver.in_transaction:
                driver.rollback()
        except Exception as error:
            log.warning("a transaction could not be rolled back, connecting anew: %s", error)
            self._discard()

    def _migrate(self) -> None:
        with self._engine.connect() as connection:
            _driver(connection).execute(f"PRAGMA busy_timeout = {_MIGRATION_TIMEOUT_MS}")
            with connection.begin():
                schema.upgrade(connection)

    def _discard(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)


def _engine(url: URL, secrets: Cipher | None, *, query_only: bool = False) -> Engine:
    # Errors name the statement without its values: they end in the log, the values are customers'.
    # A missing file is not created again: an empty database in its place would hide the loss.
    address = f"file:{quote(os.path.abspath(str(url.database)))}?mode=rw"
    engine = sa.create_engine(
        url,
        creator=lambda: sqlite3.connect(address, uri=True, check_same_thread=False),
        poolclass=NullPool,
        hide_parameters=True,
        execution_options={OPTION: secrets},
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # The driver must not begin transactions itself: it does so too late, and not for DDL.
        connection.isolation_level = None
        cursor = connection.cursor()
        _enter_wal(cursor)
        cursor.execute("PRAGMA busy_timeout = 0")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA wal_autocheckpoint = 0")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA query_only = {int(query_only)}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        driver = _driver(connection)
        if not driver.in_transaction:
            driver.execute("BEGIN" if query_only else "BEGIN IMMEDIATE")

    return engine


def _enter_wal(cursor: sqlite3.Cursor) -> None:
    """
    Switch the file to WAL mode: the only step here that may block, and only while the file is new.

    If several processes change the mode at once, SQLite fails all but one without waiting, whatever the busy
    timeout: each holds a lock that the other needs. These processes retry.
    """
    cursor.execute(f"PRAGMA busy_timeout = {_WAL_TIMEOUT_MS}")
    pause = threading.Event()
    for _ in range(_WAL_TIMEOUT_MS // _WAL_PAUSE_MS):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            pause.wait(_WAL_PAUSE_MS / 1000)
        else:
            return
    cursor.execute("PRAGMA journal_mode = WAL")


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _close(connection: Connection) -> None:
    try:
        connection.invalidate()
        connection.close()
    except Exception as error:
        log.debug("closing a broken connection failed: %s", error)


class _Readers:
    """Reader threads, each with its own connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"database-reader-{index}", daemon=True)
            for index in range(_READERS)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, operation: Operation[T]) -> T:
        if self._closed:
            raise ServiceUnavailable("The database is closed.")
        if self._jobs.qsize() >= _MAX_WAITING:
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
                if connection is not None:
                    _close(connection)
                    connection = None
                job.settle(None, error)
            else:
                job.settle(result, None)
        if connection is not None:
            _close(connection)


@dataclass(slots=True, eq=False)
class _Job:
    """Read operation, with the future that gets its result."""

    operation: Operation[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop

    def settle(self, result: Any, error: BaseException | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:
            log.debug("the event loop was closed before a query ended")

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class _Checkpoints:
    """
    Copies the write-ahead log into the database, on a thread, every ``_CHECKPOINT_EVERY`` transactions.

    The first copy begins with the first transaction: a process that was killed has left its log, and one that
    is killed again and again would not live to copy it.

    A passive checkpoint blocks nothing but, under steady writes, never reaches the log's end, where the next
    write could restart the log. So once the log is long, another checkpoint copies the remainder while the
    writers of this process wait. The first write to the new log follows at once, because it syncs the log's
    header. Readers are never waited for: while one of them needs the log, it grows.
    """

    def __init__(self, engine: Engine, writing: asyncio.Lock) -> None:
        self._engine = engine
        self._writing = writing
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="database-checkpoint")
        self._transactions = _CHECKPOINT_EVERY
        self._task: asyncio.Task[None] | None = None

    def count(self) -> None:
        self._transactions += 1
        if self._transactions >= _CHECKPOINT_EVERY and self._task is None:
            self._transactions = 0
            self._task = asyncio.create_task(self._run(), name="database-checkpoint")

    async def close(self) -> None:
        if self._task is not None:
            await self._task
        await asyncio.to_thread(self._thread.shutdown, wait=True)
        self._engine.dispose()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            if await loop.run_in_executor(self._thread, self._copy) > _WAL_PAGES:
                # Little is left after the second copy, so the writers wait briefly. Failing and retrying
                # would take them several times as long.
                await loop.run_in_executor(self._thread, self._copy)
                async with self._writing:
                    await loop.run_in_executor(self._thread, self._start_over)
        except Exception as error:
            log.warning("a checkpoint of the database failed: %s", error)
        finally:
            self._task = None

    def _copy(self) -> int:
        """Run a passive checkpoint; returns the length of the log in pages."""
        with self._engine.connect() as connection:
            return _copy_log(_driver(connection))

    def _start_over(self) -> None:
        with self._engine.connect() as connection:
            driver = _driver(connection)
            _copy_log(driver)
            driver.execute(f"PRAGMA busy_timeout = {_RESTART_TIMEOUT_MS}")
            driver.execute("BEGIN IMMEDIATE")
            driver.execute(_TOUCH)
            driver.commit()


def _copy_log(driver: sqlite3.Connection) -> int:
    _, pages, _ = driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(pages)
