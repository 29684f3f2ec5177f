"""Access for services to rows that the in-memory directory mirrors."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

from callcontrol.accounts.aio.accounts import Refresher
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.models import Page

__all__ = ["CachedRows"]

T = TypeVar("T")


class CachedRows:
    """
    Reads and changes rows; once a change returns, the directory of this process has it.

    An operation returns a ``DomainError`` to fail, and it is raised here.
    """

    def __init__(self, database: Database, writer: Writer, directory: Refresher) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory

    async def look_up(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """Read a row by its key."""
        found = await self._database.look_up(operation)
        if isinstance(found, DomainError):
            raise found
        return found

    async def page(self, find: Callable[..., tuple[list[T], int]], page: int, per_page: int) -> Page[T]:
        """One page of ``find(connection, offset=, limit=)``, which returns rows and the total."""
        found, total = await self._database.read(
            lambda connection: find(connection, offset=(page - 1) * per_page, limit=per_page)
        )
        return Page(found, total, page, per_page)

    async def settle(self) -> None:
        """Write the pending state of calls, so that calls just ended do not count as active."""
        await self._writer.flush_pending()

    async def change(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """Run a change in the next transaction, then refresh the directory."""
        changed = await self._writer.commit(operation)
        await self._directory.refresh()
        return changed
