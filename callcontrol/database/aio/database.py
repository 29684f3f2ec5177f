"""
Database access: runs functions of a connection where that is cheapest.

A repository function takes a synchronous connection. On PostgreSQL it runs on the event loop through
SQLAlchemy's asyncio engine, so waiting for the network blocks nothing else. SQLite has no network, only
copies into the operating system's page cache; see ``callcontrol.database.aio.sqlite.Sqlite``.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from callcontrol.database.encryption import Cipher
from callcontrol.database.errors import is_transient
from callcontrol.database.functions import Execution
from callcontrol.errors import DomainError, ServiceUnavailable
from callcontrol.models import Page

if TYPE_CHECKING:
    from callcontrol.database.aio.postgres import Postgres

T = TypeVar("T")
Operation = Callable[[Connection], T]

log = logging.getLogger(__name__)

_HURRIED_S: Final = 1.0


class Database(ABC):
    """One SQLite or PostgreSQL database; `open` makes the one of a URL."""

    def __init__(self) -> None:
        self._unreadable = False
        self.unwritable = False
        """True while the writer has given up on the database; reads then have a short limit."""
        self.serving = False
        """True once the process has started; until then a slow operation says nothing of the disk."""

    @property
    def shared(self) -> "Postgres | None":
        """The database itself, if several machines can share it."""
        return None

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

    async def execute(self, make: Callable[[], Execution | None]) -> Execution | None:
        """
        Run an operation as a function of the database; None if nothing was done, so that ``write`` has to.

        Exceptions are those of the driver.

        Raises:
            CommitInDoubt: The connection was lost; ask ``was_committed``.
        """
        return None

    @abstractmethod
    async def was_committed(self, transaction: Any) -> bool | None:
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


def _database_at(url: str, secrets: Cipher | None) -> Database:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError(f"{url!r} is not a database URL") from error
    name = parsed.get_backend_name()
    # Imported here: each imports this module, and PostgreSQL needs another half of SQLAlchemy.
    if name == "sqlite":
        from callcontrol.database.aio.sqlite import Sqlite

        return Sqlite(parsed, secrets)
    if name == "postgresql":
        from callcontrol.database.aio.postgres import Postgres

        return Postgres(parsed, secrets)
    raise ValueError(f"a database of the kind {name!r} is not supported: use SQLite or PostgreSQL")
