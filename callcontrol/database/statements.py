"""
Precompiled statements for the rows that every call writes, and the values that rows hold.

Values are converted here and not by SQLAlchemy: timestamps, structured values and external text.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, Any]
_Compiled = tuple[str, Callable[[Values], tuple[Any, ...]], dict[str, Any]]

CLOCK_US: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
"""SQL of the clock of PostgreSQL, in microseconds since the epoch."""

_MOST_ROWS: Final = 64
# `json.dumps` makes an encoder for every value whose form is not the default one. No value contains itself:
# to look for that takes a quarter of the time.
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
_EXACT: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Statement:
    """
    Statement compiled once per dialect and then passed to the driver as text.

    SQLAlchemy Core takes several times as long to execute a small statement as SQLite does, and these are
    executed for every call. So no values are converted: they must be text, integers, booleans or bytes, the
    only column types, and rows are returned as plain mappings. Every execution gives a value to each named
    bind parameter; constants of the clause are filled in.
    """

    def __init__(self, clause: sa.Executable, *, suffix: str = "") -> None:
        self._clause = clause
        self._suffix = suffix
        self._compiled: dict[str, _Compiled] = {}
        self._returned: Sequence[str] = ()

    def run(self, connection: Connection, values: Values) -> int:
        """Execute with one set of values and return the number of changed rows."""
        cursor = self._execute(connection, values)
        count: int = cursor.rowcount
        cursor.close()
        return count

    def first(self, connection: Connection, values: Values) -> dict[str, Any] | None:
        """Execute with one set of values and return the first row."""
        cursor = self._execute(connection, values)
        row = cursor.fetchone()
        names = cursor.description
        cursor.close()
        return None if row is None else {name[0]: value for name, value in zip(names, row, strict=True)}

    def all(self, connection: Connection, values: Values) -> list[dict[str, Any]]:
        """Execute with one set of values and return every row."""
        cursor = self._execute(connection, values)
        found = cursor.fetchall()
        names = self._returned = self._returned or [column[0] for column in cursor.description]
        cursor.close()
        return [dict(zip(names, row, strict=True)) for row in found] if found else []

    def many(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Execute once for each set of values, in one call of the driver."""
        if not rows:
            return
        dialect = connection.dialect
        text, in_order, constants = self._compiled.get(dialect.driver) or self._compile(dialect)
        if constants:
            rows = [{**constants, **row} for row in rows]
        cursor = _cursor(connection)
        cursor.executemany(text, list(map(in_order, rows)))
        cursor.close()

    def _execute(self, connection: Connection, values: Values) -> DBAPICursor:
        dialect = connection.dialect
        text, in_order, constants = self._compiled.get(dialect.driver) or self._compile(dialect)
        if constants:
            values = {**constants, **values}
        cursor = _cursor(connection)
        cursor.execute(text, in_order(values))
        return cursor

    def _compile(self, dialect: Dialect) -> _Compiled:
        # What can be executed and has a text is a ClauseElement too, which has the method: no type says both.
        compiled = self._clause.compile(dialect=dialect)  # type: ignore[attr-defined]
        assert isinstance(compiled, SQLCompiler)
        constants = {name: value for name, value in compiled.params.items() if value is not None}
        made = (compiled.string + self._suffix, _in_order(compiled.positiontup or ()), constants)
        self._compiled[dialect.driver] = made
        return made


def _in_order(names: Sequence[str]) -> Callable[[Values], tuple[Any, ...]]:
    """Return what makes the driver's tuple of values by name: one call of C where there are two or more."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple([values[name] for name in names])


class SetStatement:
    """
    Statement over any number of rows at once, for one round trip, which returns rows.

    It is compiled for 1, 2, 4 ... 64 rows, so few texts stand in the caches of the drivers. Another number is
    filled up with the last row: a row that is there twice must change nothing.

    Args:
        columns: Columns whose values a row gives.
        make: Makes the statement for rows of bind parameters.
    """

    def __init__(
        self, columns: Sequence[sa.Column[Any]], make: "Callable[[Sequence[BoundRow]], Statement]"
    ) -> None:
        self._columns = tuple(columns)
        self._make = make
        self._sized: dict[int, Statement] = {}

    def all(self, connection: Connection, rows: Sequence[Values]) -> list[dict[str, Any]]:
        """Execute for rows and return every row of the result."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(rows), _MOST_ROWS):
            part = rows[start : start + _MOST_ROWS]
            size = 1 << (len(part) - 1).bit_length()
            values = {
                f"{column.name}_{number}": part[min(number, len(part) - 1)][column.name]
                for number in range(size)
                for column in self._columns
            }
            found += self._of(size).all(connection, values)
        return found

    def _of(self, size: int) -> Statement:
        found = self._sized.get(size)
        if found is None:
            rows = [
                {
                    column.name: sa.bindparam(f"{column.name}_{number}", type_=column.type)
                    for column in self._columns
                }
                for number in range(size)
            ]
            found = self._sized[size] = self._make(rows)
        return found


BoundRow = Mapping[str, sa.BindParameter[Any]]


class Given:
    """
    Values that a clause takes from outside: bind parameters of their names, or the columns of ``rows``.

    Clauses made with it do for one set of values or for each of many.
    """

    def __init__(self, rows: sa.CTE | None = None) -> None:
        self.rows = rows

    def text(self, name: str) -> sa.ColumnElement[str]:
        """A value that is text."""
        return sa.bindparam(name) if self.rows is None else self.rows.c[name]

    def whole(self, name: str) -> sa.ColumnElement[int]:
        """A value that is an integer."""
        return sa.bindparam(name, type_=sa.BigInteger) if self.rows is None else self.rows.c[name]

    @classmethod
    def each(cls, columns: Sequence[sa.Column[Any]], rows: Sequence[BoundRow]) -> "Given":
        """Values of each of the rows of a ``SetStatement``, as a table within it."""
        named = [sa.column(column.name, column.type) for column in columns]
        data = [tuple([row[column.name] for column in columns]) for row in rows]
        return cls(sa.values(*named).data(data).cte("given"))


class RowsStatement:
    """
    Statement of PostgreSQL over any number of rows at once, for one round trip, which returns rows.

    It has two texts: of one row its values are bound, of more an array for each column. Their number is bound
    as a limit, which PostgreSQL takes for one row when it plans for any values. So it keeps that plan, and
    finds each row by its key also in a table that was small when it was planned.

    Args:
        columns: Columns whose values a row gives.
        make: Makes the statement from a table of these columns.
    """

    def __init__(self, columns: Sequence[sa.Column[Any]], make: Callable[[sa.CTE], sa.Executable]) -> None:
        self._columns = tuple(columns)
        self._make = make

    def all(self, connection: Connection, rows: Sequence[Values]) -> list[dict[str, Any]]:
        """Execute for rows, at least one, and return every row of the result."""
        if len(rows) == 1:
            return self._one.all(connection, rows[0])
        arrays: dict[str, Any] = {column.name: [row[column.name] for row in rows] for column in self._columns}
        return self._many.all(connection, arrays | {"row_count": len(rows)})

    # Made when they are used: a server on SQLite needs neither.

    @cached_property
    def _one(self) -> Statement:
        return Statement(self._make(_one_row(self._columns)))

    @cached_property
    def _many(self) -> Statement:
        return Statement(self._make(_rows_of_arrays(self._columns)))


def _one_row(columns: Sequence[sa.Column[Any]]) -> sa.CTE:
    return sa.select(*[sa.bindparam(each.name, type_=each.type).label(each.name) for each in columns]).cte(
        "given"
    )


def _rows_of_arrays(columns: Sequence[sa.Column[Any]]) -> sa.CTE:
    arrays = [sa.bindparam(column.name, type_=sa.ARRAY(column.type)) for column in columns]
    named = [sa.column(column.name, column.type) for column in columns]
    rows = sa.func.unnest(*arrays).table_valued(*named).render_derived()
    return sa.select(rows).limit(sa.bindparam("row_count", type_=sa.BigInteger)).cte("given")


def _cursor(connection: Connection) -> DBAPICursor:
    # The driver's own cursor: SQLite's directly, asyncpg's through SQLAlchemy's synchronous adapter.
    driver = connection.connection.dbapi_connection
    assert driver is not None
    return driver.cursor()


def insert_into(table: sa.Table, *, ignore_conflict: bool = False, empty: Collection[str] = ()) -> Statement:
    """
    INSERT of every column except an autoincrement key, and those that stay ``empty``.

    With ``ignore_conflict`` an existing row stays unchanged, so that a repetition is harmless if the result
    of a first commit was lost.
    """
    numbered = table.autoincrement_column
    names = [column.name for column in table.c if column is not numbered and column.name not in empty]
    # Inline: the generated key is not needed.
    clause = sa.insert(table).inline().values({name: sa.bindparam(name) for name in names})
    # Both databases use this syntax; SQLAlchemy has it only per dialect, which is not known here.
    return Statement(clause, suffix=" ON CONFLICT DO NOTHING" if ignore_conflict else "")


def insert_new(table: sa.Table) -> SetStatement:
    """INSERT of rows, which returns the keys of those that were not there."""
    (key,) = table.primary_key.columns

    def make(rows: Sequence[BoundRow]) -> Statement:
        return Statement(
            sa.insert(table).inline().values(list(rows)),
            suffix=f" ON CONFLICT DO NOTHING RETURNING {key.name}",
        )

    return SetStatement(list(table.c), make)


def update_columns(table: sa.Table, key: sa.Column[Any], names: Iterable[str]) -> Statement:
    """UPDATE of the named columns of one row; its key is the bind parameter ``_<key name>``."""
    return Statement(
        sa.update(table)
        .where(key == sa.bindparam(f"_{key.name}"))
        .values({name: sa.bindparam(name) for name in names})
    )


def update_rows(table: sa.Table, key: sa.Column[Any], names: Sequence[str]) -> RowsStatement:
    """UPDATE of the named columns of rows by their keys, on PostgreSQL; returns the keys."""

    def make(given: sa.CTE) -> sa.Executable:
        values = {name: given.c[name] for name in names}
        return sa.update(table).where(key == given.c[key.name]).values(values).returning(key)

    return RowsStatement([key, *(table.c[name] for name in names)], make)


# --- values ------------------------------------------------------------------------------------------------


def to_micros(moment: datetime) -> int:
    """Microseconds since the epoch; ``moment`` must be aware."""
    return (moment - _EPOCH) // _MICROSECOND


def to_micros_or_none(moment: datetime | None) -> int | None:
    """``to_micros``, with None for None."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def to_moment(micros: int) -> datetime:
    """Aware UTC datetime of a stored timestamp."""
    return _EPOCH + timedelta(microseconds=micros)


def to_moment_or_none(micros: int | None) -> datetime | None:
    """``to_moment``, with None for None."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def pack(value: Any) -> str:
    """Serialize a structured value as compact JSON text."""
    return _COMPACT.encode(value)


def pack_exact(value: Any) -> str:
    """As ``pack``, in ASCII: text with lone surrogates can be stored, and is read back the same."""
    return _EXACT.encode(value)


def unpack(text: str) -> Any:
    """Parse the result of ``pack`` or ``pack_exact``."""
    return json.loads(text)


def clean(text: str | None) -> str | None:
    """
    Make external text storable: remove NUL and replace lone surrogates.

    PostgreSQL rejects NUL in text, and lone surrogates cannot be encoded; a hostile reason phrase must not
    block the writing of a call's record.
    """
    if text is None or text.isascii():
        return text if text is None or "\0" not in text else text.replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
