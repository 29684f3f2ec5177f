"""PostgreSQL, which several processes share."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from callcontrol.aio.tokens import new_id
from callcontrol.database import schema
from callcontrol.database.aio.database import Database, Operation, T
from callcontrol.database.encryption import OPTION, Cipher
from callcontrol.database.errors import CommitInDoubt, Fenced, is_transient
from callcontrol.database.functions import DONE, FENCED, Execution, Function, Token, rule_out

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 10.0
_LEASE_TIMEOUT_S: Final = 3.0
"""Limit of a statement that renews a lease: an unanswered one must leave time for another."""
_STOPPED_MS: Final = 5000
"""PostgreSQL rolls back a transaction idle for this long: its process is stopped, or gone."""

_REPLACED: Final = "another node has taken over the calls of this one"

_LOCKED_OUT: Final = ("55P03", "40P01")
"""SQLSTATEs for a lock that was not had in time, and for a deadlock."""
_MIGRATION_ATTEMPTS: Final = 100
_MIGRATION_PAUSE_S: Final = 0.5
_MIGRATION_STOPPED_MS: Final = 60_000
"""As above, for a migration: it computes between statements, and everybody who writes waits for it."""

_NO_SUCH_TRANSACTION: Final = "22023"
"""SQLSTATE for a transaction number that was never used."""

_SETUP: Final = 0x7472756E6B73
"""Advisory lock of the server that sets the database up ("trunks")."""

_TAKE_TURN: Final = f"SELECT pg_advisory_xact_lock({schema.TURN}), txid_current()"
# The snapshot is older than the lock. But a row lock is taken on the newest version of the row, and finds
# that its key has changed; a renewal changes no key, so it neither waits for this lock nor undoes it.
_TAKE_TURN_AS: Final = (
    f"{_TAKE_TURN}, (SELECT true FROM nodes WHERE node = $1 AND incarnation = $2 FOR KEY SHARE)"
)


@dataclass(frozen=True, slots=True)
class Listening:
    """A connection that listens: whether it is lost, and a test of it, which raises if it is."""

    lost: asyncio.Event
    probe: Callable[[], Awaitable[Any]]


class Postgres(Database):
    """
    PostgreSQL through asyncpg, on the event loop.

    Processes write one after the other, as on SQLite. A transaction of the writer locks rows of many calls
    in arbitrary order; two at once would deadlock, and PostgreSQL resolves a deadlock only after a second.
    Operations waiting for the lock share one transaction, so little is lost.
    """

    def __init__(self, url: URL, secrets: Cipher | None) -> None:
        super().__init__()
        self.fence: tuple[str, str] | None = None
        """Node and incarnation that must still be in the database for a transaction to be accepted."""
        self._has_functions = True
        options: dict[str, Any] = {
            "hide_parameters": True,
            "execution_options": {OPTION: secrets},
            "pool_timeout": _TIMEOUT_S,
            "connect_args": {
                "timeout": _TIMEOUT_S,
                "command_timeout": _TIMEOUT_S,
                "server_settings": {"idle_in_transaction_session_timeout": str(_STOPPED_MS)},
            },
        }
        url = url.set(drivername="postgresql+asyncpg")
        self._engine = create_async_engine(url, pool_size=5, max_overflow=4, **options)
        # The writer stays with one process of PostgreSQL, which has its plans at hand: a pool lends its
        # connections in rotation.
        self._write_engine = create_async_engine(url, pool_size=1, max_overflow=0, **options)
        # Connects when it is first used. Readers can use up the other connections.
        self._lease_engine = create_async_engine(
            url,
            pool_size=1,
            max_overflow=0,
            pool_timeout=_LEASE_TIMEOUT_S,
            connect_args={"timeout": _LEASE_TIMEOUT_S, "command_timeout": _LEASE_TIMEOUT_S},
        )

        # The connection that listens is held for good, and of no use for anything else.
        self._listen_engine = create_async_engine(
            url,
            poolclass=NullPool,
            connect_args={"timeout": _LEASE_TIMEOUT_S, "command_timeout": _LEASE_TIMEOUT_S},
        )

    @property
    def shared(self) -> "Postgres":
        """The database itself."""
        return self

    async def _read(self, operation: Operation[T]) -> T:
        async with self._connected(self._engine) as connection:
            return await connection.run_sync(operation)

    async def _look_up(self, operation: Operation[T]) -> T:
        return await self._read(operation)

    async def write(self, operation: Operation[T]) -> T:
        """Run a function in one transaction and commit it, after those of other processes."""
        async with self._connected(self._write_engine) as connection:
            # One query for the lock, the transaction number and the fence, so that these cost nothing.
            fence = self.fence
            if fence is None:
                found = await connection.exec_driver_sql(_TAKE_TURN)
            else:
                found = await connection.exec_driver_sql(_TAKE_TURN_AS, fence)
            turn: tuple[Any, ...] = tuple(found.one())
            if fence is not None and turn[2] is None:
                raise Fenced(_REPLACED)
            transaction = int(turn[1])
            result = await connection.run_sync(operation)
            try:
                await connection.commit()
            except Exception as error:
                # A rejected commit has been rolled back; an unanswered one may be durable.
                if _answered(error):
                    raise
                raise CommitInDoubt(transaction, result) from error
            return result

    async def execute(self, make: Callable[[], Execution | None]) -> Execution | None:
        """Run an operation as a function, in one message, after the transactions of other processes."""
        fence = self.fence
        wanted = make() if self._has_functions else None
        if fence is None or wanted is None:
            return None
        token = new_id()
        async with self._connected(self._write_engine) as connection:
            statement = await self._prepared(connection, wanted.function)
            if statement is None:
                return None
            try:
                ((answer,),) = await statement.fetch(*fence, token, *wanted.values)
            # Any error: unless it is refused, nobody knows if it was executed.
            except Exception as error:
                if not is_transient(error):
                    return None  # What is wrong with which values, the statements tell one by one.
                if _answered(error):
                    raise
                raise CommitInDoubt(Token(token, wanted.happened), wanted.outcome) from error
        if answer == FENCED:
            raise Fenced(_REPLACED)
        return wanted if answer == DONE else None

    async def _prepared(self, connection: AsyncConnection, function: Function) -> Any:
        """Return the statement that executes a function on a connection; None if it may have no functions."""
        found = connection.info.get(function)
        if found is None:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            try:
                await driver.execute(function.definition)
                found = await driver.prepare(function.execution, name=f"function_{function.name}")
            # Any error but of the connection: a right or the language lacks, and there is another way.
            except Exception as error:
                if is_transient(error):
                    raise
                self._has_functions = False
                log.warning("calls cost the database more than they need to: %s", error)
                return None
            connection.info[function] = found
        return found

    async def write_lease(self, operation: Operation[T]) -> T:
        """
        Run a function on leases in a transaction of its own, out of turn and on a connection of its own.

        Exceptions are those of the function and of the driver.
        """
        async with self._lease_engine.begin() as connection:
            return await connection.run_sync(operation)

    @contextlib.asynccontextmanager
    async def listening(self, channel: str, heard: Callable[[str], None]) -> AsyncIterator[Listening]:
        """
        Listen to a channel, on a connection of its own; ``heard`` is called with each payload.

        Exceptions are those of the driver.
        """
        async with self._listen_engine.connect() as connection:
            try:
                driver: Any = (await connection.get_raw_connection()).driver_connection
                lost = asyncio.Event()
                driver.add_termination_listener(lambda _: lost.set())
                await driver.add_listener(
                    channel, lambda _connection, _pid, _channel, payload: heard(payload)
                )
                yield Listening(lost, lambda: driver.execute("SELECT 1"))
            finally:
                await connection.invalidate()

    @contextlib.asynccontextmanager
    async def setup(self) -> AsyncIterator[None]:
        """Hold off other servers from a block that looks what is there and adds what is missing."""
        async with self._engine.connect() as connection:
            await connection.exec_driver_sql(f"SELECT pg_advisory_lock({_SETUP})")
            await connection.commit()  # It is held by the session; an idle transaction would be ended.
            try:
                yield
            finally:
                # The lock ends with the session: a pooled connection would keep it.
                await connection.invalidate()

    @contextlib.asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        """
        Lend a connection, and close it if it was interrupted in the middle of an operation.

        An interrupted BEGIN (timeout, cancellation) may still be executed. The pool would lend the connection
        again as idle, and later commits on it would be part of that transaction, which nobody commits.
        """
        async with engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            if driver is None or driver.is_in_transaction():
                await connection.invalidate()
                raise ConnectionError("a connection was left in the middle of a transaction")
            try:
                yield connection
            except BaseException as error:
                cut_off = not isinstance(error, Exception) or isinstance(error, CommitInDoubt)
                if cut_off or is_transient(error):
                    await connection.invalidate()
                raise

    async def was_committed(self, transaction: int | Token) -> bool | None:
        """Ask for the state of a transaction; one of a function that is not committed is ruled out."""
        if isinstance(transaction, Token):
            return await self.write(partial(rule_out, transaction=transaction))
        try:
            status = await self._read(
                lambda connection: connection.exec_driver_sql(f"SELECT txid_status({transaction})").scalar()
            )
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _NO_SUCH_TRANSACTION:
                raise
            # Another server replaced the one that should commit, and does not know the transaction.
            return False
        return None if status == "in progress" else status == "committed"

    async def migrate(self) -> None:
        """
        Bring the schema up to date, while other processes wait for what it changes.

        When one of them has kept a table for long, it is let go on, and the migration is repeated.
        """
        # No statement has a limit: an index of a large table takes its time.
        engine = create_async_engine(
            self._engine.url,
            hide_parameters=True,
            poolclass=NullPool,
            connect_args={
                "timeout": _TIMEOUT_S,
                "server_settings": {"idle_in_transaction_session_timeout": str(_MIGRATION_STOPPED_MS)},
            },
        )
        attempts = 0
        while True:
            attempts += 1
            try:
                async with engine.begin() as connection:
                    await connection.run_sync(schema.upgrade)
                return
            except DBAPIError as error:
                state = getattr(error.orig, "sqlstate", None)
                if state not in _LOCKED_OUT or attempts == _MIGRATION_ATTEMPTS:
                    raise
            log.info("a table is in use; the migration is repeated")
            await asyncio.sleep(_MIGRATION_PAUSE_S)

    async def close(self) -> None:
        """Close all connections."""
        await self._listen_engine.dispose()
        await self._lease_engine.dispose()
        await self._write_engine.dispose()
        await self._engine.dispose()


def _answered(error: BaseException) -> bool:
    """Return True if the server itself rejected the commit; a lost connection gives no reason."""
    cause: BaseException | None = error.orig if isinstance(error, DBAPIError) else error
    while cause is not None:
        state = getattr(cause, "sqlstate", None)
        if state is not None:
            # 57P01 and the like: the server shut the connection down, possibly after the commit.
            return not str(state).startswith(("08", "57P"))
        cause = cause.__cause__
    return False
