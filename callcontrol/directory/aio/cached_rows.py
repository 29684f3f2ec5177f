"""Access for services to rows that the in-memory directory mirrors."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database, outcome
from callcontrol.database.aio.writer import Writer
from callcontrol.database.rows import ValueTable
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.errors import DomainError
from callcontrol.models import Page

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
ValueT = TypeVar("ValueT", bound="DataclassInstance")
Check = Callable[[Connection], None]


class CachedRows:
    """
    Changes rows; once a change returns, the directory of this process has it.

    An operation fails by raising or returning a ``DomainError`` before it has written anything.
    """

    def __init__(self, database: Database, writer: Writer, directory: DirectoryLoader) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory

    async def settle(self) -> None:
        """Write the pending state of calls, so that calls just ended do not count as active."""
        await self._writer.flush_pending()

    async def change(self, operation: Callable[[Connection], T | DomainError]) -> T:
        """Run a change in the next transaction, then refresh the directory."""
        changed = await self._writer.commit(partial(outcome, operation))
        await self._directory.refresh()
        return changed


class OwnedRows(CachedRows, Generic[ValueT]):
    """
    Values of one table, each of an account, or of the platform for None.

    One of another owner is refused with ``Forbidden``, an unknown one with ``NotFound``. ``delete`` deletes
    one by its key, if rows of other tables go with it.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: DirectoryLoader,
        table: ValueTable[ValueT],
        delete: Callable[[Connection, str, datetime], None] | None = None,
    ) -> None:
        super().__init__(database, writer, directory)
        self._table = table
        self._delete = delete or table.delete

    async def create(
        self, account_sid: str, value: ValueT, most: int, check: Check = lambda _: None
    ) -> ValueT:
        """
        Write a new value of the account, unless ``check`` raises an error.

        Raises:
            Conflict: The account has ``most`` values.
        """

        def write(connection: Connection) -> ValueT:
            self._table.check_room(connection, account_sid, most)
            check(connection)
            self._table.insert(connection, value)
            return value

        return await self.change(write)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[ValueT]:
        """List a page of the account's values."""
        mine = partial(self._table.of_account, account_sid=account_sid)
        return await self._database.page(mine, page, per_page)

    async def get(self, account_sid: str, key: str) -> ValueT:
        """Get a value of the account."""
        return await self._database.look_up(
            lambda connection: self._table.owned(connection, account_sid, key)
        )

    async def update(
        self, account_sid: str | None, key: str, change: Callable[[Connection, ValueT], ValueT]
    ) -> ValueT:
        """Write the result of ``change``, unless it raises an error."""

        def write(connection: Connection) -> ValueT:
            changed = change(connection, self._table.owned(connection, account_sid, key, lock=True))
            self._table.update(connection, changed)
            return changed

        return await self.change(write)

    async def delete(self, account_sid: str | None, key: str, check: Check) -> None:
        """Delete a value, unless ``check`` raises an error."""
        now = utc_now()

        def write(connection: Connection) -> None:
            self._table.owned(connection, account_sid, key, lock=True)
            check(connection)
            self._delete(connection, key, now)

        await self.change(write)
