"""Renewals on the database: every month is charged once, whoever runs and whenever."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import NotFound, NumberNotOwned
from callcontrol.models import Account, PhoneNumber
from callcontrol.numbers.aio.renewals import Renewals
from callcontrol.numbers.orders import Order, OrderEvent, OrderState
from callcontrol.numbers.renewal import add_months, opened
from callcontrol.numbers.store import numbers, orders
from tests.support.secrets import SECRETS
from tests.support.wallets import reserve

BOUGHT = datetime(2026, 1, 31, 9, tzinfo=UTC)
DUE = add_months(BOUGHT, 1)
DAY = timedelta(days=1)
MONTHLY_PAISE = 19_900


def renewals_of(storage: Storage) -> Renewals:
    return Renewals(storage.database, storage.writer, storage.directory)


async def bought(storage: Storage, account: Account, last_digits: int = 100) -> PhoneNumber:
    """A number of the account, bought on the last of January with one month."""
    order = Order(new_id(), account.account_sid, "ref", f"+911110000{last_digits}", 1, 0, BOUGHT, BOUGHT)
    number = PhoneNumber(
        phone_number_id=new_id(),
        account_sid=account.account_sid,
        number=order.number,
        created_at=BOUGHT,
        updated_at=BOUGHT,
        registered=True,
        monthly_cost_paise=MONTHLY_PAISE,
        order_id=order.order_id,
        billing=opened(BOUGHT, 1),
    )

    def write(connection: Connection) -> None:
        orders.insert(connection, order)
        orders.advance(connection, order.order_id, OrderEvent.DELIVERED, BOUGHT)
        numbers.insert(connection, number)

    await storage.writer.commit(write)
    await storage.directory.refresh()
    return number


async def state_of(storage: Storage, number: PhoneNumber) -> PhoneNumber:
    return await storage.numbers.get(number.account_sid, number.phone_number_id)


async def paid_months(storage: Storage, account: Account) -> list[int]:
    entries = (await storage.wallet.ledger(account.account_sid, per_page=1000)).items
    return [-entry.amount_paise for entry in entries if entry.kind == "number_renewal"]


async def test_a_month_is_charged_when_it_is_due_and_once(storage: Storage, account: Account) -> None:
    number, renewals = await bought(storage, account), renewals_of(storage)
    assert await renewals.run(DUE - timedelta(seconds=1)) == 0
    assert await renewals.run(DUE) == 1
    assert await renewals.run(DUE) == 0
    assert (await state_of(storage, number)).billing == opened(BOUGHT, 2)
    assert await paid_months(storage, account) == [MONTHLY_PAISE]
    assert await storage.wallet.balance(account.account_sid) == 100_000 - MONTHLY_PAISE


async def test_months_that_were_slept_through_are_charged_together(
    storage: Storage, account: Account
) -> None:
    number = await bought(storage, account)
    await renewals_of(storage).run(add_months(BOUGHT, 3) + DAY)
    assert (await state_of(storage, number)).billing == opened(BOUGHT, 4)
    assert await paid_months(storage, account) == [MONTHLY_PAISE] * 3


async def test_runs_of_two_processes_charge_once(url: str) -> None:
    storages = [await Storage.open(url, deliver=False, secrets=SECRETS) for _ in range(2)]
    account, _ = await storages[0].accounts.create("Acme", balance_paise=10_000_000, kyc=True)
    owned = [await bought(storages[0], account, 100 + n) for n in range(150)]
    changed = await asyncio.gather(*(renewals_of(storage).run(DUE) for storage in storages))
    assert sum(changed) == 150
    assert len(await paid_months(storages[0], account)) == 150
    for number in owned[:3]:
        assert (await state_of(storages[1], number)).billing == opened(BOUGHT, 2)
    for storage in storages:
        await storage.close()


async def test_a_number_nobody_pays_for_ends_and_money_of_calls_is_not_touched(storage: Storage) -> None:
    poor, _ = await storage.accounts.create("Poor", balance_paise=20_000, kyc=True)
    number, renewals = await bought(storage, poor), renewals_of(storage)
    await reserve(storage, poor.account_sid, "call", 10_000)

    assert await renewals.run(DUE) == 1
    assert (await storage.numbers.owned(poor.account_sid, number.number)).status == "active"
    assert await renewals.run(DUE + 6 * DAY) == 0

    assert await renewals.run(DUE + 7 * DAY) == 1
    with pytest.raises(NumberNotOwned, match="suspended"):
        await storage.numbers.owned(poor.account_sid, number.number)
    suspended = await storage.numbers.list(poor.account_sid, status="suspended")
    assert [item.phone_number_id for item in suspended.items] == [number.phone_number_id]

    assert await renewals.run(DUE + 29 * DAY) == 0
    assert await renewals.run(DUE + 30 * DAY) == 1
    with pytest.raises(NotFound):
        await state_of(storage, number)
    assert storage.directory.number(number.number) is None
    (order,) = await storage.database.read(orders.open_orders)
    assert (order.order_id, order.state) == (number.order_id, OrderState.RELEASING)
    assert await storage.wallet.balance(poor.account_sid) == 20_000


async def test_a_top_up_brings_a_suspended_number_back(storage: Storage) -> None:
    poor, _ = await storage.accounts.create("Poor", balance_paise=100, kyc=True)
    number, renewals = await bought(storage, poor), renewals_of(storage)
    await renewals.run(DUE)
    await renewals.run(DUE + 7 * DAY)
    await storage.wallet.top_up(poor.account_sid, MONTHLY_PAISE, reference="payment-1")
    assert await renewals.run(DUE + 10 * DAY) == 1
    assert (await storage.numbers.owned(poor.account_sid, number.number)).billing == opened(BOUGHT, 2)
    assert await storage.wallet.balance(poor.account_sid) == 100


async def test_one_that_cannot_pay_keeps_nobody_waiting(storage: Storage, account: Account) -> None:
    poor, _ = await storage.accounts.create("Poor", kyc=True)
    for n in range(120):
        await bought(storage, poor, 100 + n)
    last = await bought(storage, account, 999)
    renewals = renewals_of(storage)
    await renewals.run(DUE)
    await renewals.run(DUE + DAY)
    assert (await state_of(storage, last)).billing == opened(BOUGHT, 2)


async def test_numbers_that_were_given_are_never_charged(storage: Storage, account: Account) -> None:
    given = await storage.numbers.add(account.account_sid, "+918047000010")
    assert await renewals_of(storage).run(datetime(2099, 1, 1, tzinfo=UTC)) == 0
    assert (await state_of(storage, given)).billing is None


async def test_a_running_server_renews_by_itself(storage: Storage, account: Account) -> None:
    number = await bought(storage, account)
    swept: list[datetime] = []
    done = asyncio.Event()

    async def also(now: datetime) -> None:
        swept.append(now)
        done.set()

    renewals = Renewals(storage.database, storage.writer, storage.directory, also=also)
    await renewals.start()
    async with asyncio.timeout(40):
        await done.wait()
    await renewals.close()
    assert swept and swept[0] <= utc_now()
    billing = (await state_of(storage, number)).billing
    assert billing is not None and billing.paid_months > 1
    assert replace(billing, deadline_at=None) == opened(BOUGHT, billing.paid_months)
