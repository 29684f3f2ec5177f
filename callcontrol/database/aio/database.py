"""
Database access: runs functions of a connection where that is cheapest.

A repository function takes a synchronous connection. On PostgreSQL it runs on the event loop through
SQLAlchemy's asyncio engine, so waiting for the network blocks nothing else. SQLite has no network, only
copies into the operating system's page cache; see ``callcontrol.database.aio.sqlite.Sqlite``.
"""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from callcontrol.database import schema
from callcontrol.database.encryption import OPTION, Cipher
from callcontrol.database.errors import CommitInDoubt, is_transient
from callcontrol.errors import DomainError, ServiceUnavailable
from callcontrol.models import Page

T = TypeVar("T")
Operation = Callable[[Connection], T]

log = logging.getLogger(__name__)

_POSTGRES_TIMEOUT_S: Final = 10.0
_HURRIED_S: Final = 1.0
_STOPPED_MS: Final = 5000
"""PostgreSQL rolls back a transaction idle for this long: its process is stopped, or gone."""

_NO_SUCH_TRANSACTION: Final = "22023"
"""SQLSTATE for a transaction number that was never used."""

_TURN: Final = 0x7472756E6B77
"""Advisory lock of the writing process ("trunkw")."""


class Database(ABC):
    """One SQLite or PostgreSQL database; `open` makes the one of a URL."""

    def __init__(self) -> None:
        self._unreadable = False
        self.unwritable = False
        """True while the writer has given up on the database; reads then have a short limit."""
        self.serving = False
        """True once the process has started; until then a slow operation says nothing of the disk."""

    @classmethod
    async def open(cls, url: str, *, migrate: bool = True, secrets: Cipher | None = None) -> "Database":
        """
        Open a database; create an SQLite file and its folder if missing.

        Args:
            url: ``sqlite+aiosqlite:///path`` (or ``sqlite:///path``), or ``postgresql+asyncpg://...``.
            migrate: Bring the schema up to date.
            secrets: Encrypts and decrypts secrets in rows; without it, rows with secrets cannot be used.

        Raises:
            ValueError: The URL names no supported database.
        """
        database = _database_at(url, secrets)
        if migrate:
            try:
                await database.migrate()
            except BaseException:
                await database.close()
                raise
        return database

    @abstractmethod
    async def migrate(self) -> None:
        """Run the missing migrations; other processes wait meanwhile."""

    async def read(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """
        Run a function that only reads.

        Raises:
            DomainError: The error that the operation returned or raised.
            ServiceUnavailable: The database is failing, or too many readers wait for it.
        """
        return await self._asked(self._read(partial(outcome, operation)))

    async def page(self, find: Callable[..., tuple[list[T], int]], page: int, per_page: int) -> Page[T]:
        """Read a page of ``find(connection, offset=, limit=)``, which returns rows and the total."""
        found, total = await self.read(
            lambda connection: find(connection, offset=(page - 1) * per_page, limit=per_page)
        )
        return Page(found, total, page, per_page)

    async def look_up(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """
        Run a function that reads a few rows by their keys, without queueing behind other readers.

        Raises:
            DomainError: The error that the operation returned or raised.
            ServiceUnavailable: The database is failing.
        """
        return await self._asked(self._look_up(partial(outcome, operation)))

    @abstractmethod
    async def write(self, operation: Operation[T]) -> T:
        """
        Run a function in one transaction and commit it; any exception rolls it back.

        The writer uses this. Exceptions are those of the function and of the driver.

        Raises:
            CommitInDoubt: The connection was lost during the commit; ask ``was_committed``.
        """

    @abstractmethod
    async def was_committed(self, transaction: int) -> bool | None:
        """
        Return True if a transaction whose commit was in doubt is durable; None while it is in progress.

        Exceptions are those of the driver.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""

    @abstractmethod
    async def _read(self, operation: Operation[T]) -> T:
        """Run a function that only reads; exceptions are those of the function and of the driver."""

    @abstractmethod
    async def _look_up(self, operation: Operation[T]) -> T:
        """As ``_read``, for a few rows by their keys."""

    async def _asked(self, answer: Awaitable[T | DomainError]) -> T:
        try:
            async with asyncio.timeout(_HURRIED_S if self.unwritable else None):
                found = await answer
        except Exception as error:  # Drivers share no class for it; other errors are raised again.
            if not is_transient(error):
                raise
            if not self._unreadable:
                self._unreadable = True
                log.warning("reading the database failed: %s", str(error) or type(error).__name__)
            raise ServiceUnavailable("The database does not answer; try again shortly.") from error
        if self._unreadable:
            self._unreadable = False
            log.warning("the database can be read again")
        if isinstance(found, DomainError):
            raise found
        return found


def outcome(operation: Callable[[Connection], T | DomainError], connection: Connection) -> T | DomainError:
    """Return the result of an operation, or the error that it raised: the transaction ends as usual."""
    try:
        return operation(connection)
    except DomainError as refusal:
        return refusal


def _answered(error: BaseException) -> bool:
    """Return True if the server itself rejected the commit; a lost connection gives no reason."""
    cause: BaseException | None = error.orig if isinstance(error, DBAPIError) else error
    while cause is not None:
        state = getattr(cause, "sqlstate", None)
        if state is not None:
            # 57P01 and the like: the server shut the connection down, possibly after the commit.
            return not str(state).startswith(("08", "57P"))
        cause = cause.__cause__
    return False


def _database_at(url: str, secrets: Cipher | None) -> Database:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError(f"{url!r} is not a database URL") from error
    name = parsed.get_backend_name()
    if name == "sqlite":
        from callcontrol.database.aio.sqlite import Sqlite

        return Sqlite(parsed, secrets)
    if name == "postgresql":
        return _Postgres(parsed, secrets)
    raise ValueError(f"a database of the kind {name!r} is not supported: use SQLite or PostgreSQL")


class _Postgres(Database):
    """
    PostgreSQL through asyncpg, on the event loop.

    Processes write one after the other, as on SQLite. A transaction of the writer locks rows of many calls
    in arbitrary order; two at once would deadlock, and PostgreSQL resolves a deadlock only after a second.
    Operations waiting for the lock share one transaction, so little is lost.
    """

    def __init__(self, url: URL, secrets: Cipher | None) -> None:
        super().__init__()
        self._engine = create_async_engine(
            url.set(drivername="postgresql+asyncpg"),
            hide_parameters=True,
            execution_options={OPTION: secrets},
            pool_size=5,
            max_overflow=5,
            pool_timeout=_POSTGRES_TIMEOUT_S,
            connect_args={
                "timeout": _POSTGRES_TIMEOUT_S,
                "command_timeout": _POSTGRES_TIMEOUT_S,
                "server_settings": {"idle_in_transaction_session_timeout": str(_STOPPED_MS)},
            },
        )

    async def _read(self, operation: Operation[T]) -> T:
        async with self._connected() as connection:
            return await connection.run_sync(operation)

    async def _look_up(self, operation: Operation[T]) -> T:
        return await self._read(operation)

    async def write(self, operation: Operation[T]) -> T:
        async with self._connected() as connection:
            # One query for the lock and the transaction number, so the number costs nothing.
            turn = await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TURN}), txid_current()")
            transaction = int(turn.one()[-1])
            result = await connection.run_sync(operation)
            try:
                await connection.commit()
            except Exception as error:
                # A rejected commit has been rolled back; an unanswered one may be durable.
                if _answered(error):
                    raise
                raise CommitInDoubt(transaction, result) from error
            return result

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        """
        Lend a connection, and close it if it was interrupted in the middle of an operation.

        An interrupted BEGIN (timeout, cancellation) may still be executed. The pool would lend the connection
        again as idle, and later commits on it would be part of that transaction, which nobody commits.
        """
        async with self._engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            if driver is None or driver.is_in_transaction():
                await connection.invalidate()
                raise ConnectionError("a connection was left in the middle of a transaction")
            try:
                yield connection
            except BaseException as error:
                cut_off = not isinstance(error, Exception) or isinstance(error, CommitInDoubt)
                if cut_off or is_transient(error):
                    await connection.invalidate()
                raise

    async def was_committed(self, transaction: int) -> bool | None:
        try:
            status = await self._read(
                lambda connection: connection.exec_driver_sql(f"SELECT txid_status({transaction})").scalar()
            )
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _NO_SUCH_TRANSACTION:
                raise
            # Another server replaced the one that should commit, and does not know the transaction.
            return False
        return None if status == "in progress" else status == "committed"

    async def migrate(self) -> None:
        async with self._engine.begin() as connection:
            # A migration may compute for a while between two statements.
            await connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            await connection.run_sync(schema.upgrade)

    async def close(self) -> None:
        await self._engine.dispose()
