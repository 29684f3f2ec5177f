"""Rows of dataclasses: conversion by the types of the fields, and queries for values, counts and pages."""

from collections.abc import Callable, Mapping
from datetime import datetime
from inspect import Parameter, signature
from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.values import pack, to_micros, to_moment, unpack
from callcontrol.models import Page

T = TypeVar("T")

_CONVERSIONS: Final[Mapping[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    datetime: (to_micros, to_moment),
    # Drivers return numbers and views of memory from statements that are passed to them as text.
    bool: (bool, bool),
    bytes: (bytes, bytes),
    tuple: (pack, lambda text: tuple(unpack(text))),
    Mapping: (pack, unpack),
}
"""By the type of a field: the conversion to its column, and back."""


class Record(Generic[T]):
    """
    Conversion of a dataclass to the rows of a table, and back.

    Each field is a column of the same name, or of the one that ``renamed`` gives. A field that the table does
    not have, such as a count, is only read. NULL stands for the default of a field, None without one.
    """

    def __init__(self, kind: type[T], table: sa.Table, **renamed: str) -> None:
        self._kind = kind
        parameters = signature(kind).parameters
        self._required = {name for name in parameters if parameters[name].default is Parameter.empty}
        hints = get_type_hints(kind)
        columns = {name: renamed.get(name, name) for name in hints}
        conversions = {name: _conversion(hints[name]) for name in columns}
        self._reads = [(name, column, conversions[name][1]) for name, column in columns.items()]
        self._writes = {
            name: (column, conversions[name][0])
            for name, column in columns.items()
            if column in table.c and table.c[column] is not table.autoincrement_column
        }

    def row(self, value: T, *names: str) -> dict[str, Any]:
        """Values of the columns of some fields, or of all; without a key that the database assigns."""
        chosen = {name: self._writes[name] for name in names} or self._writes
        found: dict[str, Any] = {}
        for name, (column, write) in chosen.items():
            given = getattr(value, name)
            found[column] = None if given is None else write(given)
        return found

    def value(self, row: Any) -> T:
        """The value of a row, which may be a mapping or a row of SQLAlchemy."""
        values = getattr(row, "_mapping", row)
        found: dict[str, Any] = {}
        for name, column, read in self._reads:
            stored = values[column]
            if stored is not None:
                found[name] = read(stored)
            elif name in self._required:
                found[name] = None
        return self._kind(**found)

    def first(self, connection: Connection, wanted: sa.Select[Any]) -> T | None:
        """The value of the first row of a query."""
        row = connection.execute(wanted).first()
        return None if row is None else self.value(row)

    def all(self, connection: Connection, wanted: sa.Select[Any]) -> list[T]:
        """The values of the rows of a query."""
        return [self.value(row) for row in connection.execute(wanted)]


def count(connection: Connection, wanted: sa.Select[Any]) -> int:
    """Number of rows of a query."""
    counted = wanted.with_only_columns(sa.func.count(), maintain_column_froms=True).order_by(None)
    return connection.scalar(counted) or 0


def page_of(
    connection: Connection, wanted: sa.Select[Any], page: int, per_page: int, value: Callable[[Any], T]
) -> Page[T]:
    """A page of a query, counted from 1, and the total; ``value`` converts a row."""
    rows = connection.execute(wanted.offset((page - 1) * per_page).limit(per_page))
    return Page([value(row) for row in rows], count(connection, wanted), page, per_page)


def _conversion(hint: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [get_origin(option) or option for option in options]
    return next((_CONVERSIONS[kind] for kind in kinds if kind in _CONVERSIONS), (_same, _same))


def _same(value: Any) -> Any:
    return value
