"""Limits of accounts and trunks over two servers on one PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.calls.records.store.transactions import NewCall
from callcontrol.database.statements import CLOCK_US
from callcontrol.database.tables.trunks import trunk_legs, trunk_paces
from callcontrol.database.tables.wallet import reserves, wallets
from callcontrol.errors import DomainError, InsufficientBalance, RateLimited, ServiceUnavailable
from callcontrol.models import Account, CallRecord, CallStatus
from callcontrol.nodes.lease import LeaseSettings
from callcontrol.trunks.aio.places import TrunkPlaces
from callcontrol.trunks.places import Limits, Place, TrunkLimit
from tests.support.domain import new_record
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url
from tests.support.waiting import until

pytestmark = pytest.mark.real_time(reason="PostgreSQL")

MANY = 1000
LEASES = LeaseSettings(lease_s=1.0, renew_every_s=0.2, retry_s=0.1, adoption_s=5.0)
FOUR_LEGS: Limits = (TrunkLimit("carrier", 4, None),)
ONE_LEG: Limits = (TrunkLimit("carrier", 1, None),)
FREE: Limits = ()


@pytest.fixture
async def shared(postgres: PostgresServer) -> AsyncIterator[str]:
    made = await postgres.url()
    yield made
    await postgres.drop(made)


@pytest.fixture
async def nodes(shared: str) -> AsyncIterator[list[Storage]]:
    opened = [await start(shared, name) for name in ("a", "b")]
    yield opened
    await asyncio.gather(*(storage.close() for storage in opened))


async def start(url: str, node: str) -> Storage:
    return await Storage.open(url, StorageSettings(node=node, leases=LEASES), secrets=SECRETS)


async def account_with(
    node: Storage, *, max_calls: int = MANY, max_cps: int = MANY, balance_paise: int = 1_000_000
) -> Account:
    made, _ = await node.accounts.create(
        "Acme", balance_paise=balance_paise, kyc=True, max_calls=max_calls, max_cps=max_cps
    )
    return made


async def insert(
    node: Storage, account: Account, *choices: Limits, reserve_paise: int = 300
) -> CallRecord | DomainError:
    """Insert a call that begins; returns its record, or why it may not."""
    record = new_record(account.account_sid)
    try:
        choice = await node.calls.insert(record, reserve_paise=reserve_paise, limited=True, choices=choices)
    except DomainError as refusal:
        return refusal
    record.gateway_sid = str(choice)
    return record


async def insert_many(
    nodes: Sequence[Storage], account: Account, count: int, *choices: Limits
) -> tuple[list[tuple[Storage, CallRecord]], list[DomainError]]:
    """Insert calls at all nodes at once; returns those inserted, each with its node, and the refusals."""
    at = [nodes[number % len(nodes)] for number in range(count)]
    outcomes = await asyncio.gather(*(insert(node, account, *choices) for node in at))
    return (
        [
            (node, outcome)
            for node, outcome in zip(at, outcomes, strict=True)
            if isinstance(outcome, CallRecord)
        ],
        [outcome for outcome in outcomes if isinstance(outcome, DomainError)],
    )


def end(node: Storage, record: CallRecord) -> None:
    record.status, record.ended_at = CallStatus.COMPLETED, record.created_at
    node.calls.finish(record, charge_paise=60)


async def rows(node: Storage, table: sa.Table) -> int:
    return await node.database.read(
        lambda connection: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
    )


async def clock_us(node: Storage) -> int:
    return await node.database.read(lambda connection: connection.scalar(sa.text(f"SELECT {CLOCK_US}")) or 0)


def places_of(node: Storage) -> TrunkPlaces:
    assert node.places is not None
    return node.places


# --- accounts -----------------------------------------------------------------------------------------------


async def test_calls_at_once_of_an_account(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0], max_calls=10)
    begun, refused = await insert_many(nodes, account, 60)
    assert len(begun) == 10 and len(refused) == 50
    assert all(isinstance(each, ServiceUnavailable) for each in refused)
    assert {each.message for each in refused} == {
        "The account has 10 calls up, which is its limit; wait until one ends."
    }
    for node, record in begun[:3]:
        end(node, record)
        await node.calls.flush()
    again, _ = await insert_many(nodes, account, 20)
    assert len(again) == 3
    assert await rows(nodes[0], reserves) == 10


async def test_a_call_that_has_just_ended_makes_room(nodes: list[Storage]) -> None:
    """Its end is written with the call that takes its place, if it is not yet."""
    account = await account_with(nodes[0], max_calls=1)
    record = await insert(nodes[0], account, ONE_LEG)
    for _ in range(5):
        assert isinstance(record, CallRecord), record
        end(nodes[0], record)
        places_of(nodes[0]).leave(Place(f"{record.call_sid}/0", ONE_LEG))
        record = await insert(nodes[0], account, ONE_LEG)
    assert isinstance(record, CallRecord)


async def test_calls_per_second_of_an_account(nodes: list[Storage]) -> None:
    """After a burst no more calls begin than the rate allows, by the clock of the database."""
    account = await account_with(nodes[0], max_cps=5)
    began_us = await clock_us(nodes[0])
    begun = 0
    while begun < 15:
        inserted, refused = await insert_many(nodes, account, 8)
        begun += len(inserted)
        assert all(isinstance(each, RateLimited) and 0 <= each.retry_after_s <= 0.2 for each in refused)
        elapsed_s = (await clock_us(nodes[0]) - began_us) / 1_000_000
        assert begun <= 5 + 5 * elapsed_s
    assert await rows(nodes[0], reserves) == begun


async def test_calls_of_one_transaction_count_together(nodes: list[Storage]) -> None:
    few = await account_with(nodes[0], max_calls=3)
    slow = await account_with(nodes[0], max_cps=4)
    outcomes = await asyncio.gather(*(insert(nodes[0], account) for account in [few, slow] * 10))
    begun = [outcome.account_sid for outcome in outcomes if isinstance(outcome, CallRecord)]
    assert (begun.count(few.account_sid), begun.count(slow.account_sid)) == (3, 4)


async def test_a_call_that_costs_nothing_counts(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0], max_calls=2, balance_paise=0)
    outcomes = [await insert(node, account, reserve_paise=0) for node in nodes * 2]
    assert [isinstance(outcome, CallRecord) for outcome in outcomes] == [True, True, False, False]


async def test_a_limit_goes_before_money_and_money_takes_no_place(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0], max_calls=1, balance_paise=300)
    refused = await insert(nodes[0], account, FOUR_LEGS, reserve_paise=301)
    assert isinstance(refused, InsufficientBalance)
    assert await rows(nodes[0], trunk_legs) == await rows(nodes[0], reserves) == 0
    assert isinstance(await insert(nodes[0], account), CallRecord)
    assert isinstance(await insert(nodes[1], account), ServiceUnavailable)


async def test_a_call_that_is_only_recorded_is_not_limited(nodes: list[Storage]) -> None:
    """The record of a refused caller is written, however many calls are up."""
    account = await account_with(nodes[0], max_calls=1)
    assert isinstance(await insert(nodes[0], account), CallRecord)
    await nodes[1].calls.insert(new_record(account.account_sid))


async def test_a_recorded_call_counts_for_those_behind_it(nodes: list[Storage]) -> None:
    """Also in its own transaction, beside calls of others."""
    one, other = [await account_with(nodes[0], max_calls=1) for _ in range(2)]
    _, first, second = await asyncio.gather(
        nodes[0].calls.insert(new_record(one.account_sid)),
        insert(nodes[0], one),
        insert(nodes[0], other),
    )
    assert isinstance(first, ServiceUnavailable) and isinstance(second, CallRecord)


async def test_a_limit_that_is_raised_holds_at_once(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0], max_calls=1)
    assert isinstance(await insert(nodes[0], account), CallRecord)
    await nodes[0].accounts.update(account.account_sid, {"max_calls": 2})
    assert isinstance(await insert(nodes[1], account), CallRecord)


# --- trunks -------------------------------------------------------------------------------------------------


async def test_legs_at_once_of_a_trunk(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0])
    begun, refused = await insert_many(nodes, account, 30, FOUR_LEGS)
    assert len(begun) == await rows(nodes[0], trunk_legs) == 4
    assert {each.limit for each in refused} == {"trunk"}
    assert await rows(nodes[0], reserves) == 4, "a refused call holds no money"
    node, record = begun[0]
    places_of(node).leave(Place(f"{record.call_sid}/0", FOUR_LEGS))
    again = await insert(node, account, FOUR_LEGS)
    assert isinstance(again, CallRecord), again
    assert isinstance(await insert(nodes[1], account, FOUR_LEGS), ServiceUnavailable)


async def test_a_call_takes_the_first_trunk_with_a_place(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0])
    two: Limits = (TrunkLimit("other", 2, None),)
    begun, refused = await insert_many(nodes, account, 12, FOUR_LEGS, two, FREE)
    assert not refused
    assert sorted(record.gateway_sid or "" for _, record in begun) == ["0"] * 4 + ["1"] * 2 + ["2"] * 6


async def test_legs_after_the_first_take_places_too(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0])
    begun, _ = await insert_many(nodes, account, 2, FOUR_LEGS)
    legs = [Place(f"{record.call_sid}/1", FOUR_LEGS) for _, record in begun for _ in range(1)]
    legs += [Place(f"more/{number}", FOUR_LEGS) for number in range(6)]
    taken = await asyncio.gather(*(places_of(nodes[number % 2]).take(leg) for number, leg in enumerate(legs)))
    assert taken.count(True) == 2
    held = [(number, leg) for number, leg in enumerate(legs) if taken[number]]
    with pytest.raises(ServiceUnavailable):
        await places_of(nodes[0]).check([FOUR_LEGS])
    await places_of(nodes[0]).check([FOUR_LEGS, FREE])
    for number, leg in held:
        places_of(nodes[number % 2]).leave(leg)
    for node in nodes:
        await node.writer.flush()
    assert await rows(nodes[0], trunk_legs) == 2
    await places_of(nodes[0]).check([FOUR_LEGS])


async def test_a_leg_that_is_not_checked_counts(nodes: list[Storage]) -> None:
    """That of a caller who replaces a party."""
    places_of(nodes[0]).note(Place("leg", ONE_LEG))
    await nodes[0].writer.flush()
    assert not await places_of(nodes[1]).take(Place("other", ONE_LEG))


async def test_legs_per_second_of_a_trunk(nodes: list[Storage]) -> None:
    account = await account_with(nodes[0])
    limits: Limits = (TrunkLimit("carrier", None, 5), TrunkLimit("gateway", 100, 6))
    began_us = await clock_us(nodes[0])
    begun = number = 0
    while begun < 15:
        inserted, _ = await insert_many(nodes, account, 4, limits)
        later = [Place(f"{number}/{place}", limits) for place in range(4)]
        taken = await asyncio.gather(
            *(places_of(nodes[place % 2]).take(leg) for place, leg in enumerate(later))
        )
        begun, number = begun + len(inserted) + sum(taken), number + 1
        elapsed_s = (await clock_us(nodes[0]) - began_us) / 1_000_000
        assert begun <= 5 + 5 * elapsed_s
    assert await rows(nodes[0], trunk_paces) == 2
    assert await rows(nodes[0], trunk_legs) == begun, "only the gateway counts legs at once"


# --- what leaves nothing ------------------------------------------------------------------------------------


async def test_a_transaction_that_is_rolled_back_leaves_nothing(
    nodes: list[Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await account_with(nodes[0], max_cps=1)
    limits: Limits = (TrunkLimit("carrier", 1, 1),)
    store = nodes[0].calls._transactions
    insert_new, failing = store.insert, True

    def fail(connection: Connection, new: Sequence[NewCall]) -> list[int | DomainError]:
        outcomes = insert_new(connection, new)
        if failing:
            raise ServiceUnavailable("after the hold")
        return outcomes

    monkeypatch.setattr(store, "insert", fail)
    refused = await insert(nodes[0], account, limits)
    assert isinstance(refused, ServiceUnavailable) and refused.message == "after the hold"
    for table in (reserves, trunk_legs, trunk_paces):
        assert await rows(nodes[0], table) == 0
    failing = False
    assert isinstance(await insert(nodes[0], account, limits), CallRecord)


async def test_a_call_that_is_given_up_leaves_its_places(nodes: list[Storage]) -> None:
    """Its request is abandoned while the transaction that inserts it is in progress."""
    account = await account_with(nodes[0], max_calls=1)
    for _ in range(20):
        inserting = asyncio.create_task(insert(nodes[0], account, FOUR_LEGS))
        await nodes[0].writer.commit(lambda _: None)
        inserting.cancel()
        await asyncio.wait([inserting])
        if inserting.cancelled():
            await nodes[0].writer.flush()
        else:
            record = inserting.result()
            assert isinstance(record, CallRecord), record
            places_of(nodes[0]).leave(Place(f"{record.call_sid}/0", FOUR_LEGS))
            end(nodes[0], record)
    await nodes[0].writer.flush()
    await until(lambda: nothing_is_held(nodes[0]))


async def nothing_is_held(node: Storage) -> bool:
    return await rows(node, reserves) == await rows(node, trunk_legs) == 0


async def test_the_places_of_a_dead_node_come_back(nodes: list[Storage]) -> None:
    living, dead = nodes
    account = await account_with(living, max_calls=4)

    async def adopt(node: str, before: datetime) -> int:
        unfinished = await living.calls.unfinished(node)
        for record in unfinished:
            end(living, record)
        await living.calls.flush()
        return len(unfinished)

    living.membership.start_adopting(adopt, living.release_node)
    begun, _ = await insert_many([dead], account, 4, FOUR_LEGS)
    assert len(begun) == 4
    assert isinstance(await insert(living, account), ServiceUnavailable)
    assert dead.membership._task is not None
    dead.membership._task.cancel()
    await until(lambda: nothing_is_held(living))
    again, refused = await insert_many([living], account, 6, FOUR_LEGS)
    assert (len(again), len(refused)) == (4, 2)


async def test_a_node_that_starts_again_has_no_legs(shared: str, nodes: list[Storage]) -> None:
    places_of(nodes[0]).note(Place("of a", FOUR_LEGS))
    places_of(nodes[1]).note(Place("of b", FOUR_LEGS))
    for node in nodes:
        await node.writer.flush()
    await nodes[1].close()
    again = nodes[1] = await start(shared, "b")
    assert await again.database.read(
        lambda connection: connection.scalars(sa.select(trunk_legs.c.leg)).all()
    ) == ["of a"]


async def test_a_single_server_counts_in_memory(tmp_path: Path) -> None:
    """On SQLite a limited call is like any other, and its wallet has no rate."""
    storage = await Storage.open(await sqlite_url(tmp_path / "trunkline.db"), deliver=False, secrets=SECRETS)
    assert storage.places is None
    account = await account_with(storage, max_calls=1)
    for _ in range(3):
        assert isinstance(await insert(storage, account), CallRecord)
    paced = sa.select(wallets.c.paced_until).where(wallets.c.account_sid == account.account_sid)
    assert await storage.database.read(lambda connection: connection.scalar(paced)) == 0
    await storage.close()
