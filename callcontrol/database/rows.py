"""Rows as values: one mapping for each table, with the statements that the stores have in common."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database import revisions
from callcontrol.database.encryption import BINDINGS, SEALED, seal, seal_binding, unseal, unseal_binding
from callcontrol.database.statements import pack, to_micros, to_micros_or_none, to_moment_or_none, unpack
from callcontrol.errors import Conflict, Forbidden, NotFound

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Row = Mapping[Any, Any]
Condition = sa.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion of a field's value to its column, and back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


MOMENT: Final = Codec(to_micros_or_none, to_moment_or_none)
JSON: Final = Codec(
    lambda value: None if value is None else pack(value), lambda text: None if text is None else unpack(text)
)
_AS_IT_IS: Final = Codec(lambda value: value, lambda value: value)
JSON_TUPLE: Final = Codec(pack, lambda text: tuple(unpack(text)))
COMMA_TUPLE: Final = Codec(",".join, lambda text: tuple(text.split(",")) if text else ())


@dataclass(frozen=True, slots=True)
class Part:
    """Conversion of a field with several columns: ``write`` is given the whole value, ``read`` the row."""

    write: Callable[[Connection, Any], Mapping[str, Any]]
    read: Callable[[Connection, Row], Any]


_SECRET: Final[Mapping[sa.Column[Any], tuple[Callable[..., Any], Callable[..., Any]]]] = {
    **dict.fromkeys(SEALED, (seal, unseal)),
    **dict.fromkeys(BINDINGS, (seal_binding, unseal_binding)),
}


def count(connection: Connection, source: sa.FromClause, *where: sa.ColumnExpressionArgument[bool]) -> int:
    """Count the rows that meet all conditions."""
    return connection.scalar(sa.select(sa.func.count()).select_from(source).where(*where)) or 0


class ValueTable(Generic[T]):
    """
    Table whose rows are values of a dataclass, with the fields' names as the columns'.

    Times, secrets and bindings are converted by the field's type and the column.

    Args:
        table: The table; its key is one column, which is also a field.
        kind: The dataclass.
        called: Name of a value in errors.
        order: Order of lists.
        fixed: Fields that an update leaves unchanged, besides the key.
        columns: Columns of the fields with another name.
        codecs: Conversions of other fields.
        parts: Conversions of fields with several columns.
    """

    def __init__(
        self,
        table: sa.Table,
        kind: type[T],
        *,
        called: str = "",
        order: Sequence[sa.ColumnElement[Any]] = (),
        fixed: Collection[str] = ("account_sid", "created_at"),
        columns: Mapping[str, str] | None = None,
        codecs: Mapping[str, Codec] | None = None,
        parts: Mapping[str, Part] | None = None,
    ) -> None:
        (self._key,) = table.primary_key.columns
        self.table = table
        self.live: tuple[Condition, ...] = (table.c.deleted_at.is_(None),) if "deleted_at" in table.c else ()
        self._make: Callable[..., T] = kind
        self._called = called
        self._order = order
        self._parts = dict(parts or {})
        self._plain: list[str] = []
        stored = [field for field in fields(kind) if field.init]  # the others are derived from these
        for field in stored:
            if field.name in self._parts:
                continue
            column = table.c[(columns or {}).get(field.name, field.name)]
            part = self._part_of(field.name, column, field.type, (codecs or {}).get(field.name))
            if part is None:
                self._plain.append(field.name)
            else:
                self._parts[field.name] = part
        self._names = [field.name for field in stored]
        self._changing = [name for name in self._names if name not in {self._key.name, *fixed}]

    def row_of(self, connection: Connection, value: T, names: Sequence[str] = ()) -> dict[str, Any]:
        """Columns of a value, or of its named fields."""
        row: dict[str, Any] = {}
        for name in names or self._names:
            part = self._parts.get(name)
            row |= {name: getattr(value, name)} if part is None else part.write(connection, value)
        return row

    def value_of(self, connection: Connection, row: Any) -> T:
        """Value of a row, which may be a mapping or a row of SQLAlchemy."""
        row = getattr(row, "_mapping", row)
        converted = {name: part.read(connection, row) for name, part in self._parts.items()}
        return self._make(**{name: row[name] for name in self._plain}, **converted)

    def insert(self, connection: Connection, value: T, revision: int | None = None, **columns: Any) -> None:
        """Write a new value; ``revision`` is by default the directory's next, ``columns`` are of no field."""
        row = self.row_of(connection, value) | columns | self._revision(connection, revision)
        connection.execute(sa.insert(self.table).values(row))

    def update(
        self, connection: Connection, value: T, revision: int | None = None, *names: str, **columns: Any
    ) -> None:
        """Write the fields of a value that can change, or only those named; ``columns`` as for ``insert``."""
        row = self.row_of(connection, value, names or self._changing) | columns
        row |= self._revision(connection, revision)
        key = getattr(value, self._key.name)
        connection.execute(sa.update(self.table).where(self._key == key).values(row))

    def get(self, connection: Connection, key: Any, *, lock: bool = False) -> T | None:
        """Get a value of any owner by its key; ``lock`` blocks other writers until the transaction ends."""
        return self.first(connection, self._key == key, *self.live, lock=lock)

    def first(self, connection: Connection, *where: Condition, lock: bool = False) -> T | None:
        """Get the value that meets all conditions."""
        row = self._row(connection, *where, lock=lock)
        return None if row is None else self.value_of(connection, row)

    def owned(self, connection: Connection, account_sid: str | None, key: Any, *, lock: bool = False) -> T:
        """
        Get a value of an account, or of the platform for None.

        Raises:
            NotFound: There is no such value.
            Forbidden: It has another owner.
        """
        row = self._row(connection, self._key == key, *self.live, lock=lock)
        if row is None:
            raise NotFound(f"There is no such {self._called}.")
        if row["account_sid"] != account_sid:
            raise Forbidden(f"The {self._called} belongs to another account.")
        return self.value_of(connection, row)

    def all(
        self,
        connection: Connection,
        *where: Condition,
        order: Sequence[sa.ColumnElement[Any]] = (),
        offset: int | None = None,
        limit: int | None = None,
    ) -> list[T]:
        """List the values that meet all conditions, in the table's order or another."""
        wanted = sa.select(self.table).where(*where).order_by(*(order or self._order))
        rows = connection.execute(wanted.offset(offset).limit(limit)).mappings()
        return [self.value_of(connection, row) for row in rows]

    def by_keys(self, connection: Connection, keys: Sequence[Any]) -> list[T]:
        """Values with these keys, in their order; one that does not exist is left out."""
        rows = connection.execute(sa.select(self.table).where(self._key.in_(keys))).mappings()
        found = {row[self._key.name]: self.value_of(connection, row) for row in rows}
        return [found[key] for key in keys if key in found]

    def page(
        self,
        connection: Connection,
        *where: Condition,
        order: Sequence[sa.ColumnElement[Any]] = (),
        offset: int,
        limit: int | None,
    ) -> tuple[list[T], int]:
        """Page of the values that meet all conditions, and their total number."""
        total = count(connection, self.table, *where)
        return self.all(connection, *where, order=order, offset=offset, limit=limit), total

    def of_account(
        self, connection: Connection, account_sid: str | None, *, offset: int = 0, limit: int | None = None
    ) -> tuple[list[T], int]:
        """Page of the account's values, and their total number."""
        return self.page(connection, *self._mine(account_sid), offset=offset, limit=limit)

    def check_room(self, connection: Connection, account_sid: str, most: int) -> None:
        """
        Reject another value of an account.

        Raises:
            Conflict: The account has ``most`` values.
        """
        if count(connection, self.table, *self._mine(account_sid)) >= most:
            raise Conflict(f"The account has {most} {self._called}s; delete one first.")

    def delete(
        self, connection: Connection, key: Any, now: datetime, revision: int | None = None, **columns: Any
    ) -> None:
        """Mark a row as deleted; it stays for the records that name it, and for the directories."""
        gone = {"deleted_at": to_micros(now), **columns, **self._revision(connection, revision)}
        connection.execute(sa.update(self.table).where(self._key == key).values(gone))

    def changed_since(self, connection: Connection, seen: int) -> Iterator[tuple[T, bool]]:
        """Values changed after a revision of the directory, each with True if it still exists."""
        wanted = sa.select(self.table).where(self.table.c.revision > seen)
        for row in connection.execute(wanted).mappings():
            yield self.value_of(connection, row), row["deleted_at"] is None

    def _revision(self, connection: Connection, revision: int | None) -> dict[str, int]:
        if "revision" not in self.table.c:
            return {}
        return {"revision": revisions.next_revision(connection) if revision is None else revision}

    def _row(self, connection: Connection, *where: Condition, lock: bool) -> Row | None:
        wanted = sa.select(self.table).where(*where)
        return connection.execute(wanted.with_for_update() if lock else wanted).mappings().first()

    def _mine(self, account_sid: str | None) -> tuple[Condition, ...]:
        return (self.table.c.account_sid == account_sid, *self.live)

    def _part_of(self, name: str, column: sa.Column[Any], kind: Any, codec: Codec | None) -> Part | None:
        """Conversion of a field with one column; None if it is stored as it is."""
        key = self._key.name
        if column in _SECRET:
            hide, show = _SECRET[column]
            return Part(
                lambda connection, value: {
                    column.name: hide(connection, column, getattr(value, key), getattr(value, name))
                },
                lambda connection, row: show(connection, column, row[key], row[column.name]),
            )
        if codec is None:
            if kind in (datetime, datetime | None):
                codec = MOMENT
            elif column.name == name:
                return None
            else:
                codec = _AS_IT_IS
        encode, decode = codec.encode, codec.decode
        return Part(
            lambda _, value: {column.name: encode(getattr(value, name))},
            lambda _, row: decode(row[column.name]),
        )
