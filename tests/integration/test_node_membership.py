"""Membership of a node by the clock: drains, nodes it knows, adoptions, and what metrics show of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, cast

import pytest

from callcontrol.errors import ServiceUnavailable
from callcontrol.nodes import aio as membership_module
from callcontrol.nodes.aio import Membership
from callcontrol.nodes.forwarding import NoWay
from callcontrol.nodes.lease import Node
from tests.support.waiting import time_passes

T = TypeVar("T")
LEASE_S, RENEWAL_S = 8.0, 2.0


@dataclass
class Row:
    node: Node
    lease_until_s: float


class Table:
    """The rows of nodes and duties with the statements on them, in place of PostgreSQL."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.holder: str | None = None

    def read(self, name: str) -> Node:
        row = self.rows[name]
        return replace(row.node, lease_left_s=row.lease_until_s - _now_s())

    def join(self, _: Any, node: Node, lease_s: float, version: str = "") -> bool:
        self.rows[node.node] = Row(node, _now_s() + lease_s)
        return True

    def renew(self, _: Any, node: Node, url: str, lease_s: float, sip_address: str | None = None) -> bool:
        row = self.rows.get(node.node)
        if row is None or row.node.incarnation != node.incarnation:
            return False
        row.node = replace(
            row.node,
            url=url,
            sip_address=sip_address,
            is_draining=row.node.is_draining or node.is_draining,
        )
        row.lease_until_s = _now_s() + lease_s
        return True

    def claim(self, _: Any, dead: Node, claim: str, adopter: str, lease_s: float) -> bool:
        if self.rows[dead.node].node.incarnation != dead.incarnation or self.read(dead.node).lease_left_s > 0:
            return False
        self.rows[dead.node] = Row(replace(dead, incarnation=claim, adopted_by=adopter), _now_s() + lease_s)
        return True

    def leave(self, _: Any, node: str, incarnation: str) -> None:
        self.rows.pop(node, None)

    def take_duty(self, _: Any, duty: str, node: str) -> bool:
        self.holder = self.holder or node
        return self.holder == node

    def leave_duty(self, _: Any, duty: str, node: str) -> None:
        self.holder = None

    def one_node(self, _: Any, node: str) -> Node | None:
        return self.read(node) if node in self.rows else None

    def all_nodes(self, _: Any) -> list[Node]:
        return [self.read(name) for name in sorted(self.rows)]

    def drain(self, name: str) -> None:
        row = self.rows[name]
        row.node = replace(row.node, is_draining=True)


class StubDatabase:
    """A database that is away while ``is_away``, and counts look-ups of requests."""

    def __init__(self) -> None:
        self.shared = self
        self.fence: tuple[str, str] | None = None
        self.is_away = False
        self.look_ups = 0

    async def write_lease(self, operation: Callable[[Any], T]) -> T:
        if self.is_away:
            raise ConnectionError("it is away")
        return operation(None)

    async def look_up(self, operation: Callable[[Any], T]) -> T:
        self.look_ups += 1
        return operation(None)


class StubWriter:
    async def commit(self, operation: Callable[[Any], T]) -> T:
        return operation(None)


class Stage:
    def __init__(self, table: Table) -> None:
        self.table = table
        self.database = StubDatabase()
        self.joined: list[Membership] = []

    async def join(self, name: str) -> Membership:
        made = Membership(
            cast(Any, self.database), cast(Any, StubWriter()), name, "", lambda: f"http://{name}.test"
        )
        await made.join()
        self.joined.append(made)
        return made

    async def die(self, membership: Membership) -> None:
        """Renew the lease of a node no more."""
        assert membership._task is not None
        membership._task.cancel()


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    table = Table()
    monkeypatch.setattr(membership_module, "store", table)
    made = Stage(table)
    yield made
    for membership in made.joined:
        await membership.close()


class Adopter:
    """Ends three calls of each dead node, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.adopted: list[str] = []
        self.failure = failure
        self.takes_s = 0.0

    async def __call__(self, node: str, before: datetime) -> int:
        self.adopted.append(node)
        await time_passes(self.takes_s)
        if self.failure is not None:
            raise self.failure
        return 3


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def adopts(membership: Membership, failure: Exception | None = None) -> Adopter:
    made = Adopter(failure)
    membership.start_adopting(made, lambda *_: None)
    return made


# --- drains -------------------------------------------------------------------------------------------------


async def test_a_drain_is_heeded_at_the_next_renewal(stage: Stage) -> None:
    a, b = await stage.join("a"), await stage.join("b")
    await time_passes(0.1)
    stage.table.drain("b")
    assert not b.drain_requested.is_set()
    await time_passes(RENEWAL_S)
    assert b.drain_requested.is_set() and not a.drain_requested.is_set()
    b.start_draining()
    await time_passes(RENEWAL_S)
    assert a.states() == {"up": 1, "draining": 1, "dead": 0, "being_adopted": 0}


async def test_others_see_the_drain_of_a_signal(stage: Stage) -> None:
    """The node shows it with its next renewal, and does not take it for the request of an operator."""
    a, b = await stage.join("a"), await stage.join("b")
    await time_passes(0.1)
    b.start_draining()
    await time_passes(2 * RENEWAL_S)
    assert stage.table.read("b").is_draining and not b.drain_requested.is_set()
    assert a.states()["draining"] == 1


async def test_a_node_that_drains_leaves_adoptions_to_others(stage: Stage) -> None:
    a, b, c = [await stage.join(name) for name in "abc"]
    draining, other = adopts(a), adopts(b)
    await time_passes(3 * LEASE_S)
    a.start_draining()
    await stage.die(c)
    await time_passes(2 * LEASE_S)
    assert (draining.adopted, other.adopted) == ([], ["c"])
    b.start_draining()
    await stage.die(b)
    await time_passes(2 * LEASE_S)
    assert draining.adopted == ["b"], "nobody else is left to do it"


# --- other nodes --------------------------------------------------------------------------------------------


async def test_a_request_to_a_known_node_costs_no_look_up(stage: Stage) -> None:
    a, _ = await stage.join("a"), await stage.join("b")
    await time_passes(RENEWAL_S)
    assert await a.is_another("b")
    assert await a.way_to("b") == "http://b.test"
    assert stage.database.look_ups == 0


async def test_what_is_not_known_to_live_is_looked_up(stage: Stage) -> None:
    """A node that has just joined, one that does not accept connections, and one that is gone."""
    a = await stage.join("a")
    await time_passes(0.1)
    b = await stage.join("b")
    assert await a.way_to("b") == "http://b.test"
    await time_passes(RENEWAL_S)
    a.forget("b")
    assert await a.way_to("b") == "http://b.test"
    assert stage.database.look_ups == 2
    await b.close()
    a.forget("b")
    assert await a.way_to("b") is NoWay.DEAD
    assert not await a.is_another("b")


async def test_a_node_is_known_no_longer_than_its_lease(stage: Stage) -> None:
    """While renewals fail nothing new is learnt, and a lease that is over since is not believed."""
    a, b = await stage.join("a"), await stage.join("b")
    await time_passes(RENEWAL_S)
    stage.database.is_away = True
    await stage.die(b)
    await time_passes(LEASE_S - RENEWAL_S - 0.5)
    assert await a.way_to("b") == "http://b.test"
    assert stage.database.look_ups == 0
    await time_passes(RENEWAL_S + 1.0)
    assert await a.way_to("b") is NoWay.DEAD
    assert stage.database.look_ups == 1
    stage.database.is_away = False


# --- metrics ------------------------------------------------------------------------------------------------


async def test_the_lease_that_is_left(stage: Stage) -> None:
    a = await stage.join("a")
    await time_passes(RENEWAL_S + 0.5)
    assert a.is_renewed and a.lease_left_s == pytest.approx(LEASE_S - 0.5, abs=0.1)
    stage.database.is_away = True
    await time_passes(RENEWAL_S + LEASE_S)
    assert not a.is_renewed and a.lease_left_s == 0
    stage.database.is_away = False
    await time_passes(RENEWAL_S)
    assert a.is_renewed and a.lease_left_s > LEASE_S - RENEWAL_S - 0.1


async def test_adoptions_are_counted(stage: Stage) -> None:
    a, b = await stage.join("a"), await stage.join("b")
    adopter = adopts(a)
    adopter.takes_s = 6.0
    await time_passes(3 * LEASE_S)
    await stage.die(b)
    await time_passes(LEASE_S + RENEWAL_S)
    assert a.states() == {"up": 1, "draining": 0, "dead": 0, "being_adopted": 1}
    await time_passes(6.0 + RENEWAL_S)
    assert a.states() == {"up": 1, "draining": 0, "dead": 0, "being_adopted": 0}
    found = a.adoptions
    assert found.outcomes == {"completed": 1, "failed": 0, "lost": 0}
    assert (found.calls, found.took_s.count) == (3, 1)
    assert found.took_s.sum == pytest.approx(6.0, abs=0.1)


async def test_an_adoption_that_fails_is_counted_each_time(stage: Stage) -> None:
    a, b = await stage.join("a"), await stage.join("b")
    adopts(a, ServiceUnavailable("The database takes no writes."))
    await time_passes(3 * LEASE_S)
    await stage.die(b)
    await time_passes(LEASE_S + RENEWAL_S)
    assert (a.adoptions.outcomes["failed"], a.adoptions.calls) == (1, 0)
    await time_passes(30.0 + RENEWAL_S)
    assert a.adoptions.outcomes == {"completed": 0, "failed": 2, "lost": 0}
