from __future__ import annotations

import asyncio
import random

import pytest

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.errors import Conflict, DomainError, InsufficientBalance, NotFound, ValidationFailed
from callcontrol.models import Account
from callcontrol.wallet.store import ledger
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.wallets import reserve, settle


async def test_a_reserve_is_held_then_settled(storage: Storage, account: Account) -> None:
    call = new_id()
    await reserve(storage, account.account_sid, call, 300)
    wallet = await storage.wallet.wallet(account.account_sid)
    assert (wallet.balance_paise, wallet.reserved_paise, wallet.available_paise) == (100_000, 300, 99_700)

    assert await settle(storage, call, 60) == 60
    wallet = await storage.wallet.wallet(account.account_sid)
    assert (wallet.balance_paise, wallet.reserved_paise) == (99_940, 0)
    entries = (await storage.wallet.ledger(account.account_sid)).items
    assert [(entry.kind, entry.amount_paise, entry.call_sid) for entry in entries] == [
        ("charge", -60, call),
        ("top_up", 100_000, None),
    ]


async def test_settling_again_charges_once(storage: Storage, account: Account) -> None:
    call = new_id()
    await reserve(storage, account.account_sid, call, 300)
    assert [await settle(storage, call, charge) for charge in (60, 120, 0)] == [60, 60, 60]
    assert await storage.wallet.balance(account.account_sid) == 99_940


async def test_a_call_that_was_not_answered_costs_nothing(storage: Storage, account: Account) -> None:
    call = new_id()
    await reserve(storage, account.account_sid, call, 300)
    assert await settle(storage, call, 0) == 0
    assert (await storage.wallet.wallet(account.account_sid)).available_paise == 100_000
    assert (await storage.wallet.ledger(account.account_sid)).total == 1


async def test_an_empty_wallet_refuses_and_holds_nothing(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Poor", balance_paise=100)
    with pytest.raises(InsufficientBalance):
        await reserve(storage, account.account_sid, new_id(), 101)
    assert await storage.wallet.open_reserves() == []
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 0


async def test_a_charge_above_the_reserve_takes_what_is_there(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Poor", balance_paise=100)
    call = new_id()
    await reserve(storage, account.account_sid, call, 60)
    assert await settle(storage, call, 500) == 100
    assert await storage.wallet.balance(account.account_sid) == 0


async def test_an_extension_is_to_a_total(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Acme", balance_paise=1000)
    call = new_id()
    await reserve(storage, account.account_sid, call, 300)
    for _ in range(2):
        await storage.wallet.extend(call, 900)
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 900
    with pytest.raises(InsufficientBalance):
        await storage.wallet.extend(call, 1001)
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 900
    with pytest.raises(NotFound):
        await storage.wallet.extend(new_id(), 10)


async def test_a_top_up_with_its_reference_counts_once(storage: Storage, account: Account) -> None:
    for _ in range(3):
        balance = await storage.wallet.top_up(account.account_sid, 500, reference="payment-1")
    assert balance == 100_500
    with pytest.raises(Conflict):
        await storage.wallet.top_up(account.account_sid, 501, reference="payment-1")
    await storage.writer.commit(
        lambda connection: ledger.charge(
            connection, account.account_sid, 100, utc_now(), kind="number_purchase", reference="order-1"
        )
    )
    with pytest.raises(Conflict, match="order-1"):
        await storage.wallet.top_up(account.account_sid, 100, reference="order-1")
    assert await storage.wallet.balance(account.account_sid) == 100_400
    with pytest.raises(NotFound):
        await storage.wallet.top_up(new_id(), 500)
    with pytest.raises(ValidationFailed):
        await storage.wallet.top_up(account.account_sid, -1)


async def test_processes_do_not_lock_each_other_out(postgres: PostgresServer) -> None:
    """
    Each transaction holds the wallets of many accounts, in the order of their calls.

    Two processes that wait for each other's are parted after a second, by one of them failing; at this pace
    they would hardly do anything else.
    """
    url = await postgres.url()
    nodes = [
        await Storage.open(url, StorageSettings(node=name), deliver=False, secrets=SECRETS)
        for name in ("a", "b")
    ]
    accounts = [(await nodes[0].accounts.create(f"A{n}", balance_paise=10**6))[0] for n in range(8)]

    async def work(number: int) -> None:
        chance, storage = random.Random(number), nodes[number % 2]
        for _ in range(20):
            call = new_id()
            await reserve(storage, chance.choice(accounts).account_sid, call, 300)
            await settle(storage, call, 60)

    await asyncio.gather(*map(work, range(20)))
    spent = [10**6 - await nodes[0].wallet.balance(account.account_sid) for account in accounts]
    assert sum(spent) == 20 * 20 * 60
    assert [storage.writer.stats.failures for storage in nodes] == [0, 0]
    for storage in nodes:
        await storage.close()


async def test_two_requests_never_spend_the_same_rupee(storage: Storage, url: str) -> None:
    """Two processes on one database, many tasks each, all after the same 50 reserves' worth of money."""
    account, _ = await storage.accounts.create("Acme", balance_paise=5_000)
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    calls = [new_id() for _ in range(120)]

    async def take(number: int, call: str) -> bool:
        try:
            await reserve((storage, other)[number % 2], account.account_sid, call, 100)
        except InsufficientBalance:
            return False
        return True

    held = await asyncio.gather(*(take(number, call) for number, call in enumerate(calls)))
    assert sum(held) == 50
    wallet = await storage.wallet.wallet(account.account_sid)
    assert wallet.reserved_paise == 5_000

    async def end(number: int, call: str) -> int:
        return await settle((other, storage)[number % 2], call, 100)

    charged = await asyncio.gather(*(end(number, call) for number, call in enumerate(calls)))
    assert sum(charged) == 5_000
    assert await storage.wallet.balance(account.account_sid) == 0
    assert await storage.wallet.ledger_sum(account.account_sid) == 0
    assert await storage.wallet.open_reserves() == []
    await other.close()


async def test_one_call_reserved_by_many_is_held_once(storage: Storage, account: Account) -> None:
    call = new_id()
    await asyncio.gather(*(reserve(storage, account.account_sid, call, 300) for _ in range(20)))
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 300
    charged = await asyncio.gather(*(settle(storage, call, 60) for _ in range(20)))
    assert charged == [60] * 20
    assert await storage.wallet.balance(account.account_sid) == 99_940


async def test_an_unknown_account_is_refused(storage: Storage) -> None:
    with pytest.raises(DomainError):
        await reserve(storage, new_id(), new_id(), 1)
    with pytest.raises(NotFound):
        await storage.wallet.balance(new_id())
