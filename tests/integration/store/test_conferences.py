"""Conferences of several nodes on one PostgreSQL: which node has one, until when, and its address."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest
import sqlalchemy as sa

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio.media.shared_conferences import ConferenceOwners
from callcontrol.database.tables.system import conferences
from tests.integration.store.test_membership import running, shared, stand_still, start
from tests.support.waiting import until

__all__ = ["shared"]

pytestmark = pytest.mark.real_time(reason="PostgreSQL")

KEY = ("account", "sales")


def owners(storage: Storage) -> ConferenceOwners:
    assert storage.conferences is not None
    return storage.conferences


async def owner(storage: Storage, name: str = "sales") -> str | None:
    """The other node that has a conference; None if this one has it now."""
    found = await owners(storage).claim("account", name)
    return None if found is None else found.node


async def rows(storage: Storage) -> dict[str, str]:
    query = sa.select(conferences.c.name, conferences.c.node)
    return await storage.database.read(
        lambda connection: {name: node for name, node in connection.execute(query)}
    )


async def test_the_first_node_has_a_conference_until_it_leaves_it(shared: str) -> None:
    async with running(shared, "a") as a, running(shared, "b") as b:
        assert [await owner(a), await owner(b), await owner(a)] == [None, "a", None]
        found = await owners(b).claim(*KEY)
        assert found is not None and found.incarnation == owners(a).incarnation
        await owners(b).leave(*KEY)
        assert await owner(b) == "a", "only its node leaves it"
        await owners(a).leave(*KEY)
        assert [await owner(b), await owner(a)] == [None, "b"]
        assert await owner(a, "support") is None


async def test_of_nodes_that_ask_at_once_one_gets_it(shared: str) -> None:
    async with running(shared, "a") as a, running(shared, "b") as b:
        names = [f"conference {number}" for number in range(20)]
        found = await asyncio.gather(*(owner(node, name) for name in names for node in (a, b)))
        for number, name in enumerate(names):
            assert sorted(str(each) for each in found[2 * number : 2 * number + 2]) in (
                ["None", "a"],
                ["None", "b"],
            ), name


async def test_a_dead_node_has_its_conferences_until_it_is_adopted(shared: str) -> None:
    """It may go on until then; afterwards the next node that asks gets them."""

    async def adopt(node: str, before: datetime) -> int:
        adopted.append(node)
        return 0

    adopted: list[str] = []
    async with running(shared, "a") as living:
        dead = await start(shared, "b")
        assert await owner(dead) is None
        stand_still(dead)
        assert await owner(living) == "b"
        living.membership.start_adopting(adopt, living.release_node)
        await until(lambda: adopted == ["b"])
        assert await owner(living) is None
        await dead.close()


async def test_a_node_that_has_ended_has_no_conference(shared: str) -> None:
    """Its rows that are left go to the next node that asks, or are deleted when it starts."""
    async with running(shared, "a") as a:
        async with running(shared, "b") as b:
            assert await owner(b) is None and await owner(b, "support") is None
        assert await owner(a) is None
        assert await rows(a) == {"sales": "a", "support": "b"}
        async with running(shared, "b"):
            assert await rows(a) == {"sales": "a"}


async def test_nodes_learn_each_others_addresses(shared: str) -> None:
    async with running(shared, "a") as a:
        async with running(shared, "b") as b:
            owners(b).publish(("10.0.0.12", 5070))
            await until(lambda: owners(a).addresses() == {"b": ("10.0.0.12", 5070)})
            assert await owner(b) is None
            found = await owners(a).claim(*KEY)
            assert found is not None and found.sip_address == "10.0.0.12:5070"
            assert owners(b).addresses() == {}
        await until(lambda: owners(a).addresses() == {})
