"""Money where calls are real: what many requests at once may spend, and what ends a call that nobody pays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.server import Server
from callcontrol.bootstrap.aio.call_features import call_features
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio.context import CallControlSettings, CallServices
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.charges import Rates
from callcontrol.calls.requests import CreateCall
from callcontrol.models import CallFilter, CallStatus
from sip import Confirmed
from sip.aio import Listen
from tests.integration.test_calls_storage import far_end, furnish, open_storage
from tests.support.customers import add_customer
from tests.support.domain import CALLEE, OWN_NUMBER
from tests.support.loopback_server import loopback_settings
from tests.support.phone import engine_settings, eventually

NUMBER, LISTENER = "+918047491855", "+919800000001"
RESERVE_PAISE, PULSE_PAISE = 300, 60


@dataclass
class Customer:
    """An account of a running server, over HTTP."""

    server: Server
    http: aiohttp.ClientSession
    account_sid: str
    api_key: str

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.api_key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def place(self) -> tuple[int, str]:
        """Place a call; the status, and the call or the code of the refusal."""
        request = {"from": NUMBER, "to": LISTENER, "verbs": [{"verb": "pause", "length": 30}]}
        status, answer = await self.ask("POST", "/v1/calls", request)
        return status, answer["data"]["call_sid"] if status == 201 else answer["error"]["code"]

    async def place_many(self, count: int) -> tuple[list[str], Counter[str]]:
        """Place so many at once; the calls, and how often which refusal came."""
        outcomes = await asyncio.gather(*(self.place() for _ in range(count)))
        placed = [said for status, said in outcomes if status == 201]
        return placed, Counter(said for status, said in outcomes if status == 402)

    async def hang_up(self, calls: list[str]) -> None:
        for call_sid in calls:
            await self.ask("DELETE", f"/v1/Accounts/{self.account_sid}/Calls/{call_sid}")
        assert await eventually(lambda: self.server.control.active_calls == 0)

    async def wallet(self) -> Any:
        return (await self.ask("GET", "/v1/wallet"))[1]["data"]

    async def ledger(self) -> list[Any]:
        found: list[Any] = (await self.ask("GET", "/v1/wallet/ledger?per_page=100"))[1]["data"]
        return found


@pytest.fixture
async def customer(tmp_path: Path) -> AsyncIterator[Customer]:
    """An account whose wallet covers the reserves of five calls."""
    settings = loopback_settings(tmp_path)
    server = Server(settings)
    await server.start()
    storage = server.storage
    added = await add_customer(storage, NUMBER, balance_paise=5 * RESERVE_PAISE + 100)
    async with aiohttp.ClientSession() as http:
        yield Customer(server, http, added.account_sid, added.key)
    await server.stop()


async def test_calls_placed_at_once_spend_no_more_than_there_is(customer: Customer) -> None:
    calls, refusals = await customer.place_many(24)
    assert (len(calls), refusals) == (5, {"INSUFFICIENT_BALANCE": 19})
    wallet = await customer.wallet()
    assert (wallet["balance"], wallet["reserved"], wallet["available"]) == (16.0, 15.0, 1.0)
    status, listed = await customer.ask("GET", "/v1/calls")
    assert (status, listed["meta"]["total"]) == (200, 5)
    await customer.hang_up(calls)
    wallet, ledger = await customer.wallet(), await customer.ledger()
    charged = [entry for entry in ledger if entry["kind"] == "charge"]
    assert {entry["call_sid"] for entry in charged} <= set(calls)
    assert wallet["balance"] == pytest.approx(sum(entry["amount"] for entry in ledger))
    assert wallet["balance"] == pytest.approx(16.0 - 0.6 * len(charged))
    assert (wallet["reserved"], wallet["available"]) == (0.0, wallet["balance"])


async def test_calls_placed_at_once_keep_to_the_limit_of_the_hour(customer: Customer) -> None:
    storage, sid = customer.server.storage, customer.account_sid
    await storage.wallet.top_up(sid, 100_000)
    await storage.accounts.update(sid, {"max_spend_paise_per_hour": 3 * RESERVE_PAISE + PULSE_PAISE})
    calls, refusals = await customer.place_many(12)
    assert (len(calls), refusals) == (3, {"SPEND_LIMIT_EXCEEDED": 9})
    await customer.hang_up(calls)
    wallet = await customer.wallet()
    assert wallet["spend_limit_per_hour"] == 9.6
    # What the calls did not cost may be spent again in the same hour.
    more, _ = await customer.place_many(6)
    assert len(more) == (960 - round(100 * wallet["spent_this_hour"])) // RESERVE_PAISE
    await customer.hang_up(more)
    await storage.accounts.update(sid, {"max_spend_paise_per_hour": None})
    assert (await customer.place())[0] == 201


def make_control(storage: Storage, directory: Path, rates: Rates) -> CallControl:
    settings = CallControlSettings(
        sip_listens=[Listen("udp", "127.0.0.1", 0)],
        data_dir=directory,
        media=engine_settings(),
        rates=rates,
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


@pytest.mark.parametrize("limited", [False, True])
async def test_a_call_is_cut_before_a_pulse_that_nobody_pays(tmp_path: Path, limited: bool) -> None:
    """The wallet, or the limit of the hour, covers the two pulses reserved at first and not two more."""
    async with far_end() as phone:
        storage = await open_storage(tmp_path)
        rates = Rates(outbound_paise=20_000, pulse_s=0.6, reserve_pulses=2)
        control = make_control(storage, tmp_path, rates)
        try:
            account = await furnish(storage, phone)
            left = 79_999
            if limited:
                await storage.accounts.update(account.account_sid, {"max_spend_paise_per_hour": left})
            await storage.wallet.top_up(account.account_sid, (0 if not limited else 10**6) + left - 50_000)
            await control.start()
            before = await storage.wallet.balance(account.account_sid)
            request = CreateCall(from_=OWN_NUMBER, to=CALLEE, verbs=[{"verb": "pause", "length": 60}])
            await control.create_call(account.account_sid, request)
            b = await phone.next_call()
            await b.wait(Confirmed)
            assert await eventually(lambda: control.active_calls == 0)
            (record,) = (await control.list_calls(account.account_sid, CallFilter(), 1, 20)).items
            assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "system")
            assert record.price_paise in (20_000, 40_000)
            wallet = await storage.wallet.wallet(account.account_sid)
            assert wallet.balance_paise == before - record.price_paise
            assert wallet.balance_paise == await storage.wallet.ledger_sum(account.account_sid)
            assert (wallet.reserved_paise, record.hangup_cause) == (0, "BALANCE_EXHAUSTED")
        finally:
            await control.close()
            await storage.close()
