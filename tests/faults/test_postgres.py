"""Calls while their PostgreSQL is away, stands still, is slow, or loses an answer."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url

from callcontrol.database.aio.database import Database
from callcontrol.database.aio.postgres import Postgres
from callcontrol.database.tables.system import writer_probe
from tests.faults.database_proxy import DatabaseProxy
from tests.faults.hosts import Fault, Host
from tests.support.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(postgres: PostgresServer) -> Iterator[DatabaseProxy]:
    folder = postgres.folder / "proxy"
    folder.mkdir()
    made = DatabaseProxy(postgres.folder, folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def host(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, proxy: DatabaseProxy
) -> Iterator[Host]:
    url = asyncio.run(postgres.url()).replace(str(postgres.folder), str(postgres.folder / "proxy"))
    with Host(tmp_path_factory.mktemp("postgres"), {"TRUNKLINE_DATABASE_URL": url}) as running:
        yield running


def _processes(postgres: PostgresServer) -> list[int]:
    """PostgreSQL's first process, and those that serve connections."""
    first = int((postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    with open(f"/proc/{first}/task/{first}/children") as children:
        return [first, *map(int, children.read().split())]


@pytest.mark.long(reason="a load while the database is gone")
def test_a_database_that_is_gone(host: Host, proxy: DatabaseProxy) -> None:
    """While PostgreSQL cannot be reached calls go on, new ones get 503, and nothing is lost."""
    gone = Fault(
        "PostgreSQL gone",
        proxy.vanish,
        proxy.come_back,
        lacks="database",
        told_once="the database has been failing",
    )
    host.survives(gone)


@pytest.mark.long(reason="a load while the database stands still")
def test_a_database_that_stands_still(host: Host, postgres: PostgresServer) -> None:
    """While PostgreSQL is stopped calls go on, new ones get 503 instead of waiting, and nothing is lost."""
    stopped: list[int] = []

    def stop() -> None:
        stopped[:] = _processes(postgres)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)

    def go_on() -> None:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)

    host.survives(Fault("PostgreSQL stopped", stop, go_on, lacks="database"))


async def test_what_is_committed_on_a_connection_that_was_cut_off(postgres: PostgresServer) -> None:
    """A connection that a cut left in the middle of a transaction is not written on: that would be lost."""
    url = await postgres.url()
    backend = Postgres(make_url(url), None)
    async with backend._write_engine.connect() as connection:
        # A BEGIN that the pool knows nothing of, as when its answer came after the time for it.
        driver = (await connection.get_raw_connection()).driver_connection
        assert driver is not None
        await driver.transaction().start()
    with pytest.raises(ConnectionError):
        await backend.write(partial(_note, "refused"))
    await backend.write(partial(_note, "durable"))
    await backend.close()
    other = await Database.open(url, migrate=False)
    assert await other.read(_noted) == ["durable"]
    await other.close()


def _note(name: str, connection: Connection) -> None:
    connection.execute(sa.insert(writer_probe).values(node=name, probed_at=0))


def _noted(connection: Connection) -> list[str]:
    return list(connection.scalars(sa.select(writer_probe.c.node).order_by(writer_probe.c.node)))


@pytest.mark.long(reason="a load on a slow database")
def test_a_database_that_is_slow(host: Host, proxy: DatabaseProxy) -> None:
    """While PostgreSQL takes two seconds for a commit calls are carried all the same, and nothing is lost."""

    def be(commit_s: float) -> None:
        proxy.commit_s = commit_s

    host.survives(Fault("PostgreSQL slow", lambda: be(2.0), lambda: be(0.0), answers=False))


def test_commits_that_nobody_answers(host: Host, proxy: DatabaseProxy) -> None:
    """Connections that break during a commit neither lose nor double a call, a charge or an event."""
    before = proxy.cut

    def cut() -> None:
        proxy.cut_commits = 3

    host.survives(Fault("commit unanswered", cut, lambda: None, answers=False))
    assert proxy.cut - before == 3
