"""The money rules as a property, on both databases: whatever happens in whatever order, the books agree."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import ClassVar, TypeVar, cast

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.calls.records.store import calls as records
from callcontrol.calls.records.store.transactions import CallTransactions, EventOutbox, NewCall
from callcontrol.clock import timestamp
from callcontrol.database.aio.database import Database
from callcontrol.database.statements import to_micros
from callcontrol.database.tables.accounts import accounts
from callcontrol.errors import (
    Conflict,
    InsufficientBalance,
    NotFound,
    SpendLimitReached,
)
from callcontrol.wallet.money import end_of_hour, hour_of
from callcontrol.wallet.store import ledger, reserves
from tests.support.domain import new_record
from tests.support.examples import examples
from tests.support.secrets import SECRETS
from tests.support.wallets import reserve, settle

T = TypeVar("T")

NOW = datetime(2026, 8, 1, 9, 50, tzinfo=UTC)
CALLS = st.sampled_from([f"call-{number}" for number in range(6)])
AMOUNTS = st.integers(min_value=0, max_value=500)
SOME_CALLS = st.lists(st.tuples(CALLS, AMOUNTS), max_size=6)
INSERTING = CallTransactions({}, cast(EventOutbox, None))
"""Inserts calls without products and events."""


class _Lost(Exception):
    """The process is killed before its transaction is committed."""


class Books:
    """One database that every example opens an account of its own in."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._database = self._runner.run(Database.open(url, secrets=SECRETS))
        self._numbers = itertools.count()

    def run(self, operation: Callable[[Connection], T]) -> T:
        return self._runner.run(self._database.write(operation))

    def lose(self, operation: Callable[[Connection], object]) -> None:
        """Run an operation in a transaction that is never committed."""

        def killed(connection: Connection) -> None:
            operation(connection)
            raise _Lost

        with pytest.raises(_Lost):
            self.run(killed)

    def new_account(self) -> str:
        account_sid = f"account-{next(self._numbers)}"

        def write(connection: Connection) -> None:
            connection.execute(
                sa.insert(accounts).values(
                    account_sid=account_sid,
                    name="n",
                    is_active=True,
                    kyc_complete=True,
                    max_cps=1,
                    max_calls=1,
                    webhook_secret="",
                    created_at=0,
                    updated_at=0,
                    revision=0,
                )
            )
            ledger.create(connection, account_sid, NOW)

        self.run(write)
        return account_sid

    def limit(self, account_sid: str, paise: int | None) -> None:
        change = sa.update(accounts).where(accounts.c.account_sid == account_sid)
        self.run(lambda connection: connection.execute(change.values(max_spend_paise_per_hour=paise)))

    def close(self) -> None:
        self._runner.run(self._database.close())
        self._runner.close()


class WalletMachine(RuleBasedStateMachine):
    """A wallet over a real database, beside the plainest model of one."""

    books: ClassVar[Books]

    def __init__(self) -> None:
        super().__init__()
        self.account = self.books.new_account()
        self.now = NOW
        self.limit: int | None = None
        self.balance = 0
        self.held: dict[str, int] = {}
        self.charged: dict[str, int] = {}
        self.spent: dict[int, int] = {}
        self.references: dict[str, int] = {}
        """Amount of each reference: a payment in, or with a minus a payment out."""
        self.paid: set[str] = set()
        self.recorded: set[str] = set()

    @property
    def available(self) -> int:
        return self.balance - sum(self.held.values())

    @property
    def spent_now(self) -> int:
        return self.spent.get(hour_of(self.now), 0)

    def call(self, name: str) -> str:
        """A call of this account; the identifiers of calls are those of the whole database."""
        return f"{self.account}-{name}"

    def new_call(self, name: str, amount: int) -> NewCall:
        row = records.row_of(new_record(self.account))
        row |= {"call_sid": self.call(name), "created_at": to_micros(self.now)}
        return NewCall(row, (), amount, self.now, None)

    def refused(self, refusal: object, more: int) -> bool:
        """Return True if holding more is refused, for the right reason."""
        if more > self.available:
            assert type(refusal) is InsufficientBalance
            return True
        if self.limit is not None and self.spent_now + sum(self.held.values()) + more > self.limit:
            assert type(refusal) is SpendLimitReached
            assert refusal.details["resets_at"] == timestamp(end_of_hour(hour_of(self.now)))
            return True
        assert refusal is None
        return False

    @rule(minutes=st.integers(min_value=1, max_value=40))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(limit=st.none() | st.integers(min_value=0, max_value=1500))
    def limit_changes(self, limit: int | None) -> None:
        self.limit = limit
        self.books.limit(self.account, limit)

    @rule(amount=st.integers(min_value=1, max_value=1000), reference=st.sampled_from([None, "r1", "r2"]))
    def top_up(self, amount: int, reference: str | None) -> None:
        now = self.now

        def add(connection: Connection) -> int:
            return ledger.top_up(connection, self.account, amount, now, reference=reference)

        if reference is not None and self.references.get(reference, amount) != amount:
            with pytest.raises(Conflict):
                self.books.run(add)
            return
        if reference not in self.references:
            self.balance += amount
        if reference is not None:
            self.references[reference] = amount
        assert self.books.run(add) == self.balance

    @rule(name=CALLS, amount=AMOUNTS)
    def reserve(self, name: str, amount: int) -> None:
        if name in self.charged:
            return  # A call that was settled is over.
        call, now = self.call(name), self.now
        refusal = self.books.run(
            lambda connection: reserves.reserve(connection, self.account, call, amount, now)
        )
        if name in self.held or not amount:
            assert refusal is None
            self.held.setdefault(name, amount)
        elif not self.refused(refusal, amount):
            self.held[name] = amount

    @rule(name=CALLS, total=AMOUNTS)
    def extend(self, name: str, total: int) -> None:
        call, now = self.call(name), self.now
        refusal = self.books.run(lambda connection: reserves.extend(connection, call, total, now))
        if name not in self.held:
            assert isinstance(refusal, NotFound)
        elif total <= self.held[name]:
            assert refusal is None
        elif not self.refused(refusal, total - self.held[name]):
            self.held[name] = total

    @rule(name=CALLS, charge=AMOUNTS)
    def settle(self, name: str, charge: int) -> None:
        call, now = self.call(name), self.now
        charged = self.books.run(lambda connection: reserves.settle(connection, call, charge, now))
        if name not in self.held:
            assert charged == self.charged.get(name, 0)
            return
        assert charged == min(charge, self.held[name] + self.available)
        del self.held[name]
        self.charged[name] = charged
        self.balance -= charged
        self.spent[hour_of(now)] = self.spent_now + charged

    @rule(calls=SOME_CALLS)
    def reserve_at_once(self, calls: list[tuple[str, int]]) -> None:
        """The outcome is that of one after the other; a call may come twice."""
        calls = [(name, amount) for name, amount in calls if name not in self.charged]
        wanted = [reserves.Wanted(self.account, self.call(name), amount, self.now) for name, amount in calls]
        refusals = self.books.run(lambda connection: reserves.reserve_all(connection, wanted))
        for (name, amount), refusal in zip(calls, refusals, strict=True):
            if name in self.held or not amount:
                assert refusal is None
                self.held.setdefault(name, amount)
            elif not self.refused(refusal, amount):
                self.held[name] = amount

    @rule(calls=SOME_CALLS)
    def insert_at_once(self, calls: list[tuple[str, int]]) -> None:
        """As `reserve_at_once`, with the records: of all calls that are not refused, and of no other."""
        calls = [(name, amount) for name, amount in calls if name not in self.charged]
        new = [self.new_call(name, amount) for name, amount in calls]
        outcomes = self.books.run(partial(INSERTING.insert, new=new))
        for (name, amount), outcome in zip(calls, outcomes, strict=True):
            if name in self.held or not amount:
                assert outcome == 0
                self.held.setdefault(name, amount)
            elif not self.refused(outcome or None, amount):
                self.held[name] = amount
            if name in self.held:
                self.recorded.add(self.call(name))
        recorded = self.books.run(partial(records.by_sids, call_sids=[self.call(name) for name, _ in calls]))
        found = {record.call_sid for record in recorded}
        assert found == {self.call(name) for name, _ in calls} & self.recorded

    @rule(calls=SOME_CALLS)
    def settle_at_once(self, calls: list[tuple[str, int]]) -> None:
        """A wallet pays for one call after the other, as far as it can."""
        charges, now = {self.call(name): charge for name, charge in calls}, self.now
        charged = self.books.run(lambda connection: reserves.settle_all(connection, charges, now))
        assert charged.keys() == charges.keys()
        for name in dict(calls):
            paid = charged[self.call(name)]
            if name in self.held:
                assert paid == min(charges[self.call(name)], self.held[name] + self.available)
                del self.held[name]
                self.charged[name] = paid
                self.balance -= paid
                self.spent[hour_of(now)] = self.spent_now + paid
            else:
                assert paid == self.charged.get(name, 0)

    @rule(amount=AMOUNTS, reference=st.sampled_from(["r1", "n1", "n2", "n3"]))
    def pay(self, amount: int, reference: str) -> None:
        now = self.now
        answer = self.books.run(
            lambda connection: ledger.charge(
                connection, self.account, amount, now, kind="number_purchase", reference=reference
            )
        )
        if reference in self.paid:
            assert answer == self.balance
        elif reference in self.references:
            assert isinstance(answer, Conflict)
        elif amount > self.available:
            assert isinstance(answer, InsufficientBalance)
        else:
            self.balance -= amount
            self.paid.add(reference)
            self.references[reference] = -amount
            assert answer == self.balance

    @rule(name=CALLS, amount=AMOUNTS, charge=AMOUNTS)
    def die(self, name: str, amount: int, charge: int) -> None:
        """A process is killed with everything done and nothing committed."""
        if name in self.charged:
            return  # A call that was settled is over.
        call, now = self.call(name), self.now

        def work(connection: Connection) -> None:
            ledger.top_up(connection, self.account, 1 + amount, now)
            reserves.reserve(connection, self.account, call, amount, now)
            reserves.extend(connection, call, amount + charge, now)
            reserves.settle(connection, call, charge, now)
            ledger.charge(connection, self.account, charge, now, kind="number_renewal", reference="lost")

        self.books.lose(work)

    @invariant()
    def the_books_agree(self) -> None:
        def look(connection: Connection) -> None:
            found = ledger.get(connection, self.account)
            assert found is not None
            assert found.balance_paise == self.balance == ledger.ledger_sum(connection, self.account)
            assert found.reserved_paise == sum(self.held.values())
            assert found.available_paise >= 0
            if self.spent:
                assert self.spent[max(self.spent)] == found.spent_paise
            held = {
                item.call_sid: item.amount_paise
                for item in reserves.open_reserves(connection)
                if item.account_sid == self.account
            }
            assert held == {self.call(name): amount for name, amount in self.held.items()}

        self.books.run(look)


@pytest.fixture
def books(url: str) -> Iterator[Books]:
    opened = Books(url)
    yield opened
    opened.close()


def test_the_books_agree_whatever_happens(books: Books) -> None:
    machine = type("Machine", (WalletMachine,), {"books": books})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(20),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


Work = Callable[[], Awaitable[object]]


def some_work(chance: random.Random, storages: list[Storage], calls: list[tuple[str, str]]) -> Work:
    """Something done to a wallet."""
    storage, number = chance.choice(storages), chance.randrange(len(calls))
    (call, owner), amount, kind = calls[number], chance.randrange(1, 600), chance.randrange(10)
    if kind < 3:
        return lambda: storage.wallet.extend(call, amount)
    if kind < 9:
        # A call that was settled is over: some are up all the time, the others end, and more than once.
        if number % 4 < 2:
            return lambda: reserve(storage, owner, call, amount)
        return lambda: settle(storage, call, min(amount, 200))
    return lambda: storage.wallet.top_up(owner, amount, reference=f"pay-{amount % 5}-{amount}")


async def do(work: Work, turns: int) -> None:
    """Do it a little later; it may be refused, but for no other reason than money."""
    for _ in range(turns):
        await asyncio.sleep(0)
    with contextlib.suppress(InsufficientBalance, NotFound):
        await work()


async def do_at_once(work: list[Work], chance: random.Random) -> None:
    """Do all of it at once, and cancel some at any moment."""
    tasks = [asyncio.create_task(do(item, chance.randrange(12))) for item in work]
    for task in tasks:
        if chance.random() < 0.2:
            await asyncio.sleep(0)
            task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome


@pytest.mark.parametrize("seed", range(3))
async def test_the_books_agree_whatever_happens_at_once(storage: Storage, url: str, seed: int) -> None:
    """Many tasks of two processes on few calls and two wallets, one of which has a limit."""
    chance = random.Random(seed)
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    owners = [(await storage.accounts.create("A", balance_paise=3_000))[0].account_sid for _ in range(2)]
    await storage.accounts.update(owners[1], {"max_spend_paise_per_hour": 1_500})
    calls = [(new_id(), owners[number % 2]) for number in range(14)]
    for call, owner in (item for number, item in enumerate(calls) if number % 4 >= 2):
        await reserve(storage, owner, call, 100)
    await do_at_once([some_work(chance, [storage, other], calls) for _ in range(150)], chance)
    # What was cancelled is undone behind what came before.
    for _ in range(2):
        await storage.calls.flush()
        await other.calls.flush()
    held = await storage.wallet.open_reserves()
    for owner in owners:
        found = await storage.wallet.wallet(owner)
        assert found.balance_paise == await storage.wallet.ledger_sum(owner)
        assert found.reserved_paise == sum(item.amount_paise for item in held if item.account_sid == owner)
        assert found.available_paise >= 0
    for item in held:
        await settle(storage, item.call_sid, 1)
    for owner in owners:
        found = await storage.wallet.wallet(owner)
        assert (found.reserved_paise, found.balance_paise) == (0, await storage.wallet.ledger_sum(owner))
    await other.close()


@pytest.mark.parametrize("again", [[0], [0, 1], [0, 1, 2]])
async def test_a_call_that_is_inserted_again_is_held_for_once(storage: Storage, again: list[int]) -> None:
    """Its record and reserve stay, and new calls beside it are inserted, of its account and others."""
    made = [await storage.accounts.create(f"A{number}", balance_paise=900) for number in range(2)]
    owners = [made[0][0].account_sid, made[0][0].account_sid, made[1][0].account_sid]
    calls = [NewCall(records.row_of(new_record(owner)), (), 100, NOW, None) for owner in owners]
    await storage.writer.commit(partial(INSERTING.insert, new=[calls[number] for number in again]))
    changed = [NewCall({**call.row, "to_number": "+1"}, (), 200, NOW, None) for call in calls]
    await storage.writer.commit(partial(INSERTING.insert, new=changed))
    held = {item.call_sid: item.amount_paise for item in await storage.wallet.open_reserves()}
    for number, call in enumerate(calls):
        call_sid = call.row["call_sid"]
        record = await storage.calls.find(call_sid)
        assert record is not None and (record.to != "+1") == (number in again)
        assert held[call_sid] == (100 if number in again else 200)
    for owner in set(owners):
        found = await storage.wallet.wallet(owner)
        sids = [call.row["call_sid"] for call in calls if call.row["account_sid"] == owner]
        assert found.reserved_paise == sum(held[call_sid] for call_sid in sids)


async def test_calls_inserted_at_once_are_held_for_within_the_spend_limit(storage: Storage) -> None:
    account, _ = await storage.accounts.create("A", balance_paise=900)
    await storage.accounts.update(account.account_sid, {"max_spend_paise_per_hour": 250})
    new = [NewCall(records.row_of(new_record(account.account_sid)), (), 100, NOW, None) for _ in range(3)]
    outcomes = await storage.writer.commit(partial(INSERTING.insert, new=new))
    assert outcomes[:2] == [0, 0] and isinstance(outcomes[2], SpendLimitReached)
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 200
    assert await storage.calls.find(new[2].row["call_sid"]) is None


def test_calls_cost_no_more_in_an_hour_than_the_limit(books: Books) -> None:
    """As long as no call is charged more than was held for it, which is what calls see to."""
    account, limit, chance = books.new_account(), 1_000, random.Random(3)
    books.limit(account, limit)
    books.run(lambda connection: ledger.top_up(connection, account, 10**9, NOW))
    spent: dict[int, int] = {}
    held: dict[str, int] = {}
    for number in range(300):
        now = NOW + timedelta(minutes=number)
        amount, call = chance.randrange(1, 400), f"{account}-{number}"
        hold = partial(reserves.reserve, account_sid=account, call_sid=call, amount_paise=amount, now=now)
        if books.run(hold) is None:
            held[call] = amount
        while held and chance.random() < 0.6:
            ended, most = held.popitem()
            charge = chance.randrange(most + 1)
            books.run(partial(reserves.settle, call_sid=ended, charge_paise=charge, now=now))
            spent[hour_of(now)] = spent.get(hour_of(now), 0) + charge
    assert len(spent) > 4 and max(spent.values()) > limit // 2
    assert max(spent.values()) <= limit
