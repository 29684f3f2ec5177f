"""Limits of what a plain call costs the database, so that no statement and no commit creeps back."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import InsufficientBalance
from callcontrol.models import Account, CallRecord, CallStatus
from tests.support.call_work import COMMITS_ALONE, STATEMENTS_ALONE, STATEMENTS_ALONE_ON_POSTGRES, CallWork
from tests.support.domain import new_record
from tests.support.phone import eventually

AT_ONCE = 20


def statements_alone(storage: Storage) -> Counter[str]:
    """Statements of a call alone, and of any number at once."""
    return STATEMENTS_ALONE if storage.database.shared is None else STATEMENTS_ALONE_ON_POSTGRES


async def live(storage: Storage, calls: list[CallRecord], *, limited: bool = False) -> None:
    """All calls at once, as the machine writes them: inserted, ringing, answered, ended."""
    await asyncio.gather(*(storage.calls.insert(call, reserve_paise=300, limited=limited) for call in calls))
    for status in (CallStatus.RINGING, CallStatus.IN_PROGRESS):
        for call in calls:
            call.status = status
            storage.calls.update(call)
        assert await eventually(lambda: storage.calls.unwritten == 0)
    for call in calls:
        call.status, call.ended_at = CallStatus.COMPLETED, call.created_at
        storage.calls.finish(call, charge_paise=60)
    assert await eventually(lambda: storage.calls.unwritten == 0)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("count", [1, AT_ONCE])
async def test_calls_at_once_share_statements_and_commits(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch, count: int, limited: bool
) -> None:
    """The limits of the account cost no statement, though PostgreSQL checks them."""
    await storage.accounts.update(account.account_sid, {"max_cps": AT_ONCE})
    work = CallWork(storage, monkeypatch)
    await live(storage, [new_record(account.account_sid) for _ in range(count)], limited=limited)
    assert work.statements == statements_alone(storage)
    assert work.commits == COMMITS_ALONE
    assert await storage.wallet.balance(account.account_sid) == 100_000 - 60 * count


@pytest.mark.parametrize("limited", [False, True])
async def test_calls_of_as_many_accounts_share_them_too(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, limited: bool
) -> None:
    made = [await storage.accounts.create(f"A{n}", balance_paise=300) for n in range(AT_ONCE)]
    work = CallWork(storage, monkeypatch)
    await live(storage, [new_record(account.account_sid) for account, _ in made], limited=limited)
    assert work.statements == statements_alone(storage)
    assert work.commits == COMMITS_ALONE
    for account, _ in made:
        wallet = await storage.wallet.wallet(account.account_sid)
        assert (wallet.balance_paise, wallet.reserved_paise) == (240, 0)


async def test_of_calls_at_once_those_are_refused_whose_account_is_short(storage: Storage) -> None:
    made = [await storage.accounts.create(f"A{n}", balance_paise=299 + n % 2) for n in range(AT_ONCE)]
    calls = [new_record(account.account_sid) for account, _ in made]
    inserts = [storage.calls.insert(call, reserve_paise=300, limited=True) for call in calls]
    outcomes = await asyncio.gather(*inserts, return_exceptions=True)
    assert [isinstance(outcome, InsufficientBalance) for outcome in outcomes] == [True, False] * (
        AT_ONCE // 2
    )
    assert (await storage.wallet.reserved_in_all())[0] == AT_ONCE // 2
