"""Calls that are inserted or that end in one transaction: each has the outcome of one after the other."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import DomainError, InsufficientBalance, Internal, SpendLimitReached
from callcontrol.models import Account, CallFilter, CallRecord, CallStatus
from callcontrol.wallet.money import hour_of
from callcontrol.wallet.store import ledger, reserves
from tests.support.domain import new_record

NOON = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)


async def hold(storage: Storage, account: Account, *amounts: int, now: datetime = NOON) -> list[str]:
    """Reserve these amounts, for calls named by their place."""
    calls = [f"{account.account_sid}-{place}" for place in range(len(amounts))]
    wanted = [
        reserves.Wanted(account.account_sid, call, amount, now)
        for call, amount in zip(calls, amounts, strict=True)
    ]
    refusals = await storage.writer.commit(lambda connection: reserves.reserve_all(connection, wanted))
    assert refusals == [None] * len(amounts)
    return calls


async def settle(storage: Storage, charges: dict[str, int], now: datetime = NOON) -> list[int]:
    """Settle calls in one transaction; returns their charges in the same order."""
    charged = await storage.writer.commit(lambda connection: reserves.settle_all(connection, charges, now))
    return [charged[call] for call in charges]


async def in_books(storage: Storage, account: Account) -> tuple[int, int, list[int]]:
    """Balance, reserved money, and charges by the ledger, newest first; the balance is the ledger's sum."""
    wallet = await storage.wallet.wallet(account.account_sid)
    assert wallet.balance_paise == await storage.wallet.ledger_sum(account.account_sid)
    entries = (await storage.wallet.ledger(account.account_sid)).items
    charges = [-entry.amount_paise for entry in entries if entry.kind == "charge"]
    return wallet.balance_paise, wallet.reserved_paise, charges


async def test_the_second_call_gets_what_the_first_left(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Poor", balance_paise=100)
    one, two, three = await hold(storage, account, 40, 30, 20)
    # The first leaves 30 of its 40, which with 10 never held pay for all but 30 of the second's 100.
    assert await settle(storage, {one: 10, two: 100}) == [10, 70]
    assert await in_books(storage, account) == (20, 20, [70, 10])
    assert await settle(storage, {three: 500}) == [20]
    assert await in_books(storage, account) == (0, 0, [20, 70, 10])


async def test_the_order_of_calls_decides_who_gets_the_rest(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Poor", balance_paise=100)
    one, two = await hold(storage, account, 40, 40)
    assert await settle(storage, {two: 70, one: 70}) == [60, 40]
    assert await in_books(storage, account) == (0, 0, [40, 60])


async def test_wallets_pay_for_their_own_calls(storage: Storage, account: Account) -> None:
    other, _ = await storage.accounts.create("Other", balance_paise=50)
    (one, two), (three,) = await hold(storage, account, 300, 300), await hold(storage, other, 50)
    assert await settle(storage, {one: 60, three: 120, two: 700}) == [60, 50, 700]
    assert await in_books(storage, account) == (100_000 - 760, 0, [700, 60])
    assert await in_books(storage, other) == (0, 0, [50])


async def test_calls_settled_before_are_charged_once(storage: Storage, account: Account) -> None:
    one, two, three = await hold(storage, account, 300, 300, 300)
    assert await settle(storage, {one: 60, two: 0}) == [60, 0]
    assert await settle(storage, {one: 120, two: 120, three: 80, "unknown": 5}) == [60, 0, 80, 0]
    assert await in_books(storage, account) == (100_000 - 140, 0, [80, 60])


async def test_a_call_that_costs_nothing_has_no_entry(storage: Storage, account: Account) -> None:
    assert await settle(storage, dict.fromkeys(await hold(storage, account, 300, 300, 0), 0)) == [0, 0, 0]
    assert await in_books(storage, account) == (100_000, 0, [])
    assert await settle(storage, {}) == []


async def test_charges_count_in_the_hour_of_their_settlement(storage: Storage, account: Account) -> None:
    async def spent() -> tuple[int, int]:
        found = await storage.database.read(
            lambda connection: connection.exec_driver_sql(
                f"SELECT spent_hour, spent_paise FROM wallets WHERE account_sid = '{account.account_sid}'"
            ).one()
        )
        return found[0], found[1]

    one, two, three, four, late = await hold(storage, account, 300, 300, 300, 300, 300)
    await settle(storage, {one: 60, two: 40})
    assert await spent() == (hour_of(NOON), 100)
    await settle(storage, {three: 5, four: 7}, NOON + timedelta(hours=1))
    assert await spent() == (hour_of(NOON) + 1, 12)
    # The clock of another process may be behind.
    await settle(storage, {late: 3}, NOON)
    assert await spent() == (hour_of(NOON) + 1, 15)


async def test_more_calls_than_one_statement_takes(storage: Storage, account: Account) -> None:
    calls = await hold(storage, account, *range(150))
    assert (await in_books(storage, account))[1] == sum(range(150))
    assert await settle(storage, {call: number % 7 for number, call in enumerate(calls)}) == [
        number % 7 if number else 0 for number in range(150)
    ]
    assert (await in_books(storage, account))[1] == 0
    assert await storage.wallet.open_reserves() == []


async def test_more_accounts_than_one_statement_takes(storage: Storage) -> None:
    made = [(await storage.accounts.create(f"A{number}", balance_paise=300))[0] for number in range(70)]
    wanted = [reserves.Wanted(each.account_sid, each.account_sid, 300, NOON) for each in made]
    refusals = await storage.writer.commit(lambda connection: reserves.reserve_all(connection, wanted))
    assert refusals == [None] * 70
    charges = {each.account_sid: number for number, each in enumerate(made)}
    assert await settle(storage, charges) == list(range(70))
    for number, each in enumerate(made):
        wallet = await storage.wallet.wallet(each.account_sid)
        assert (wallet.balance_paise, wallet.reserved_paise) == (300 - number, 0)


async def test_a_wallet_that_covers_some_of_the_calls(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Poor", balance_paise=1_000)
    calls = [new_record(account.account_sid) for _ in range(6)]
    amounts = [300, 300, 500, 0, 300, 300]

    async def insert(call: CallRecord, amount: int) -> str:
        try:
            await storage.calls.insert(call, reserve_paise=amount)
        except InsufficientBalance:
            return "refused"
        return "inserted"

    outcomes = await asyncio.gather(*map(insert, calls, amounts))
    assert outcomes == ["inserted", "inserted", "refused", "inserted", "inserted", "refused"]
    inserted = [call.call_sid for call, outcome in zip(calls, outcomes, strict=True) if outcome == "inserted"]
    assert sorted(item.call_sid for item in await storage.wallet.open_reserves()) == sorted(inserted)
    assert sorted(call.call_sid for call in await storage.calls.unfinished()) == sorted(inserted)
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 900


async def test_wallets_cover_their_own_calls(storage: Storage, account: Account) -> None:
    """In one transaction: one has enough, one is at its limit, and one is short with calls of two hours."""
    limited, _ = await storage.accounts.create("Limited", balance_paise=1_000)
    await storage.accounts.update(limited.account_sid, {"max_spend_paise_per_hour": 500})
    short, _ = await storage.accounts.create("Short", balance_paise=650)
    calls = [(account, 300), (limited, 300), (short, 300), (limited, 201), (short, 301), (short, 50)]
    wanted = [
        reserves.Wanted(owner.account_sid, str(place), amount, NOON + timedelta(hours=place == 4))
        for place, (owner, amount) in enumerate(calls)
    ]
    refusals = await storage.writer.commit(lambda connection: reserves.reserve_all(connection, wanted))
    assert [type(refusal) for refusal in refusals] == [type(None)] * 3 + [SpendLimitReached] + [
        InsufficientBalance,
        type(None),
    ]
    for owner, held_paise in ((account, 300), (limited, 300), (short, 350)):
        assert (await in_books(storage, owner))[1] == held_paise


async def test_calls_of_two_hours_hold_both(storage: Storage, account: Account, stranger: Account) -> None:
    calls = [(account, 300), (stranger, 0), (account, 200)]
    wanted = [
        reserves.Wanted(owner.account_sid, str(place), amount, NOON + timedelta(minutes=30 * place))
        for place, (owner, amount) in enumerate(calls)
    ]
    refusals = await storage.writer.commit(lambda connection: reserves.reserve_all(connection, wanted))
    assert refusals == [None] * 3
    assert (await in_books(storage, account))[1] == 500
    assert len(await storage.wallet.open_reserves()) == 3


async def test_a_reserve_that_is_open_stays_as_it_is(storage: Storage, account: Account) -> None:
    (call,) = await hold(storage, account, 300)
    sid = account.account_sid
    wanted = [
        reserves.Wanted(sid, which, amount, NOON)
        for which, amount in ((call, 500), ("new", 100), ("new", 200))
    ]
    refusals = await storage.writer.commit(lambda connection: reserves.reserve_all(connection, wanted))
    assert refusals == [None] * 3
    assert {item.call_sid: item.amount_paise for item in await storage.wallet.open_reserves()} == {
        call: 300,
        "new": 100,
    }
    assert (await storage.wallet.wallet(sid)).reserved_paise == 400


async def test_one_call_that_cannot_be_inserted_spoils_no_other(storage: Storage, account: Account) -> None:
    calls = [new_record(account.account_sid) for _ in range(4)]
    calls[1].hangup_cause_code = 2**70  # No database takes it.
    outcomes = await asyncio.gather(
        *(storage.calls.insert(call, reserve_paise=300) for call in calls), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, Internal, int, int]
    assert len(await storage.wallet.open_reserves()) == 3
    assert (await storage.wallet.wallet(account.account_sid)).reserved_paise == 900


async def test_one_charge_that_cannot_be_stored_spoils_no_other(
    storage: Storage, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is then charged apart; what is left is charged as the calls come."""
    calls = [new_record(account.account_sid) for _ in range(4)]
    await asyncio.gather(*(storage.calls.insert(call, reserve_paise=300) for call in calls))
    for call in calls:
        call.status, call.ended_at = CallStatus.COMPLETED, utc_now()
        storage.calls.finish(call, charge_paise=-(2**70) if call is calls[2] else 60)
    for _ in range(3):
        await storage.calls.flush()
    assert await in_books(storage, account) == (100_000 - 180, 300, [60, 60, 60])
    assert [item.call_sid for item in await storage.wallet.open_reserves()] == [calls[2].call_sid]
    assert "a row cannot be written and is lost" in caplog.text
    page = await storage.calls.list(account.account_sid, CallFilter(status=CallStatus.COMPLETED), 1, 20)
    assert {item.price_paise for item in page.items if item.call_sid != calls[2].call_sid} == {60}


async def test_what_a_request_refuses_undoes_nothing_of_the_calls_beside_it(
    storage: Storage, account: Account
) -> None:
    """A request that raises repeats the transaction with each call under its own savepoint."""

    def refuse(connection: object) -> None:
        raise InsufficientBalance("no")

    calls = [new_record(account.account_sid) for _ in range(3)]
    outcomes = await asyncio.gather(
        storage.calls.insert(calls[0], reserve_paise=300),
        storage.writer.commit(refuse),
        *(storage.calls.insert(call, reserve_paise=300) for call in calls[1:]),
        storage.wallet.top_up(account.account_sid, 50),
        return_exceptions=True,
    )
    assert [outcome for outcome in outcomes if isinstance(outcome, DomainError)] == [outcomes[1]]
    assert await in_books(storage, account) == (100_050, 900, [])
    assert await storage.database.read(
        lambda connection: ledger.available(connection, account.account_sid)
    ) == (99_150)
