"""Count of the statements and commits that calls cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import DBAPICursor

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database import statements
from callcontrol.database.aio.database import T

STATEMENTS_ALONE = Counter(
    {
        "UPDATE wallets": 2,
        "INSERT INTO reserves": 1,
        "INSERT INTO calls": 1,
        "UPDATE calls": 3,
        "DELETE FROM reserves": 1,
        "INSERT INTO ledger": 1,
    }
)
"""Statements of a call that rings, is answered and ends, each for longer than the writer waits for more."""

STATEMENTS_ALONE_ON_POSTGRES = Counter({"UPDATE wallets": 1, "UPDATE calls": 3, "DELETE FROM reserves": 1})
"""The same on PostgreSQL: of one that writes several tables, what comes first in it."""

COMMITS_ALONE = 4

_OF_CALLS = re.compile(r"\b(UPDATE|INSERT INTO|DELETE FROM)\s+(\w+)|^\s*(SELECT)\b")
_TABLES = {"calls", "reserves", "wallets", "ledger"}


class CallWork:
    """
    Statements and commits of the transactions that write calls or money.

    A statement that is executed once for many rows counts once, because it goes to the driver, and to the
    server of a database, once. Work of other kinds, such as the outbox's polling, has other transactions.
    """

    def __init__(self, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: Counter[str] = Counter()
        self.commits = 0
        self._writing: Connection | None = None
        self._running: list[str] = []
        make_cursor, write = statements._cursor, storage.database.write

        def counting(connection: Connection) -> Any:
            cursor = make_cursor(connection)
            # On PostgreSQL others read meanwhile.
            return _Cursor(cursor, self._executed) if connection is self._writing else cursor

        async def counted(operation: Callable[[Connection], T]) -> T:
            def run(connection: Connection) -> T:
                self._writing, self._running = connection, []
                return operation(connection)

            try:
                result = await write(run)
            finally:
                self._writing = None
            self._committed()
            return result

        monkeypatch.setattr(statements, "_cursor", counting)
        monkeypatch.setattr(storage.database, "write", counted)

    def _executed(self, text: str) -> None:
        found = _OF_CALLS.search(text)
        assert found is not None, text
        self._running.append(f"{found[1]} {found[2]}" if found[1] else "SELECT")

    def _committed(self) -> None:
        if any(statement.split()[-1] in _TABLES for statement in self._running):
            self.commits += 1
            self.statements.update(self._running)


class _Cursor:
    """A driver's cursor that reports what it executes."""

    def __init__(self, cursor: DBAPICursor, executed: Callable[[str], None]) -> None:
        self._cursor = cursor
        self._executed = executed

    def execute(self, text: str, *values: Any) -> Any:
        self._executed(text)
        return self._cursor.execute(text, *values)

    def executemany(self, text: str, rows: Any) -> Any:
        self._executed(text)
        return self._cursor.executemany(text, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)
