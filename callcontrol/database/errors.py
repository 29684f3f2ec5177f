"""Distinction between a failing database and a wrong statement."""

import sqlite3
from typing import Any, Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

_SQLITE_TRANSIENT: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)
# PostgreSQL: connection lost, read only, rolled back (deadlock), out of resources, lock not available,
# operator intervention, system error, internal error.
_SQLSTATE_TRANSIENT: Final = ("08", "25006", "40", "53", "55P03", "57", "58", "XX")
_ASYNCPG_TRANSIENT: Final = ("InterfaceError", "ConnectionDoesNotExistError", "InternalClientError")


class CommitInDoubt(Exception):
    """
    The connection was lost during a commit: the transaction may or may not be durable.

    Attributes:
        transaction: Number of the transaction, or what else ``was_committed`` knows it by.
        result: Result of the operation.
    """

    def __init__(self, transaction: Any, result: Any) -> None:
        super().__init__("the connection was lost during a commit")
        self.transaction = transaction
        self.result = result


class DatabaseMoved(OSError):
    """The database's file was moved or replaced since it was opened: writes to it would be lost."""


class Fenced(OSError):
    """Another node has taken over the calls of this one: nothing that it writes is accepted any more."""


def is_busy(error: BaseException) -> bool:
    """Return True if SQLite failed only because another connection holds the lock."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_transient(error: BaseException) -> bool:
    """
    Return True if the same transaction may succeed later.

    True for a database that is locked, full, unreachable or shutting down; False for a statement that
    would fail again, e.g. a violated constraint or a value out of range.
    """
    if isinstance(error, PoolTimeout | OSError | TimeoutError):
        return True
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    cause: BaseException | None = error.orig if isinstance(error, DBAPIError) else error
    while cause is not None:
        code = getattr(cause, "sqlite_errorcode", None)
        if code is not None:
            return (code & 0xFF) in _SQLITE_TRANSIENT
        state = getattr(cause, "sqlstate", None)
        if state is not None:
            return str(state).startswith(_SQLSTATE_TRANSIENT)
        if isinstance(cause, OSError):
            return True
        # asyncpg reports a lost connection without a state, and so one that is busy with a cancelled query.
        if type(cause).__name__ in _ASYNCPG_TRANSIENT:
            return True
        cause = cause.__cause__
    return False
