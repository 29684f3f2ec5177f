"""
Lists that stay fast at any length: sorted by time, then identifier, newest first.

Every statement here uses an index that ends in the two columns of the order: rows are counted and skipped in
the index alone, and only those of one page are read. Pages in the second half are found from the end of the
list, so that at most half of it is skipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.models import Position


@dataclass(frozen=True, slots=True)
class OneOf:
    """
    Disjunction of exclusive options: a row never meets more than one of them.

    Each option uses its own index; the results are merged in the order of the list.
    """

    options: tuple[sa.ColumnElement[bool], ...]


Condition = sa.ColumnElement[bool] | OneOf


class Narrowing:
    """
    Conditions of a list, collected from filters in order of selectivity, most selective first.

    The first filter decides the index; the columns of the others are wrapped, so that no planner uses their
    indexes.
    """

    def __init__(self, *always: Condition) -> None:
        self.conditions: list[Condition] = list(always)
        self._narrowed = False

    def by(self, column: sa.Column[Any], value: str | None) -> None:
        """Keep the rows with a value in a column, if one is given."""
        if value is not None:
            self.by_either((column,), value)

    def by_either(self, columns: tuple[sa.Column[Any], ...], value: str) -> None:
        """Keep the rows with a value in one of the columns; no row has it in two."""
        if self._narrowed:
            wrapped = (sa.func.coalesce(column, "") == value for column in columns)
            self.conditions.append(sa.or_(*wrapped))
        elif len(columns) == 1:
            self.conditions.append(columns[0] == value)
        else:
            self.conditions.append(OneOf(tuple(column == value for column in columns)))
        self._narrowed = True

    def by_own_index(self, *conditions: Condition) -> None:
        """Keep only rows that meet conditions with their own index."""
        self.conditions += conditions
        self._narrowed = True


_Keys = sa.Select[Any] | sa.CompoundSelect[Any]
_AnyKeys = TypeVar("_AnyKeys", sa.Select[Any], sa.CompoundSelect[Any])


@dataclass(frozen=True, slots=True)
class Listing:
    """
    List over the rows of a table.

    Attributes:
        moment: Column of the time, in microseconds.
        identifier: Column that orders rows of the same time; positions contain it.
    """

    moment: sa.Column[int]
    identifier: sa.Column[Any]

    def count(self, connection: Connection, conditions: Sequence[Condition]) -> int:
        """Count the rows that meet the conditions."""
        return sum(
            connection.scalar(sa.select(sa.func.count()).select_from(self.moment.table).where(*plain)) or 0
            for plain in _branches(conditions)
        )

    def page(
        self, connection: Connection, conditions: Sequence[Condition], *, offset: int, limit: int, total: int
    ) -> list[Position]:
        """Positions of a part of the list; ``total`` lets the second half be read from the end."""
        rest = max(0, total - offset - limit)
        if offset == 0 or offset <= rest:
            query = self._keys(conditions, ascending=False).offset(offset).limit(limit)
            return [_position(row) for row in connection.execute(query)]
        limit = min(limit, total - offset)
        if limit <= 0:
            return []
        query = self._keys(conditions, ascending=True).offset(rest).limit(limit)
        return [_position(row) for row in connection.execute(query)][::-1]

    def after(
        self, connection: Connection, conditions: Sequence[Condition], place: Position, *, limit: int
    ) -> list[Position]:
        """Positions after ``place``; at any depth, no row before it is read."""
        here = sa.tuple_(
            sa.literal(place.at_micros, sa.BigInteger),
            sa.literal(self.identifier.type.python_type(place.identifier), self.identifier.type),
        )
        follows = sa.tuple_(self.moment, self.identifier) < here
        query = self._keys([*conditions, follows], ascending=False).limit(limit)
        return [_position(row) for row in connection.execute(query)]

    def between(self, start_micros: int | None, end_micros: int | None) -> list[Condition]:
        """Conditions of a time range: from ``start`` on, before ``end``."""
        conditions: list[Condition] = []
        if start_micros is not None:
            conditions.append(self.moment >= start_micros)
        if end_micros is not None:
            conditions.append(self.moment < end_micros)
        return conditions

    def _keys(self, conditions: Sequence[Condition], *, ascending: bool) -> _Keys:
        keys = sa.select(self.moment, self.identifier)
        branches = [_sorted(keys.where(*plain), ascending) for plain in _branches(conditions)]
        if len(branches) == 1:
            return branches[0]
        # Each branch is sorted as well: otherwise PostgreSQL sorts all rows instead of merging the indexes.
        return _sorted(sa.union_all(*(sa.select(branch.subquery()) for branch in branches)), ascending)


def _sorted(keys: _AnyKeys, ascending: bool) -> _AnyKeys:
    columns = keys.selected_columns.values()
    return keys.order_by(*(column.asc() if ascending else column.desc() for column in columns))


def _branches(conditions: Sequence[Condition]) -> list[list[sa.ColumnElement[bool]]]:
    """Conditions expanded without ``OneOf``: every row of the list meets exactly one branch."""
    branches: list[list[sa.ColumnElement[bool]]] = [[]]
    for condition in conditions:
        options = condition.options if isinstance(condition, OneOf) else (condition,)
        branches = [[*branch, option] for branch in branches for option in options]
    return branches


def _position(row: Any) -> Position:
    return Position(row[0], str(row[1]))
