"""Transactions that are one message to PostgreSQL: what they write, and what becomes of a lost answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.calls.records.store import at_once, calls
from callcontrol.database import functions
from callcontrol.database.aio import postgres as postgres_module
from callcontrol.database.aio.postgres import Postgres
from callcontrol.database.errors import Fenced
from callcontrol.database.functions import Token
from callcontrol.database.schema import TURN
from callcontrol.errors import InsufficientBalance
from callcontrol.wallet.store import reserves
from tests.faults.database_proxy import DatabaseProxy
from tests.support.domain import new_record
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.waiting import until


@pytest.fixture
async def url(postgres: PostgresServer) -> AsyncIterator[str]:
    made = await postgres.url()
    yield made
    await postgres.drop(made)


@pytest.fixture
async def storage(url: str) -> AsyncIterator[Storage]:
    """With its lease, without which nothing is executed as a function."""
    opened = await Storage.open(url, deliver=False, secrets=SECRETS)
    await opened.membership.join()
    yield opened
    await opened.close()


@pytest.fixture
def database(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Watched:
    assert isinstance(storage.database, Postgres)
    return Watched(storage.database, monkeypatch)


class Watched:
    """The database of a storage; counts what is executed as a function, and what is not."""

    def __init__(self, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
        self.postgres = postgres
        self.executed: list[functions.Execution] = []
        self.written = 0
        write, execute = postgres.write, postgres.execute

        async def counted(operation: Any) -> Any:
            self.written += 1
            return await write(operation)

        async def watched(make: Any) -> Any:
            done = await execute(make)
            if done is not None:
                self.executed.append(done)
            return done

        monkeypatch.setattr(postgres, "write", counted)
        monkeypatch.setattr(postgres, "execute", watched)


async def rows(storage: Storage) -> tuple[int, int, int]:
    """Numbers of calls and reserves, and the sum of these."""

    def count(connection: Connection) -> tuple[int, int, int]:
        calls = connection.scalar(sa.text("SELECT count(*) FROM calls"))
        return int(calls or 0), *reserves.reserved_in_all(connection)

    return await storage.database.read(count)


async def account_of(storage: Storage, balance_paise: int = 1000) -> str:
    account, _ = await storage.accounts.create("Acme", balance_paise=balance_paise, max_calls=3)
    return account.account_sid


async def test_a_plain_call_is_one_message(storage: Storage, database: Watched) -> None:
    account_sid = await account_of(storage)
    before = database.written
    await storage.calls.insert(new_record(account_sid), reserve_paise=300, limited=True)
    assert (len(database.executed), database.written - before) == (1, 0)
    assert await rows(storage) == (1, 1, 300)


async def test_a_call_that_is_there_is_not_paid_for_twice(storage: Storage, database: Watched) -> None:
    record = new_record(await account_of(storage))
    for _ in range(2):
        await storage.calls.insert(record, reserve_paise=300, limited=True)
    assert len(database.executed) == 1
    assert await rows(storage) == (1, 1, 300)


async def test_a_refusal_says_why(storage: Storage, database: Watched) -> None:
    with pytest.raises(InsufficientBalance):
        await storage.calls.insert(
            new_record(await account_of(storage, 299)), reserve_paise=300, limited=True
        )
    assert not database.executed
    assert await rows(storage) == (0, 0, 0)


async def test_a_node_that_was_replaced_writes_nothing(storage: Storage, database: Watched) -> None:
    account_sid = await account_of(storage)
    fence = database.postgres.fence
    assert fence is not None
    database.postgres.fence = (fence[0], "another")
    execution = execution_for(account_sid)
    with pytest.raises(Fenced):
        await database.postgres.execute(lambda: execution)
    database.postgres.fence = fence
    assert await rows(storage) == (0, 0, 0)


def execution_for(account_sid: str) -> functions.Execution:
    """The execution that inserts a call."""
    record = new_record(account_sid)
    record.node = "local"
    wanted = reserves.Wanted(account_sid, record.call_sid, 300, record.created_at, limited=True)
    return at_once.execution(wanted, calls.row_of(record))


@pytest.fixture
async def cut_off(
    storage: Storage, postgres: PostgresServer, url: str, tmp_path: Path
) -> AsyncIterator[tuple[Storage, DatabaseProxy]]:
    """Another node, and what stands between it and the database."""
    proxy = DatabaseProxy(postgres.folder, tmp_path)
    near = url.replace(str(postgres.folder), str(tmp_path))
    other = await Storage.open(near, StorageSettings(node="b"), deliver=False, secrets=SECRETS)
    await other.membership.join()
    yield other, proxy
    await other.close()
    proxy.close()


async def test_an_answer_that_is_lost(storage: Storage, cut_off: tuple[Storage, DatabaseProxy]) -> None:
    """A call whose answer is lost is there once, and its caller hears of it."""
    account_sid = await account_of(storage)
    other, proxy = cut_off
    await other.calls.insert(new_record(account_sid), reserve_paise=300, limited=True)
    proxy.cut_commits = 1
    await other.calls.insert(new_record(account_sid), reserve_paise=300, limited=True)
    assert (proxy.cut, other.writer.stats.in_doubt) == (1, 1)
    assert await rows(storage) == (2, 2, 600)


async def test_a_connection_that_is_lost_while_its_function_waits(
    storage: Storage, database: Watched, cut_off: tuple[Storage, DatabaseProxy]
) -> None:
    """PostgreSQL does not notice, and executes the function in its turn; nobody does so again."""
    account_sid = await account_of(storage)
    other, proxy = cut_off
    await other.calls.insert(new_record(account_sid), reserve_paise=300, limited=True)
    async with database.postgres._engine.begin() as connection:
        await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({TURN})")
        inserting = asyncio.create_task(
            other.calls.insert(new_record(account_sid), reserve_paise=300, limited=True)
        )
        await until(lambda: storage.database.read(_somebody_waits))
        proxy.vanish()
        await until(lambda: other.writer.stats.in_doubt)
        proxy.come_back()
    await inserting
    assert await rows(storage) == (2, 2, 600)


def _somebody_waits(connection: Connection) -> bool:
    text = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'"
    return bool(connection.scalar(sa.text(text)))


async def test_an_execution_that_comes_after_the_question_for_it(
    storage: Storage, database: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message can be read by PostgreSQL after its sender was told that it had not been executed."""
    execution = execution_for(await account_of(storage))
    monkeypatch.setattr(postgres_module, "new_id", lambda: "a token")
    for _ in range(2):
        assert await database.postgres.was_committed(Token("a token", execution.happened)) is False
    with pytest.raises(Fenced):
        await database.postgres.execute(lambda: execution)
    assert await rows(storage) == (0, 0, 0)
    monkeypatch.setattr(postgres_module, "new_id", lambda: "another")
    assert await database.postgres.execute(lambda: execution)
    assert await database.postgres.was_committed(Token("another", execution.happened)) is True
    assert await rows(storage) == (1, 1, 300)


async def test_a_connection_that_may_make_no_functions(
    storage: Storage, database: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_sid = await account_of(storage)
    wrong = property(lambda _: "CREATE FUNCTION nonsense")
    monkeypatch.setattr(functions.Function, "definition", wrong)
    await storage.calls.insert(new_record(account_sid), reserve_paise=300, limited=True)
    assert not database.executed
    assert await rows(storage) == (1, 1, 300)
