"""Limits of what a forwarded call costs the database, so that no statement and no commit creeps back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio.service import CallControl
from callcontrol.models import Account, CallFilter, CallStatus
from sip import Answered, Progress
from tests.integration.test_calls_storage import far_end, furnish, make_control, open_storage
from tests.support.call_work import COMMITS_ALONE, STATEMENTS_ALONE, CallWork
from tests.support.domain import OWN_NUMBER
from tests.support.phone import Phone, PhoneCall, eventually

AT_ONCE = 20
STATEMENTS_OF_A_CALL, COMMITS_OF_A_CALL = 1, 0.5
"""Limits for each of many calls at once, which share both: 0.45 and 0.2 where no transaction is split."""


@pytest.fixture
async def phone() -> AsyncIterator[Phone]:
    async with far_end() as phone:
        yield phone


@pytest.fixture
async def control(tmp_path: Path, phone: Phone) -> AsyncIterator[tuple[CallControl, Storage, Account]]:
    """A server whose number is forwarded to the telephone, and which no account's limits hold up."""
    storage = await open_storage(tmp_path)
    control = make_control(storage, tmp_path)
    account = await furnish(storage, phone)
    await storage.accounts.update(account.account_sid, {"max_cps": 1000, "max_calls": 1000})
    await control.start()
    yield control, storage, account
    await control.close()
    await storage.close()


async def forward(control: CallControl, storage: Storage, phone: Phone, count: int) -> None:
    """Forwarded calls at once; each step follows when the one before is durable."""

    def written() -> bool:
        return storage.calls.unwritten == 0

    rung: list[PhoneCall] = []

    def ring(call: PhoneCall) -> None:
        call.ring()
        rung.append(call)

    phone.on_call = ring
    callers = [phone.call(OWN_NUMBER, control.user_agent.addresses[0].port) for _ in range(count)]
    for call in callers:
        await call.wait(Progress)
    assert await eventually(lambda: len(rung) == count) and await eventually(written)
    for call in rung:
        call.answer()
    for call in callers:
        await call.wait(Answered)
    assert await eventually(written)
    for call in callers:
        call.hang_up()
    assert await eventually(lambda: control.active_calls == 0) and await eventually(written)


async def test_a_plain_forwarded_call(
    control: tuple[CallControl, Storage, Account], phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, storage, account = control
    work = CallWork(storage, monkeypatch)
    await forward(service, storage, phone, 1)
    assert work.statements == STATEMENTS_ALONE
    assert work.commits == COMMITS_ALONE


async def test_forwarded_calls_at_once(
    control: tuple[CallControl, Storage, Account], phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, storage, account = control
    work = CallWork(storage, monkeypatch)
    await forward(service, storage, phone, AT_ONCE)
    assert work.statements.keys() == STATEMENTS_ALONE.keys()
    assert work.statements.total() <= STATEMENTS_OF_A_CALL * AT_ONCE
    assert work.commits <= COMMITS_OF_A_CALL * AT_ONCE
    page = await storage.calls.list(account.account_sid, CallFilter(status=CallStatus.COMPLETED), 1, 100)
    assert [call.price_paise for call in page.items] == [100] * AT_ONCE
