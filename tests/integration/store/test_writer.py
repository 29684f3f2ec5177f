from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.aio import postgres as postgres_module
from callcontrol.database.aio.database import Database, Operation, T
from callcontrol.database.aio.writer import Writer, WriterSettings
from callcontrol.database.errors import CommitInDoubt
from callcontrol.database.tables.system import directory_revision, writer_probe
from callcontrol.errors import Conflict, DomainError, Internal, ServiceUnavailable
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.waiting import holds_for, until

FAST = WriterSettings(
    flush_interval_s=0.005, failure_grace_s=0.05, timeout_s=20.0, max_waiting=50, max_batch=10
)


def locked() -> OperationalError:
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return OperationalError("BEGIN", {}, cause)


class FailingDatabase(Database):
    """A database that can be switched off, and that counts its transactions."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self.failing = False
        self.failures = 0
        self.transactions = 0
        self.hold: asyncio.Event | None = None
        self.held = False
        """True once a transaction has met `hold`."""
        self.cut = ""
        """Place of the connection loss in the next transaction: before its commit, or after."""

    async def was_committed(self, transaction: int) -> bool | None:
        """Return True if the connection was lost after the commit."""
        return bool(transaction)

    async def write(self, operation: Operation[T]) -> T:
        if self.cut == "before":
            self.cut = ""
            raise CommitInDoubt(0, None)
        if self.cut == "after":
            self.cut = ""
            raise CommitInDoubt(1, await self._database.write(operation))
        if self.hold is not None:
            self.held = True
            await self.hold.wait()
        if self.failing:
            self.failures += 1
            raise locked()
        self.transactions += 1
        return await self._database.write(operation)

    async def migrate(self) -> None:
        await self._database.migrate()

    async def close(self) -> None:
        await self._database.close()

    async def _read(self, operation: Operation[T]) -> T:
        return await self._database._read(operation)

    async def _look_up(self, operation: Operation[T]) -> T:
        return await self._database._look_up(operation)


@pytest.fixture
async def database(url: str) -> AsyncIterator[FailingDatabase]:
    opened = FailingDatabase(await Database.open(url))
    yield opened
    await opened.close()


@pytest.fixture
async def writer(database: FailingDatabase) -> AsyncIterator[Writer]:
    started = Writer(database, FAST)
    await started.start()
    yield started
    database.failing = False
    await started.close()


def add(node: str) -> Operation[str]:
    def write(connection: Connection) -> str:
        connection.execute(sa.insert(writer_probe).values(node=node, probed_at=0))
        return node

    return write


async def nodes(database: Database) -> set[str]:
    query = sa.select(writer_probe.c.node)
    return set(await database.read(lambda connection: list(connection.scalars(query))))


async def test_many_tasks_share_a_transaction(database: FailingDatabase, writer: Writer) -> None:
    names = [f"n{number}" for number in range(40)]
    before = database.transactions
    assert await asyncio.gather(*(writer.commit(add(name)) for name in names)) == names
    assert database.transactions - before <= 5
    assert await nodes(database) == set(names)


async def test_a_failing_operation_fails_alone(database: FailingDatabase, writer: Writer) -> None:
    def broken(connection: Connection) -> None:
        connection.execute(sa.insert(writer_probe).values(node="half", probed_at=0))
        raise ZeroDivisionError

    def refusing(connection: Connection) -> None:
        connection.execute(sa.insert(writer_probe).values(node="refused", probed_at=0))
        raise Conflict("no")

    await writer.commit(add("twice"))
    operations: list[Operation[Any]] = [add("a"), broken, add("twice"), refusing, add("b")]
    results = await asyncio.gather(*map(writer.commit, operations), return_exceptions=True)
    assert [type(item) for item in results] == [str, Internal, Internal, Conflict, str]
    assert await nodes(database) == {"twice", "a", "b"}


async def test_a_refusal_may_be_returned(writer: Writer, database: FailingDatabase) -> None:
    before = database.transactions
    results = await asyncio.gather(
        writer.commit(lambda _: Conflict("no")), writer.commit(add("a")), return_exceptions=True
    )
    assert isinstance(results[0], Conflict)
    assert results[1] == "a"
    # Nothing had to be run apart.
    assert database.transactions - before == 1


async def test_what_is_committed_is_in_order(database: FailingDatabase, writer: Writer) -> None:
    seen: list[int] = []

    def note(number: int) -> Operation[None]:
        return lambda _: seen.append(number)

    await asyncio.gather(*(writer.commit(note(number)) for number in range(45)))
    assert seen == list(range(45))


async def test_a_short_failure_is_waited_out(database: FailingDatabase, writer: Writer) -> None:
    database.failing = True
    task = asyncio.create_task(writer.commit(add("late")))
    await until(lambda: database.failures >= 2)
    database.failing = False
    assert await task == "late"
    assert not writer.failing()


async def test_a_failing_database_refuses_and_recovers(database: FailingDatabase, writer: Writer) -> None:
    database.failing = True
    with pytest.raises(ServiceUnavailable):
        await writer.commit(add("waits"))
    assert writer.failing()
    failures = database.failures
    with pytest.raises(ServiceUnavailable):
        await writer.commit(add("at once"))
    assert database.failures == failures
    database.failing = False
    await until(lambda: not writer.failing())
    assert await writer.commit(add("after")) == "after"
    assert {"waits", "at once"}.isdisjoint(await nodes(database))


async def test_a_transaction_that_hangs_is_a_failure(database: FailingDatabase) -> None:
    writer = Writer(database, WriterSettings(transaction_timeout_s=0.05, timeout_s=20.0))
    await writer.start()
    database.hold = asyncio.Event()
    hanging = asyncio.create_task(writer.commit(add("hangs")))
    await until(lambda: writer.failing())
    with pytest.raises(ServiceUnavailable):
        await writer.commit(add("refused"))
    database.hold.set()
    assert await hanging == "hangs"
    assert not writer.failing()
    assert await nodes(database) == {"hangs"}
    await writer.close()


@pytest.mark.parametrize("durable", [True, False])
async def test_a_commit_that_nobody_answered_is_made_once(
    database: FailingDatabase, writer: Writer, durable: bool
) -> None:
    database.cut = "after" if durable else "before"
    counter = Counter(writer)
    counter.set(7)
    assert await writer.commit(add("once")) == "once"
    await writer.flush()
    assert await nodes(database) == {"once"}
    assert (counter.stored, writer.stats.in_doubt) == ([7], 1)


class Counter:
    """A source with a number, of which only the newest matters."""

    def __init__(self, writer: Writer) -> None:
        self.value: int | None = None
        self.taken: int | None = None
        self.stored: list[int] = []
        self.errors: list[Exception] = []
        self.broken = False
        self.writer = writer
        writer.attach(self)

    def set(self, value: int) -> None:
        self.value = value
        self.writer.schedule_flush(self)

    def drain(self) -> Operation[int] | None:
        if self.value is None:
            return None
        self.taken, self.value = self.value, None
        return self._write(self.taken)

    def _write(self, value: int) -> Operation[int]:
        def write(connection: Connection) -> int:
            connection.execute(sa.update(directory_revision).values(revision=value))
            if self.broken:
                raise ZeroDivisionError
            return value

        return write

    def written(self, result: int) -> None:
        self.stored.append(result)

    def restore(self) -> None:
        if self.value is None:
            self.value = self.taken

    def rejected(self, error: Exception) -> None:
        self.errors.append(error)


async def test_a_source_is_written_in_its_newest_state(database: FailingDatabase, writer: Writer) -> None:
    source = Counter(writer)
    for value in range(20):
        source.set(value)
    await writer.flush()
    assert source.stored == [19]


async def test_a_source_is_written_without_being_asked_for(writer: Writer) -> None:
    source = Counter(writer)
    source.set(7)
    await until(lambda: bool(source.stored))
    assert source.stored == [7]


async def test_what_a_source_held_before_the_start_is_written(database: FailingDatabase) -> None:
    writer = Writer(database, FAST)
    source = Counter(writer)
    source.set(7)
    await writer.start()
    await until(lambda: bool(source.stored))
    await writer.close()


async def test_a_flush_may_be_due_before_the_loop_has_been_told(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stood still meanwhile gets a handle from uvloop that tells no time."""
    loop = asyncio.get_running_loop()
    call_at = loop.call_at

    def at_once(when: float, callback: Any, *arguments: Any, **more: Any) -> asyncio.Handle:
        if callback == writer._ask_sources:
            return loop.call_soon(callback)
        return call_at(when, callback, *arguments, **more)

    monkeypatch.setattr(loop, "call_at", at_once)
    source = Counter(writer)
    source.set(1)
    source.set(2)
    await until(lambda: source.stored == [2])


async def test_a_source_outlives_a_failing_database(database: FailingDatabase, writer: Writer) -> None:
    source = Counter(writer)
    database.failing = True
    source.set(1)
    await until(lambda: writer.failing())
    source.set(2)
    database.failing = False
    await until(lambda: bool(source.stored))
    assert source.stored == [2]


async def test_a_broken_source_spoils_no_request(writer: Writer, database: FailingDatabase) -> None:
    source = Counter(writer)
    source.broken = True
    source.set(5)
    await asyncio.gather(writer.commit(add("a")), writer.flush())
    assert [type(error) for error in source.errors] == [ZeroDivisionError]
    revision = sa.select(directory_revision.c.revision)
    assert await database.read(lambda connection: connection.scalar(revision)) == 0


@pytest.mark.parametrize("fault", ["drain", "restore", "written", "rejected"])
async def test_a_source_that_raises_does_not_end_the_writer(
    database: FailingDatabase, writer: Writer, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    raised: list[str] = []

    def fail(*_: object) -> None:
        raised.append(fault)
        raise ZeroDivisionError

    faulty, sound = Counter(writer), Counter(writer)
    monkeypatch.setattr(faulty, fault, fail)
    faulty.broken = fault == "rejected"
    database.failing = fault == "restore"
    faulty.set(1)
    sound.set(2)
    if database.failing:
        await until(lambda: bool(raised))
        database.failing = False
    await until(lambda: sound.stored == [2])
    assert raised
    assert await writer.commit(add("a")) == "a"


async def test_the_queue_is_bounded(database: FailingDatabase, writer: Writer) -> None:
    database.hold = asyncio.Event()
    tasks = [asyncio.create_task(writer.commit(add(f"n{number}"))) for number in range(80)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=20)
    assert done
    database.hold.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    refused = [item for item in results if isinstance(item, ServiceUnavailable)]
    # The first batch was taken from the queue before it filled up.
    assert 20 <= len(refused) <= 30
    assert len(await nodes(database)) == 80 - len(refused)


async def test_a_request_times_out_and_is_undone(database: FailingDatabase) -> None:
    writer = Writer(database, WriterSettings(timeout_s=0.05))
    await writer.start()
    database.hold = asyncio.Event()

    def remove(connection: Connection) -> None:
        connection.execute(sa.delete(writer_probe).where(writer_probe.c.node == "late"))

    with pytest.raises(ServiceUnavailable):
        await writer.commit(add("late"), undo=remove)
    database.hold.set()
    await writer.close()
    assert await nodes(database) == set()


async def test_a_request_that_is_cancelled_once_it_has_its_result_is_undone(
    database: FailingDatabase, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = writer._settle

    def settle_and_cancel(request: Any, outcome: Any) -> None:
        settle(request, outcome)
        task.cancel()

    def remove(connection: Connection) -> None:
        connection.execute(sa.delete(writer_probe).where(writer_probe.c.node == "late"))

    monkeypatch.setattr(writer, "_settle", settle_and_cancel)
    task = asyncio.create_task(writer.commit(add("late"), undo=remove))
    await asyncio.wait([task])
    assert task.cancelled()
    await writer.flush()
    assert await nodes(database) == set()


async def test_a_cancelled_request_that_still_waits_is_not_run(
    database: FailingDatabase, writer: Writer
) -> None:
    database.hold = asyncio.Event()
    first = asyncio.create_task(writer.commit(add("first")))
    await until(lambda: database.held)
    second = asyncio.create_task(writer.commit(add("second")))
    await asyncio.sleep(0)
    second.cancel()
    database.hold.set()
    assert await first == "first"
    await asyncio.gather(second, return_exceptions=True)
    await writer.flush()
    assert await nodes(database) == {"first"}


async def test_closing_writes_what_is_held_and_refuses_more(database: FailingDatabase) -> None:
    writer = Writer(database, FAST)
    await writer.start()
    source = Counter(writer)
    source.set(3)
    await writer.close()
    assert source.stored == [3]
    with pytest.raises(ServiceUnavailable):
        await writer.commit(add("late"))


async def test_closing_on_a_failing_database_ends(database: FailingDatabase) -> None:
    writer = Writer(database, FAST)
    await writer.start()
    source = Counter(writer)
    database.failing = True
    source.set(3)
    async with asyncio.timeout(40):
        await writer.close()
    assert source.stored == []


async def test_the_lock_of_another_process_is_waited_out(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.db"
    database = await Database.open(f"sqlite+aiosqlite:///{path}")
    writer = Writer(database, WriterSettings())
    await writer.start()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(writer.commit(add("patient")))
    await holds_for(0.05, lambda: not task.done())
    other.execute("COMMIT")
    other.close()
    assert await task == "patient"
    await writer.close()
    await database.close()


async def test_an_error_names_no_internals(writer: Writer) -> None:
    with pytest.raises(DomainError) as caught:
        await writer.commit(lambda connection: connection.execute(sa.text("SELECT * FROM secret_table")))
    assert "secret_table" not in caught.value.message


async def test_a_process_that_is_stopped_within_a_transaction_loses_its_turn(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all others would wait for it; when it goes on it begins that transaction anew."""
    monkeypatch.setattr(postgres_module, "_STOPPED_MS", 1_000)
    storage = await Storage.open(await postgres.url(), deliver=False, secrets=SECRETS)
    runs: list[int] = []

    def stopped_once(connection: Connection) -> int:
        runs.append(connection.scalar(sa.select(sa.literal(1))) or 0)
        if len(runs) == 1:
            threading.Event().wait(2.5)  # holds the loop up, as a signal does
        return connection.scalar(sa.select(sa.literal(2))) or 0

    assert await storage.writer.commit(stopped_once) == 2
    assert len(runs) == 2
    assert storage.writer.stats.failures == 1, "the transaction was cut off, not the operation wrong"
    await storage.close()
