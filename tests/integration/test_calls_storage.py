"""Calls over the real database: what is durable, what the wallet says, and what a restart makes of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from callcontrol.bootstrap.aio.call_features import call_features
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.calls.aio.context import CallControlSettings, CallServices
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.requests import CreateCall
from callcontrol.models import Account, Binding, CallFilter, CallStatus
from media.aio import MediaEngine
from sip import Answered, Confirmed
from sip.aio import Listen
from tests.support.customers import add_registered_number
from tests.support.domain import CALLEE, OWN_NUMBER
from tests.support.phone import Phone, engine_settings, eventually
from tests.support.sqlite import sqlite_url


async def open_storage(directory: Path) -> Storage:
    return await Storage.open(
        await sqlite_url(directory / "test.db"), StorageSettings(allow_private_destinations=True)
    )


def make_control(storage: Storage, directory: Path) -> CallControl:
    settings = CallControlSettings(
        sip_listens=[Listen("udp", "127.0.0.1", 0)], data_dir=directory, media=engine_settings()
    )
    return CallControl(
        settings,
        CallServices(
            calls=storage.calls,
            wallets=storage.wallet,
            numbers=storage.numbers,
            routes=storage.directory,
            destinations=storage.destinations,
            features=call_features(settings, storage.directory, storage.destinations, storage.refresh),
            refresh=storage.refresh,
        ),
    )


@asynccontextmanager
async def far_end() -> AsyncIterator[Phone]:
    engine = MediaEngine(engine_settings())
    await engine.start()
    phone = Phone(engine)
    await phone.start()
    try:
        yield phone
    finally:
        await phone.close()
        await engine.close()


async def furnish(storage: Storage, phone: Phone) -> Account:
    """An account with money, a registered number that is forwarded, and the telephone as its carrier."""
    account, _ = await storage.accounts.create(
        name="Test", balance_paise=50_000, kyc=True, max_cps=10, max_calls=10
    )
    await storage.trunks.add_platform_carrier(
        "Far end", [("udp", "127.0.0.1", phone.port)], inbound=True, outbound=True
    )
    number_id = await add_registered_number(storage, account.account_sid, OWN_NUMBER)
    await storage.numbers.bind(account.account_sid, number_id, Binding("forward", forward_to=CALLEE))
    return account


async def test_a_forwarded_call_is_recorded_and_charged(tmp_path: Path) -> None:
    async with far_end() as phone:
        storage = await open_storage(tmp_path)
        control = make_control(storage, tmp_path)
        try:
            account = await furnish(storage, phone)
            await control.start()
            a = phone.call(OWN_NUMBER, control.user_agent.addresses[0].port)
            await a.wait(Answered)
            wallet = await storage.wallet.wallet(account.account_sid)
            assert wallet.reserved_paise == 500
            a.hang_up()
            assert await eventually(lambda: control.active_calls == 0)
            page = await control.list_calls(account.account_sid, CallFilter(), 1, 20)
            (record,) = page.items
            assert (record.status, record.price_paise) == (CallStatus.COMPLETED, 100)
            wallet = await storage.wallet.wallet(account.account_sid)
            assert (wallet.balance_paise, wallet.reserved_paise) == (49_900, 0)
        finally:
            await control.close()
            await storage.close()


async def test_a_killed_process_is_settled_by_the_next(tmp_path: Path) -> None:
    async with far_end() as phone:
        storage = await open_storage(tmp_path)
        account = await furnish(storage, phone)
        control = make_control(storage, tmp_path)
        await control.start()
        request = CreateCall(from_=OWN_NUMBER, to=CALLEE, verbs=[{"verb": "pause", "length": 60}])
        record = await control.create_call(account.account_sid, request)
        b = await phone.next_call()
        await b.wait(Confirmed)
        await storage.calls.flush()
        # Everything in memory is lost; the database is what the next process finds.
        for task in list(control._tasks):
            task.cancel()
        await asyncio.wait(list(control._tasks))
        await control.engine.close()
        await control.user_agent.close()
        storage.calls._held.records.clear()
        storage.calls._held.charges.clear()
        await storage.close()

        storage = await open_storage(tmp_path)
        control = make_control(storage, tmp_path)
        try:
            await control.start()
            found = await control.get_call(account.account_sid, record.call_sid)
            assert (found.status, found.hangup_cause, found.hangup_source) == (
                CallStatus.COMPLETED,
                "CRASH",
                "system",
            )
            assert found.price_paise == 60
            wallet = await storage.wallet.wallet(account.account_sid)
            assert (wallet.balance_paise, wallet.reserved_paise) == (49_940, 0)
            assert await storage.calls.unfinished() == []
        finally:
            await control.close()
            await storage.close()
