"""Rows that the in-memory directory mirrors, as the services read and change them that own them."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

from callcontrol.accounts.aio.accounts import Refresher
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.models import Page

__all__ = ["MirroredRows"]

T = TypeVar("T")


class MirroredRows:
    """
    Reads and changes rows; once a change is answered, the directory of this process knows of it.

    An operation that refuses returns the ``DomainError``, which is raised here.
    """

    def __init__(self, database: Database, writer: Writer, directory: Refresher) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory

    async def look_up(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """What is read by its key."""
        found = await self._database.look_up(operation)
        if isinstance(found, DomainError):
            raise found
        return found

    async def page(self, find: Callable[..., tuple[list[T], int]], page: int, per_page: int) -> Page[T]:
        """One page of what ``find(connection, offset=, limit=)`` reads with how many there are of it."""
        found, total = await self._database.read(
            lambda connection: find(connection, offset=(page - 1) * per_page, limit=per_page)
        )
        return Page(found, total, page, per_page)

    async def settle(self) -> None:
        """Have the state of calls written that waits for it: one that has just ended is none that is up."""
        await self._writer.catch_up()

    async def change(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """Run a change in the next transaction, and have the directory take it in."""
        changed = await self._writer.commit(operation)
        await self._directory.refresh()
        return changed
