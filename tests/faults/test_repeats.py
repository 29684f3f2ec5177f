"""Many repeats of what costs money, all at once."""

from __future__ import annotations

import asyncio
import json
import resource
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.faults.lengths import count, progress
from tests.support.ports import free_port, port_range
from tests.support.server_process import ServerProcess
from tests.support.waiting import look_again, until

pytestmark = pytest.mark.durable

KEYS = count("REPEATED_KEYS", short=12, long=100)
REPEATS = count("REPEATS", short=15, long=100)
# All at once: each request has a connection of its own, as far as there are descriptors.
CONNECTIONS = count("REPEAT_CONNECTIONS", short=300, long=3000)
NUMBER = "+918047491899"
# Numbers of the sandbox that refuse with the status they end in; one gets no more than five passwords.
_REFUSING = [f"+919800000{status}" for status in (*range(424, 500), *range(600, 640))]
BALANCE_INR = 2500
"""Not enough for all that is asked for."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with its sandbox, whose numbers are busy, and with room for the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    running = ServerProcess(
        tmp_path,
        environment={
            "TRUNKLINE_SANDBOX_CARRIER": "1",
            "TRUNKLINE_SANDBOX_LISTEN": f"udp:127.0.0.1:{free_port()}",
            "TRUNKLINE_SANDBOX_RTP_PORTS": "{}-{}".format(*port_range(500)),
            "TRUNKLINE_MAX_CPS": "1000",
            "TRUNKLINE_LOG_LEVEL": "warning",
        },
    )
    running.start()
    yield running
    assert running.stop() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Shop:
    """An account with little money, and what it asks for again and again."""

    def __init__(self, server: ServerProcess, session: aiohttp.ClientSession, api_key: str) -> None:
        self._server = server
        self._session = session
        self._headers = {"Authorization": f"Bearer {api_key}"}
        self.lowest_inr = float(BALANCE_INR)
        # By key: the answers of each effect, and how often which status came.
        self.made: dict[str, set[str]] = defaultdict(set)
        self.statuses: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()

    async def get(self, path: str) -> Any:
        async with self._session.get(self._server.url + path, headers=self._headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def post(self, key: str, path: str, body: Mapping[str, Any]) -> int:
        """Ask with a key; note what was made."""
        headers = {**self._headers, "Idempotency-Key": key}
        async with self._session.post(self._server.url + path, json=body, headers=headers) as answer:
            found = await answer.json()
            if answer.status == 201:
                self.made[key].add(json.dumps(found["data"], sort_keys=True))
            else:
                self.refusals[
                    f"{answer.status} {path} {found['error']['code']}: {found['error']['message']}"
                ] += 1
            self.statuses[answer.status] += 1
            return answer.status

    async def watch(self) -> None:
        """Note the least that the wallet ever had."""
        while True:
            wallet = (await self.get("/v1/wallet"))["data"]
            self.lowest_inr = min(self.lowest_inr, wallet["balance"], wallet["available"])
            await look_again()

    async def ledger(self) -> list[dict[str, Any]]:
        """All that was ever taken and given."""
        found: list[dict[str, Any]] = []
        while True:
            page = await self.get(f"/v1/wallet/ledger?per_page=100&page={len(found) // 100 + 1}")
            found += page["data"]
            if len(found) >= page["meta"]["total"]:
                return found

    async def for_sale(self, wanted: int) -> Sequence[str]:
        """References of numbers that may be bought."""
        found: list[str] = []
        while len(found) < wanted:
            page = len(found) // 100 + 1
            listed = (await self.get(f"/v1/dids/available?per_page=100&page={page}"))["data"]
            assert listed, "there are not so many numbers for sale"
            found += [item["live_ref"] for item in listed]
        return found[:wanted]


@pytest.mark.long(reason="hundreds of requests with one key")
async def test_each_key_has_one_effect_and_the_wallet_is_never_below_nothing(server: ServerProcess) -> None:
    """Of many purchases, calls and passwords with one key each at once, one has an effect, paid for once."""
    account = await asyncio.to_thread(server.add_account, "Shop", BALANCE_INR)
    await asyncio.to_thread(server.add_number, account, NUMBER)
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        shop = Shop(server, session, account.api_key)
        asked: list[tuple[str, str, dict[str, Any]]] = []
        for at, live_ref in enumerate(await shop.for_sale(KEYS)):
            call = {"from": NUMBER, "to": "+919800000003", "verbs": [{"verb": "hangup"}]}
            asked.append((f"number-{at}", "/v1/dids/purchase-live", {"live_ref": live_ref}))
            asked.append((f"call-{at}", "/v1/calls", call))
            asked.append((f"otp-{at}", "/v1/voice-otp/send", {"to": _REFUSING[at]}))
        watching = asyncio.create_task(shop.watch())
        await asyncio.gather(*(shop.post(*request) for _ in range(REPEATS) for request in asked))
        progress(f"{len(asked) * REPEATS} requests: {dict(shop.statuses)}")
        # What was told to come again, because the first was still running, comes again.
        again = [await shop.post(*request) for request in asked]
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await until(lambda: _is_idle(shop))
        await _one_effect_each(shop, again)


async def _is_idle(shop: Shop) -> bool:
    return float((await shop.get("/v1/wallet"))["data"]["reserved"]) == 0.0


async def _one_effect_each(shop: Shop, again: Sequence[int]) -> None:
    assert set(shop.statuses) <= {201, 402, 409}, "\n".join(map(str, shop.refusals.items()))
    assert set(again) <= {201, 402}, "a key stays taken by a request that is over"
    assert {key: len(made) for key, made in shop.made.items() if len(made) != 1} == {}
    kinds = Counter(key.partition("-")[0] for key in shop.made)
    assert kinds["number"] and kinds["call"] == kinds["otp"] == KEYS
    numbers = (await shop.get("/v1/phone-numbers?per_page=1"))["meta"]["total"]
    calls = (await shop.get("/v1/calls?per_page=1"))["meta"]["total"]
    assert (numbers, calls) == (kinds["number"] + 1, kinds["call"] + kinds["otp"])
    wallet = (await shop.get("/v1/wallet"))["data"]
    entries = await shop.ledger()
    assert round(sum(entry["amount"] for entry in entries), 2) == wallet["balance"]
    assert shop.lowest_inr >= 0 and wallet["balance"] >= 0
