"""SQLite's plans for queries, which do not depend on the amount of data in its tables."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def plans(run: Callable[[Connection], object]) -> Callable[[Connection], list[str]]:
    """The steps of the plans of all statements that ``run`` executes."""

    def explain(connection: Connection) -> list[str]:
        said: list[str] = []

        def note(_: object, cursor: object, text: str, values: Any, *__: object) -> None:
            found = connection.connection.cursor()
            found.execute("EXPLAIN QUERY PLAN " + text, values)
            said.extend(str(row[3]) for row in found.fetchall())

        sa.event.listen(connection, "before_cursor_execute", note)
        run(connection)
        sa.event.remove(connection, "before_cursor_execute", note)
        return said

    return explain
