"""Rows of the calls of one product, for its lists and statistics."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, insert_into, update_columns

Row = Mapping[str, Any]


class ProductRows:
    """
    A narrow row for each call of a product, written with the record of the call.

    Args:
        table: The table, with the key ``call_sid``.
        row_of: Makes a row from the row of the record.
        changed: Names the columns that an update of a row writes.
    """

    def __init__(
        self,
        table: sa.Table,
        row_of: Callable[[Row], Row],
        changed: Callable[[Row], tuple[str, ...]],
    ) -> None:
        self._row_of = row_of
        self._changed = changed
        self._insert = insert_into(table, ignore_conflict=True)
        self._update = cache(partial(update_columns, table, table.c.call_sid))
        self._delete = Statement(sa.delete(table).where(table.c.call_sid == sa.bindparam("call_sid")))

    def insert(self, connection: Connection, calls: Sequence[Row]) -> None:
        """Write the rows of new calls."""
        self._insert.many(connection, [self._row_of(call) for call in calls])

    def update(self, connection: Connection, calls: Sequence[Row]) -> None:
        """Update the rows of calls."""
        rows: dict[tuple[str, ...], list[Row]] = {}
        for call in calls:
            row = self._row_of(call)
            rows.setdefault(self._changed(row), []).append({**row, "_call_sid": row["call_sid"]})
        for columns, alike in rows.items():
            self._update(columns).many(connection, alike)

    def delete(self, connection: Connection, call_sid: str) -> None:
        """Delete a row whose insert was abandoned."""
        self._delete.run(connection, {"call_sid": call_sid})
