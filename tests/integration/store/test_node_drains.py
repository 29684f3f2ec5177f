"""Drains of nodes on one PostgreSQL, and the operator's commands for nodes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.schema import HEAD
from callcontrol.nodes import store
from callcontrol.nodes.lease import NodeReport, NodeState
from tests.integration.store.test_membership import Adopter, lease_is_over, running, stand_still, start
from tests.support.domain import new_record
from tests.support.postgres import PostgresServer
from tests.support.waiting import until

pytestmark = pytest.mark.real_time(reason="PostgreSQL")

_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
async def shared(postgres: PostgresServer) -> AsyncIterator[str]:
    made = await postgres.url()
    yield made
    await postgres.drop(made)


@dataclass(frozen=True)
class Ran:
    """Exit status of a command, what it printed, and what it said beside that."""

    status: int
    out: str
    said: str

    @property
    def printed(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Coroutine[Any, Any, Ran]]


@pytest.fixture
def trunkline(shared: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command on the database."""
    monkeypatch.setenv("TRUNKLINE_DATABASE_URL", shared)
    monkeypatch.setenv("TRUNKLINE_SECRET_KEY", _KEY)

    async def run(*arguments: str) -> Ran:
        capsys.readouterr()
        status = await asyncio.to_thread(main, arguments)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


async def report(storage: Storage, name: str) -> NodeReport:
    reports = await storage.database.read(store.reports)
    return next(found for found in reports if found.node.node == name)


async def is_draining(storage: Storage, name: str) -> bool:
    return (await report(storage, name)).node.state is NodeState.DRAINING


async def add_call(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Acme", balance_paise=100_000, kyc=True)
    await storage.calls.insert(new_record(account.account_sid))


async def test_a_node_sees_that_it_is_to_drain(shared: str) -> None:
    async with running(shared, "a") as a, running(shared, "b") as b:
        assert await a.writer.commit(lambda connection: store.drain(connection, "b"))
        assert not await a.writer.commit(lambda connection: store.drain(connection, "b")), "it does already"
        await until(b.membership.drain_requested.is_set)
        assert await is_draining(a, "b") and not await is_draining(a, "a")
        assert not a.membership.drain_requested.is_set()
        assert await a.membership.is_another("b"), "its calls are there until it has ended"


async def test_others_see_that_a_node_has_begun_to_drain(shared: str) -> None:
    async with running(shared, "a") as a, running(shared, "b") as b:
        b.membership.start_draining()
        await until(lambda: is_draining(a, "b"))
        since = (await report(a, "b")).draining_since
        await until(lambda: a.membership.states()["draining"] == 1)
        assert (await report(a, "b")).draining_since == since, "later renewals leave it"
        assert not b.membership.drain_requested.is_set()


async def test_a_node_that_starts_again_does_not_drain(shared: str) -> None:
    earlier = await start(shared, "b", "here")
    earlier.membership.start_draining()
    await until(lambda: is_draining(earlier, "b"))
    stand_still(earlier)
    async with running(shared, "b", "here") as later:
        found = await report(later, "b")
        assert (found.node.state, found.draining_since) == (NodeState.UP, None)
    await earlier.close()


async def test_nodes_are_listed_with_what_they_do(shared: str, trunkline: Run) -> None:
    async with running(shared, "a") as a, running(shared, "b") as b:
        a.membership.registrations.follow(lambda _: None)
        await until(lambda: a.membership.registrations.held)
        await add_call(b)
        began = utc_now()
        ran = await trunkline("nodes", "list")
        first, second = ran.printed["nodes"]
        assert 0 < first.pop("lease_left_s") <= 1.0
        assert first.pop("started_at") is not None
        assert first == {
            "node": "a",
            "url": "http://a.example.com:8080",
            "state": "up",
            "version": None,
            "schema": HEAD,
            "draining_since": None,
            "adopted_by": None,
            "active_calls": 0,
            "duties": ["registrations"],
        }
        assert (second["node"], second["active_calls"], second["duties"]) == ("b", 1, [])
        assert began - timedelta(minutes=1) < (await report(a, "a")).started_at < began


async def test_a_dead_node_is_listed_until_it_is_adopted(shared: str, trunkline: Run) -> None:
    adopter = Adopter()
    adopter.may_end.clear()
    async with running(shared, "a") as living:
        dead = await start(shared, "b")
        dead.membership.registrations.follow(lambda _: None)
        await until(lambda: dead.membership.registrations.held)
        stand_still(dead)
        await until(lambda: lease_is_over(living, "b"))
        listed = {node["node"]: node for node in (await trunkline("nodes", "list")).printed["nodes"]}
        assert (listed["b"]["state"], listed["b"]["duties"]) == ("dead", [])
        assert listed["b"]["lease_left_s"] < 0
        living.membership.start_adopting(adopter, living.release_node)
        await until(lambda: adopter.adopted)
        listed = {node["node"]: node for node in (await trunkline("nodes", "list")).printed["nodes"]}
        assert (listed["b"]["state"], listed["b"]["adopted_by"]) == ("being_adopted", "a")
        adopter.may_end.set()
        await dead.close()


async def test_a_drain_is_waited_for(shared: str, trunkline: Run) -> None:
    """The command shows the calls that are left, and returns when the node has ended."""
    async with running(shared, "a"):
        b = await start(shared, "b")
        account, _ = await b.accounts.create("Acme", balance_paise=100_000, kyc=True)
        record = new_record(account.account_sid)
        await b.calls.insert(record)
        waiting = asyncio.create_task(trunkline("nodes", "drain", "b", "--wait"))
        await until(b.membership.drain_requested.is_set)
        assert not waiting.done()
        await b.writer.commit(lambda connection: end(connection, record.call_sid))
        await b.close()
        ran = await waiting
        assert (ran.status, ran.printed) == (0, {"node": "b", "state": "ended"})
        assert "b: 1 active call\n" in ran.said


def end(connection: Any, call_sid: str) -> None:
    connection.exec_driver_sql(
        f"UPDATE calls SET ended_at = created_at, status = 'completed' WHERE call_sid = '{call_sid}'"
    )


async def test_a_node_that_dies_while_it_drains_is_no_success(shared: str, trunkline: Run) -> None:
    async with running(shared, "a"):
        b = await start(shared, "b")
        waiting = asyncio.create_task(trunkline("nodes", "drain", "b", "--wait"))
        await until(b.membership.drain_requested.is_set)
        stand_still(b)
        ran = await waiting
        assert (ran.status, ran.out) == (1, "")
        assert "The node b died while it drained" in ran.said
        await b.close()


async def test_a_drain_may_be_asked_for_again(shared: str, trunkline: Run) -> None:
    async with running(shared, "b"):
        first = await trunkline("nodes", "drain", "b")
        assert first.printed["state"] == "draining" and "already" not in first.said
        again = await trunkline("nodes", "drain", "b")
        assert again.printed["draining_since"] == first.printed["draining_since"]
        assert f"is draining already, since {first.printed['draining_since']}" in again.said
        assert (first.status, again.status) == (0, 0)


async def test_a_node_that_cannot_drain(shared: str, trunkline: Run) -> None:
    async with running(shared, "a") as a:
        ran = await trunkline("nodes", "drain", "nobody", "--wait")
        assert (ran.status, ran.out) == (1, "")
        assert "There is no node nobody." in ran.said
        dead = await start(shared, "b")
        stand_still(dead)
        await until(lambda: lease_is_over(a, "b"))
        ran = await trunkline("nodes", "drain", "b")
        assert (ran.status, ran.out) == (1, "")
        assert "The node b is dead" in ran.said
        await dead.close()


async def test_a_server_on_sqlite_is_no_node(
    trunkline: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRUNKLINE_DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path / 'trunkline.db'}")
    assert (await trunkline("nodes", "list")).printed == {"nodes": []}
    ran = await trunkline("nodes", "drain", "local")
    assert (ran.status, ran.out) == (1, "")
    assert "SIGTERM drains it" in ran.said
