"""Leases of nodes on one PostgreSQL: names, fencing and adoption."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.aio.postgres import _TAKE_TURN
from callcontrol.database.errors import Fenced
from callcontrol.database.tables.system import writer_probe
from callcontrol.errors import NodeTaken, ServiceUnavailable
from callcontrol.nodes import store
from callcontrol.nodes.forwarding import NoWay
from callcontrol.nodes.lease import LeaseSettings, Node
from tests.support.domain import new_record
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.waiting import until

pytestmark = pytest.mark.real_time(reason="PostgreSQL")

LEASES = LeaseSettings(lease_s=1.0, renew_every_s=0.2, retry_s=0.1, adoption_s=5.0)
LONG_LEASES = replace(LEASES, lease_s=60.0)
"""For tests in which nobody dies, whatever else the machine does."""


@pytest.fixture
async def shared(postgres: PostgresServer) -> AsyncIterator[str]:
    made = await postgres.url()
    yield made
    await postgres.drop(made)


async def start(url: str, node: str, place: str = "", leases: LeaseSettings = LEASES) -> Storage:
    settings = StorageSettings(
        node=node, place=place, leases=leases, node_url=lambda: f"http://{node}.example.com:8080"
    )
    return await Storage.open(url, settings, secrets=SECRETS)


@asynccontextmanager
async def running(
    url: str, node: str, place: str = "", leases: LeaseSettings = LEASES
) -> AsyncIterator[Storage]:
    storage = await start(url, node, place, leases)
    yield storage
    await storage.close()


def stand_still(storage: Storage) -> None:
    """Renew the lease of a node no more, as if its process was stopped."""
    assert storage.membership._task is not None
    storage.membership._task.cancel()


def go_on(storage: Storage) -> None:
    """Renew the lease again."""
    membership, database = storage.membership, storage.database.shared
    assert database is not None
    membership._task = asyncio.create_task(membership._run(database))


async def names(storage: Storage) -> dict[str, str | None]:
    return {node.node: node.adopted_by for node in await storage.membership.nodes()}


async def lease_of(storage: Storage, name: str) -> Node:
    return next(node for node in await storage.membership.nodes() if node.node == name)


class Adopter:
    """Nodes that were adopted, and whether an adoption may end."""

    def __init__(self) -> None:
        self.adopted: list[str] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, node: str, before: datetime) -> int:
        self.adopted.append(node)
        self.before = before
        await self.may_end.wait()
        return 0


async def test_a_name_has_one_server(shared: str) -> None:
    """A server whose name another living one has does not start, and the first goes on."""
    async with running(shared, "a", "here") as first:
        lease = await lease_of(first, "a")
        with pytest.raises(NodeTaken, match="TRUNKLINE_NODE"):
            await start(shared, "a", "elsewhere")
        assert (await lease_of(first, "a")).incarnation == lease.incarnation
        await first.writer.commit(lambda _: None)
        async with running(shared, "b") as second:
            assert await names(second) == {"a": None, "b": None}
        assert await names(first) == {"a": None}


async def test_a_name_is_free_after_a_stop(shared: str) -> None:
    for place in ("here", "elsewhere", "here"):
        async with running(shared, "a", place) as storage:
            assert (await lease_of(storage, "a")).place == place


async def test_a_later_run_in_one_place_waits_for_no_lease(shared: str) -> None:
    """After a kill the lock of the data directory proves that the earlier run has ended."""
    earlier = await start(shared, "a", "here")
    stand_still(earlier)
    before = await lease_of(earlier, "a")
    async with running(shared, "a", "here") as later:
        assert (await lease_of(later, "a")).incarnation != before.incarnation
        with pytest.raises(ServiceUnavailable):
            await earlier.writer.commit(lambda _: None)
    await earlier.close()


async def test_a_lease_of_a_dead_server_elsewhere_is_waited_for(shared: str) -> None:
    dead = await start(shared, "a", "here")
    stand_still(dead)
    async with running(shared, "a", "elsewhere") as storage:
        assert (await lease_of(storage, "a")).place == "elsewhere"
    await dead.close()


async def test_a_node_is_asked_while_its_lease_lives(shared: str) -> None:
    """Its address is known from its start on, and of no use once it is dead or stopped."""
    async with running(shared, "a") as asking:
        membership = asking.membership
        async with running(shared, "b"):
            assert await membership.way_to("b") == "http://b.example.com:8080"
            assert await membership.is_another("b")
        membership.forget("b")
        assert await membership.way_to("b") is NoWay.DEAD
        dead = await start(shared, "c")
        stand_still(dead)
        await until(lambda: lease_is_over(asking, "c"))
        assert await membership.way_to("c") is NoWay.DEAD
        assert [await membership.is_another(node) for node in ("a", "b", "c", "")] == [False] * 4
        await dead.close()


async def test_nothing_that_a_fenced_node_writes_is_accepted(shared: str) -> None:
    """A node that stood still is adopted once; it writes nothing afterwards, and learns of it."""
    adopter = Adopter()
    async with running(shared, "a") as living:
        living.membership.start_adopting(adopter, living.release_node)
        stopped = await start(shared, "b")
        await stopped.writer.commit(lambda connection: note(connection, "before"))
        stand_still(stopped)
        await until(lambda: adopter.adopted == ["b"])
        await until(lambda: names_are(living, {"a": None}))
        database = stopped.database.shared
        assert database is not None
        with pytest.raises(Fenced):
            await database.write(lambda connection: note(connection, "after"))
        go_on(stopped)
        await until(stopped.membership.fenced.is_set)
        await stopped.close()
        noted = await living.database.read(lambda connection: connection.scalars(sa.select(_NAME)).all())
        assert "before" in noted and "after" not in noted
        assert adopter.adopted == ["b"]


async def test_a_transaction_that_has_begun_ends_before_the_adoption(shared: str) -> None:
    """The claim waits for its turn; what was begun with the lease is durable when the calls are read."""
    adopter = Adopter()
    async with running(shared, "a") as living:
        living.membership.start_adopting(adopter, living.release_node)
        stopped = await start(shared, "b")
        database = stopped.database.shared
        assert database is not None
        async with database._engine.begin() as connection:
            await connection.exec_driver_sql(_TAKE_TURN)
            stand_still(stopped)
            await until(lambda: lease_is_over(living, "b"))
            await connection.run_sync(lambda inner: note(inner, "begun"))
            assert adopter.adopted == []
        await until(lambda: adopter.adopted == ["b"])
        await stopped.close()


async def test_a_transaction_that_waits_for_its_turn_meanwhile_is_refused(shared: str) -> None:
    """Its snapshot is older than the claim, and shows the lease as it was."""
    async with running(shared, "b") as stopped:
        database = stopped.database.shared
        assert database is not None
        stand_still(stopped)
        await until(lambda: lease_is_over(stopped, "b"))
        dead = await lease_of(stopped, "b")
        async with database._engine.connect() as connection:
            await connection.exec_driver_sql(_TAKE_TURN)
            writing = asyncio.create_task(database.write(lambda inner: note(inner, "late")))
            await until(lambda: is_waiting(stopped))
            assert await connection.run_sync(store.claim, dead, "claim", "a", 5.0)
            await connection.commit()
        with pytest.raises(Fenced):
            await writing


async def test_an_adoption_that_is_not_finished_is_begun_again(shared: str) -> None:
    """The claim of an adopter that dies ends as any lease does."""
    first, second = Adopter(), Adopter()
    first.may_end.clear()
    async with running(shared, "c") as living:
        dying = await start(shared, "a")
        dying.membership.start_adopting(first, dying.release_node)
        dead = await start(shared, "b")
        stand_still(dead)
        await until(lambda: first.adopted == ["b"])
        stand_still(dying)
        living.membership.start_adopting(second, living.release_node)
        await until(lambda: sorted(second.adopted) == ["a", "b"])
        await until(lambda: names_are(living, {"c": None}))
        await dying.close()
        await dead.close()


async def test_a_stopped_server_with_a_call_is_adopted(shared: str) -> None:
    """A server that could not write the end of a call leaves its lease behind."""
    adopter = Adopter()
    async with running(shared, "a") as living:
        account, _ = await living.accounts.create("Acme", balance_paise=100_000, kyc=True)
        living.membership.start_adopting(adopter, living.release_node)
        async with running(shared, "b") as stopping:
            record = new_record(account.account_sid)
            await stopping.calls.insert(record)
        assert set(await names(living)) == {"a", "b"}
        await until(lambda: adopter.adopted)
        unfinished = await living.calls.unfinished("b")
        assert [each.call_sid for each in unfinished] == [record.call_sid]


async def test_a_dead_node_gives_back_what_it_held(shared: str) -> None:
    """Idempotency keys of its requests are free, and its webhooks are delivered by others."""
    async with running(shared, "a") as living:
        account, _ = await living.accounts.create("Acme", balance_paise=100_000, kyc=True)
        dead = await start(shared, "b")
        assert await dead.idempotency.begin(account.account_sid, "key", "POST /v1/calls", "hash") is None
        stand_still(dead)
        await living.writer.commit(lambda connection: living.release_node(connection, "b"))
        assert await living.idempotency.begin(account.account_sid, "key", "POST /v1/calls", "hash") is None
        await dead.close()


_NAME = writer_probe.c.node


def note(connection: Connection, name: str) -> None:
    connection.execute(sa.insert(writer_probe).values(node=name, probed_at=0))


async def names_are(storage: Storage, wanted: dict[str, str | None]) -> bool:
    return await names(storage) == wanted


async def is_waiting(storage: Storage) -> bool:
    """Return True while a transaction waits for its turn."""
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    return bool(await storage.database.read(lambda connection: connection.scalar(waiting)))


async def lease_is_over(storage: Storage, name: str) -> bool:
    return (await lease_of(storage, name)).lease_left_s < -0.1


# --- duties -------------------------------------------------------------------------------------------------


def follow(storage: Storage) -> list[bool]:
    """Ask for the duty of registering; what the node is told of it."""
    told: list[bool] = []
    storage.membership.registrations.follow(told.append)
    return told


async def test_one_node_has_a_duty(shared: str) -> None:
    """A node keeps its duty while it lives; one that leaves it has another successor at once."""
    async with (
        running(shared, "a", leases=LONG_LEASES) as first,
        running(shared, "b", leases=LONG_LEASES) as second,
    ):
        told = follow(first)
        await until(lambda: told == [True])
        others = follow(second)
        await renewed(second)
        assert others == []
        await first.membership.registrations.release()
        assert told == [True, False]
        await until(lambda: others == [True])
        assert told == [True, False]


async def renewed(storage: Storage) -> None:
    """Wait for three renewals of a node's lease, each of which asks for its duties."""
    seen = {storage.membership._lapse}  # A renewal sets it anew.

    def has_renewed() -> bool:
        seen.add(storage.membership._lapse)
        return len(seen) == 4

    await until(has_renewed)


async def test_a_duty_is_lost_before_another_has_it(shared: str) -> None:
    """A node whose lease is not renewed loses its duty by its own clock, and a living one gets it."""
    async with running(shared, "a") as first, running(shared, "b") as second:
        moments: list[str] = []
        first.membership.registrations.follow(lambda held: moments.append(f"a {held}"))
        await until(lambda: moments == ["a True"])
        second.membership.registrations.follow(lambda held: moments.append(f"b {held}"))
        stand_still(first)
        await until(lambda: len(moments) == 3)
        assert moments == ["a True", "a False", "b True"]


async def test_a_duty_outlasts_a_start_of_its_node(shared: str) -> None:
    """A node that starts anew within its lease goes on with its duty, which is free after its end."""
    earlier = await start(shared, "a", "here", LONG_LEASES)
    told = follow(earlier)
    await until(lambda: told == [True])
    stand_still(earlier)
    async with running(shared, "a", "here", LONG_LEASES) as later, running(shared, "b") as other:
        others = follow(other)
        again = follow(later)
        await until(lambda: again == [True])
        assert others == []
    await earlier.close()
    async with running(shared, "b") as other:
        others = follow(other)
        await until(lambda: others == [True])
