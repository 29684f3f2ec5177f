"""Purchases: money and number change hands together, whoever else buys and whatever fails in between."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from api.process.idempotency_recovery import answer_interrupted
from api.schemas.dids import purchase_json
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import (
    Conflict,
    DomainError,
    InsufficientBalance,
    KycRequired,
    NotFound,
    NumberTaken,
    QuoteStale,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import Account, PhoneNumber
from callcontrol.numbers.aio import marketplace as market_module
from callcontrol.numbers.aio.marketplace import NumberMarket
from callcontrol.numbers.inventory import InventoryFailure, Listing, ListingFilter, Taking
from callcontrol.numbers.orders import Order, OrderState, Purchase, PurchaseRequest
from callcontrol.numbers.renewal import add_months, opened
from callcontrol.numbers.store import orders
from fixtures.inventory import SandboxInventory
from tests.support.secrets import SECRETS
from tests.support.wallets import reserve, settle

LATER = timedelta(minutes=5)


class Shop:
    """A market on a database, with its supplier and one number of it."""

    def __init__(self, storage: Storage, inventory: SandboxInventory) -> None:
        self.storage = storage
        self.inventory = inventory
        self.market = NumberMarket(storage.database, storage.writer, storage.directory, inventory)
        self.listing = next(iter(inventory.listings.values()))

    async def buy(self, account: Account, live_ref: str | None = None, **request: Any) -> Purchase:
        wanted = PurchaseRequest(live_ref=live_ref or self.listing.live_ref, **request)
        return await self.market.purchase(account.account_sid, wanted)

    async def refused(self, error: type[DomainError], account: Account, **request: Any) -> None:
        """Try a purchase that is refused without a trace in the books."""
        before = await self.storage.wallet.wallet(account.account_sid)
        with pytest.raises(error):
            await self.buy(account, **request)
        after = await self.storage.wallet.wallet(account.account_sid)
        assert (after.balance_paise, after.reserved_paise) == (before.balance_paise, before.reserved_paise)

    async def states(self) -> list[OrderState]:
        return [order.state for order in await self.storage.database.read(orders.open_orders)]


@pytest.fixture
async def shop(storage: Storage) -> AsyncIterator[Shop]:
    opened_shop = Shop(storage, SandboxInventory.standard(lambda n: storage.directory.number(n) is not None))
    yield opened_shop
    await opened_shop.market.close()


async def books_agree(storage: Storage, *accounts: Account) -> None:
    """Payments of each account for numbers equal the prices of its numbers."""
    for account in accounts:
        wallet = await storage.wallet.wallet(account.account_sid)
        assert wallet.balance_paise == await storage.wallet.ledger_sum(account.account_sid)
        entries = (await storage.wallet.ledger(account.account_sid, per_page=1000)).items
        paid = [-entry.amount_paise for entry in entries if entry.kind == "number_purchase"]
        owned = await storage.numbers.every(account.account_sid)
        assert sorted(paid) == sorted(number.monthly_cost_paise for number in owned)


async def test_a_purchase_charges_and_gives_the_number(shop: Shop, account: Account) -> None:
    sid = account.account_sid
    cost_paise = shop.listing.monthly_cost_paise
    bought = await shop.buy(account, months=3, friendly_name="Sales", acknowledged_paise=3 * cost_paise)
    assert (bought.number, bought.total_paise) == (shop.listing.number, 3 * cost_paise)
    assert bought.balance_paise == 100_000 - 3 * cost_paise == await shop.storage.wallet.balance(sid)
    number = await shop.storage.numbers.get(sid, bought.phone_number_id)
    assert (number.friendly_name, number.region, number.status) == ("Sales", "Delhi", "active")
    assert (number.registered, number.binding) == (False, None)
    assert number.billing is not None
    assert number.billing == opened(number.created_at, 3)
    assert bought.next_billing_at == add_months(number.created_at, 3)
    known = shop.storage.directory.number(bought.number)
    assert known == number
    entry, _ = (await shop.storage.wallet.ledger(sid)).items
    assert (entry.kind, entry.amount_paise) == ("number_purchase", -3 * cost_paise)
    assert entry.note == f"{number.number}, 3 months"
    assert await shop.states() == []


async def test_setup_is_charged_once(shop: Shop, account: Account) -> None:
    listing = next(item for item in shop.inventory.listings.values() if item.number_type == "140_series")
    bought = await shop.buy(account, listing.live_ref, acknowledged_paise=25_000 + 59_900)
    assert bought.total_paise == 84_900
    entry, *_ = (await shop.storage.wallet.ledger(account.account_sid)).items
    assert entry.note == f"{bought.number}, 1 month"


async def test_no_number_without_kyc(shop: Shop) -> None:
    stranger, _ = await shop.storage.accounts.create("Stranger", balance_paise=100_000)
    await shop.refused(KycRequired, stranger)
    await shop.storage.accounts.update(stranger.account_sid, {"kyc_complete": True})
    await shop.buy(stranger)


async def test_what_makes_no_sense(shop: Shop, account: Account) -> None:
    await shop.refused(ValidationFailed, account, months=0)
    await shop.refused(ValidationFailed, account, months=25, friendly_name="x" * 200)
    await shop.refused(NotFound, account, live_ref="nothing")
    nobody = replace(account, account_sid=new_id())
    with pytest.raises(NotFound):
        await shop.buy(nobody)


async def test_an_old_price_is_stale_whichever_way_it_moved(shop: Shop, account: Account) -> None:
    cost_paise = shop.listing.monthly_cost_paise
    for acknowledged_paise in (cost_paise - 1, cost_paise + 1, 0):
        await shop.refused(QuoteStale, account, acknowledged_paise=acknowledged_paise)
    await shop.refused(QuoteStale, account, live_ref="sandbox-price-rises", acknowledged_paise=20_000)
    await shop.refused(QuoteStale, account, live_ref="sandbox-price-moves")
    await shop.buy(account, "sandbox-price-rises", acknowledged_paise=25_000)


async def test_numbers_that_are_gone(shop: Shop, account: Account) -> None:
    await shop.refused(NotFound, account, live_ref="sandbox-vanishes")
    await shop.refused(NumberTaken, account, live_ref="sandbox-snatched")
    assert await shop.states() == []
    await shop.buy(account)
    await shop.refused(NumberTaken, account)


async def test_a_released_number_is_not_listed_until_it_is_given_back(shop: Shop, account: Account) -> None:
    bought = await shop.buy(account)
    await shop.refused(NumberTaken, account)
    await shop.storage.numbers.release(account.account_sid, bought.phone_number_id)
    for _ in range(2):
        await shop.refused(NotFound, account)
    assert await shop.states() == [OrderState.RELEASING]
    assert await shop.market.sweep(utc_now()) == 1
    await shop.buy(account)
    await shop.refused(NumberTaken, account)


async def test_a_number_that_somebody_is_buying_is_taken(shop: Shop, account: Account) -> None:
    """Also while an earlier order of it is being returned."""
    bought = await shop.buy(account)
    await shop.storage.numbers.release(account.account_sid, bought.phone_number_id)
    now = utc_now()
    begun = Order(
        new_id(), account.account_sid, shop.listing.live_ref, shop.listing.number, 1, 24_900, now, now
    )
    await shop.storage.writer.commit(lambda connection: orders.insert(connection, begun))
    await shop.refused(NumberTaken, account)


async def test_a_wallet_that_cannot_pay(shop: Shop) -> None:
    poor, _ = await shop.storage.accounts.create("Poor", balance_paise=50_000, kyc=True)
    await reserve(shop.storage, poor.account_sid, "call", 30_000)
    await shop.refused(InsufficientBalance, poor)
    assert shop.inventory.taken == {} and await shop.states() == []
    await settle(shop.storage, "call", 0)
    await shop.buy(poor)


async def test_many_buyers_of_one_number_at_the_same_instant(shop: Shop) -> None:
    buyers = [
        (await shop.storage.accounts.create(f"Buyer {n}", balance_paise=50_000, kyc=True))[0]
        for n in range(20)
    ]
    outcomes = await asyncio.gather(*(shop.buy(buyer) for buyer in buyers), return_exceptions=True)
    assert [type(item) for item in outcomes].count(Purchase) == 1
    assert [type(item) for item in outcomes].count(NumberTaken) == 19
    assert await shop.states() == []
    await books_agree(shop.storage, *buyers)


async def test_one_wallet_buys_no_more_than_it_can_pay(shop: Shop) -> None:
    buyer, _ = await shop.storage.accounts.create("Buyer", balance_paise=80_000, kyc=True)
    listings = list(shop.inventory.listings.values())[:10]
    outcomes = await asyncio.gather(
        *(shop.buy(buyer, listing.live_ref) for listing in listings), return_exceptions=True
    )
    assert [type(item) for item in outcomes].count(Purchase) == 3
    assert [type(item) for item in outcomes].count(InsufficientBalance) == 7
    assert len(shop.inventory.taken) == 3
    await books_agree(shop.storage, buyer)


async def test_two_processes_sell_a_number_once(url: str) -> None:
    storages = [await Storage.open(url, deliver=False, secrets=SECRETS) for _ in range(2)]
    # Each has a supplier that knows nothing of the other, so the database alone decides.
    shops = [Shop(storage, SandboxInventory.standard()) for storage in storages]
    account, _ = await storages[0].accounts.create("Acme", balance_paise=10_000_000, kyc=True)
    listings = list(shops[0].inventory.listings.values())[:10]
    outcomes = await asyncio.gather(
        *(shop.buy(account, listing.live_ref) for listing in listings for shop in shops),
        return_exceptions=True,
    )
    assert [type(item) for item in outcomes].count(Purchase) == 10
    assert [type(item) for item in outcomes].count(NumberTaken) == 10
    assert len(shops[0].inventory.taken) + len(shops[1].inventory.taken) == 10
    await books_agree(storages[0], account)
    for storage in storages:
        await storage.close()


async def test_a_supplier_whose_answer_is_lost_gets_its_number_back(
    shop: Shop, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = shop.inventory.take

    async def lose(order_id: str, listing: Listing) -> Taking:
        await take(order_id, listing)
        raise InventoryFailure("connection reset")

    monkeypatch.setattr(shop.inventory, "take", lose)
    await shop.refused(ServiceUnavailable, account)
    assert len(shop.inventory.taken) == 1 and await shop.states() == [OrderState.PENDING]
    # It might still be under way in another process, so it is given up after a while only.
    assert await shop.market.sweep(utc_now()) == 0
    assert await shop.market.sweep(utc_now() + LATER) == 1
    assert shop.inventory.taken == {} and await shop.states() == []
    monkeypatch.setattr(shop.inventory, "take", take)
    await shop.buy(account)


async def test_an_order_that_cannot_be_given_back_keeps_none_waiting(
    shop: Shop, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = list(shop.inventory.listings.values())[:2]
    first, second = [await shop.buy(account, listing.live_ref) for listing in listings]
    for bought in (first, second):
        await shop.storage.numbers.release(account.account_sid, bought.phone_number_id)
    give_back, stuck = shop.inventory.give_back, shop.inventory.taken[listings[0].live_ref]

    async def refuse_one(order_id: str) -> None:
        if order_id == stuck:
            raise InventoryFailure("not now")
        await give_back(order_id)

    monkeypatch.setattr(shop.inventory, "give_back", refuse_one)
    assert await shop.market.sweep(utc_now()) == 1
    monkeypatch.setattr(shop.inventory, "give_back", give_back)
    assert await shop.market.sweep(utc_now()) == 1
    assert await shop.states() == [] and shop.inventory.taken == {}


async def test_a_supplier_that_hangs_is_not_waited_for(
    shop: Shop, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(wanted: ListingFilter, *, offset: int, limit: int) -> tuple[list[Listing], int]:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(market_module, "_SUPPLIER_TIMEOUT_S", 0.01)
    monkeypatch.setattr(shop.inventory, "search", hang)
    with pytest.raises(ServiceUnavailable):
        await shop.market.search(ListingFilter())
    await shop.refused(ServiceUnavailable, account, live_ref="sandbox-silent")


async def test_a_sweep_leaves_alone_what_is_sold(shop: Shop, account: Account) -> None:
    await shop.buy(account)
    assert await shop.market.sweep(utc_now() + LATER) == 0
    assert len(shop.inventory.taken) == 1


async def test_whoever_asked_may_be_gone(
    shop: Shop, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = shop.inventory.take
    begun = asyncio.Event()

    async def slowly(order_id: str, listing: Listing) -> Taking:
        begun.set()
        await asyncio.sleep(0.05)
        return await take(order_id, listing)

    monkeypatch.setattr(shop.inventory, "take", slowly)
    asking = asyncio.create_task(shop.buy(account))
    await begun.wait()
    asking.cancel()
    await shop.market.close()
    assert len(await shop.storage.numbers.every(account.account_sid)) == 1
    await books_agree(shop.storage, account)


class TestDelivery:
    """The transaction in which money and number change hands."""

    async def begun(self, shop: Shop, account: Account) -> tuple[Order, PhoneNumber]:
        now = utc_now()
        listing = shop.listing
        order = Order(new_id(), account.account_sid, listing.live_ref, listing.number, 1, 24_900, now, now)
        await shop.storage.writer.commit(lambda connection: orders.insert(connection, order))
        number = PhoneNumber(
            new_id(),
            account.account_sid,
            listing.number,
            now,
            now,
            monthly_cost_paise=24_900,
            order_id=order.order_id,
            billing=opened(now, 1),
        )
        return order, number

    async def test_a_commit_whose_answer_was_lost_charges_once(self, shop: Shop, account: Account) -> None:
        order, number = await self.begun(shop, account)
        for _ in range(2):
            balance_paise = await shop.storage.writer.commit(
                lambda connection: market_module._deliver(connection, order, number)
            )
            assert balance_paise == 75_100
        await books_agree(shop.storage, account)

    async def test_an_order_that_was_given_up_is_not_delivered(self, shop: Shop, account: Account) -> None:
        order, number = await self.begun(shop, account)
        assert await shop.market.sweep(utc_now() + LATER) == 1
        with pytest.raises(Conflict):
            await shop.storage.writer.commit(
                lambda connection: market_module._deliver(connection, order, number)
            )
        await books_agree(shop.storage, account)
        assert await shop.storage.numbers.every(account.account_sid) == []

    async def test_a_delivery_that_nobody_was_told_of_is_undone(self, shop: Shop, account: Account) -> None:
        order, number = await self.begun(shop, account)
        await shop.storage.writer.commit(lambda connection: market_module._deliver(connection, order, number))
        for _ in range(2):
            await shop.storage.writer.commit(
                lambda connection: market_module._revert(connection, order, number)
            )
        assert await shop.storage.wallet.balance(account.account_sid) == 100_000
        assert await shop.storage.numbers.every(account.account_sid) == []
        assert await shop.market.sweep(utc_now()) == 1
        kinds = [entry.kind for entry in (await shop.storage.wallet.ledger(account.account_sid)).items]
        assert kinds == ["number_refund", "number_purchase", "top_up"]


async def test_a_repeat_after_a_kill_is_told_what_was_bought(shop: Shop, account: Account) -> None:
    keys, sid = shop.storage.idempotency, account.account_sid
    endpoint = "POST /v1/dids/purchase-live"
    assert await keys.begin(sid, "kept", endpoint, "hash") is None
    bought = await shop.buy(account)
    # The process is killed here: the request that holds the key is never answered.
    await answer_interrupted(shop.storage)
    reply = await keys.begin(sid, "kept", endpoint, "hash")
    assert reply is not None and reply.status == 201
    assert json.loads(reply.body)["data"] == purchase_json(bought)

    assert await keys.begin(sid, "given up", endpoint, "hash") is None
    again = await shop.buy(account, list(shop.inventory.listings)[1])
    await shop.storage.numbers.release(sid, again.phone_number_id)
    await answer_interrupted(shop.storage)
    assert await keys.begin(sid, "given up", endpoint, "hash") is None


class TestRelease:
    """Giving numbers up."""

    async def test_a_released_number_goes_back_and_is_sold_again(self, shop: Shop, account: Account) -> None:
        bought = await shop.buy(account)
        await shop.storage.numbers.release(account.account_sid, bought.phone_number_id)
        assert shop.storage.directory.number(bought.number) is None
        assert await shop.states() == [OrderState.RELEASING]
        assert await shop.market.sweep(utc_now()) == 1
        with pytest.raises(NotFound):
            await shop.storage.numbers.show(account.account_sid, bought.phone_number_id)
        released = await shop.storage.numbers.list(account.account_sid, status="released")
        assert [number.status for number in released.items] == ["released"]
        assert (await shop.storage.numbers.list(account.account_sid)).total == 0
        again = await shop.buy(account)
        assert again.phone_number_id != bought.phone_number_id


# Buys numbers without end and says so on its output.
PROCESS = """
import asyncio, sys
from callcontrol.numbers.aio.marketplace import NumberMarket
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.numbers.orders import PurchaseRequest
from fixtures.inventory import SandboxInventory
from tests.support.secrets import SECRETS

async def main():
    storage = await Storage.open(sys.argv[1], deliver=False, secrets=SECRETS)
    inventory = SandboxInventory.standard()
    market = NumberMarket(storage.database, storage.writer, storage.directory, inventory)

    async def buy(listing):
        bought = await market.purchase(sys.argv[2], PurchaseRequest(live_ref=listing.live_ref))
        print(bought.number, flush=True)

    waiting = list(inventory.listings.values())[:280]
    while waiting:
        await asyncio.gather(*(buy(listing) for listing in waiting[:4]))
        del waiting[:4]

asyncio.run(main())
"""


@pytest.mark.parametrize("bought", [pytest.param(1, marks=pytest.mark.long("a kill at another time")), 30])
async def test_a_killed_process_has_charged_for_what_it_gave(url: str, bought: int) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, _ = await storage.accounts.create("Acme", balance_paise=100_000_000, kyc=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROCESS, url, account.account_sid),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    try:
        said = {(await process.stdout.readline()).decode().strip() for _ in range(bought)}
    finally:
        process.kill()
        rest = await process.stdout.read()
        await process.wait()
    said |= {line for line in rest.decode().split("\n")[:-1] if line}
    assert said <= {number.number for number in await storage.numbers.every(account.account_sid)}
    await books_agree(storage, account)
    # What it had begun is given up, and those numbers are for sale again.
    shop = Shop(storage, SandboxInventory.standard(lambda n: storage.directory.number(n) is not None))
    open_orders = await storage.database.read(orders.open_orders)
    await shop.market.sweep(utc_now() + LATER)
    assert await shop.states() == []
    await storage.directory.refresh()
    for order in open_orders:
        await shop.buy(account, order.live_ref)
    await books_agree(storage, account)
    await storage.close()
