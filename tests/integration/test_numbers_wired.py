"""Numbers over HTTP and SIP: bought, wired, called and given up; what is wired is what calls do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from api.process.server import Server
from callcontrol.aio.tokens import new_id
from callcontrol.database import revisions
from callcontrol.numbers.store import numbers
from fixtures.scripts import Hangup, Pause
from tests.support.loopback_server import loopback_settings
from tests.support.phone import eventually

PATIENCE_S = 40.0
ECHO, BUSY, SHORT = "+919800000001", "+919800000003", "+919800000008"
QUICK = (Pause(0.1), Hangup())
NOBODY = "00000000-0000-4000-8000-000000000000"


@dataclass
class Desk:
    """A customer of a running server."""

    server: Server
    http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the answer to a request: the status with the data, or with the code of the error."""
        assert self.server.demo is not None
        headers = {"Authorization": f"Bearer {self.server.demo.api_key}", **headers}
        url = f"{self.server.url}/v1{path}"
        async with self.http.request(method, url, json=body, headers=headers) as response:
            if response.status == 204:
                return 204, None
            answer = await response.json()
            return response.status, answer["error"]["code"] if "error" in answer else answer["data"]

    async def buy(self, region: str = "Pune") -> dict[str, Any]:
        status, (listing, *_) = await self.ask("GET", f"/dids/available?region={region}")
        assert status == 200
        status, bought = await self.ask("POST", "/dids/purchase-live", {"live_ref": listing["live_ref"]})
        assert (status, bought["number"]) == (201, listing["number"])
        return dict(bought)

    async def call_in(self, number: str) -> int:
        """Call a number from the trunk; the last SIP status."""
        assert self.server.sandbox is not None
        call = await asyncio.wait_for(self.server.sandbox.place_call(number, QUICK), PATIENCE_S)
        return call.heard.statuses[-1]

    async def calls_over(self) -> None:
        assert await eventually(lambda: self.server.control.active_calls == 0, PATIENCE_S)


@asynccontextmanager
async def desk(tmp_path: Path, **settings: str) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path, rtp_ports=200, **settings))
    await server.start()
    try:
        async with aiohttp.ClientSession() as http:
            yield Desk(server, http)
    finally:
        await server.stop()


def state(answer: Any) -> tuple[bool, bool, str | None]:
    """Registered, bound, and where: of a wiring state, which must agree with itself."""
    assert answer["outbound_capable"] == answer["carrier_registered"]
    return answer["carrier_registered"], answer["inbound_bound"], answer["inbound_target"]


async def test_every_transition_of_the_wiring_and_the_calls_it_allows(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        bought = await customer.buy()
        number, path = bought["number"], f"/phone-numbers/{bought['phone_number_id']}"
        ask, call = customer.ask, {"from": number, "to": SHORT, "verbs": [{"verb": "hangup"}]}
        to_busy = {"target": "forward", "forward_to": BUSY}

        status, wiring = await ask("GET", f"{path}/telephony")
        assert (status, state(wiring)) == (200, (False, False, None))
        assert await ask("POST", "/calls", call) == (403, "NUMBER_NOT_OWNED")
        assert await customer.call_in(number) == 480

        for _ in range(2):
            status, wiring = await ask("POST", f"{path}/carrier")
            assert (status, state(wiring)) == (200, (True, False, None))
        assert (await ask("POST", "/calls", call))[0] == 201
        status, wiring = await ask("DELETE", f"{path}/carrier")
        assert (status, wiring["status"], state(wiring)) == (200, "deregistered", (False, False, None))
        assert await ask("POST", "/calls", call) == (403, "NUMBER_NOT_OWNED")

        # Binding registers; what is bound decides about the very next call.
        status, wiring = await ask("PUT", f"{path}/inbound", to_busy)
        assert (status, state(wiring)) == (200, (True, True, "forward"))
        assert await customer.call_in(number) == 486
        assert (await ask("PUT", f"{path}/inbound", to_busy))[0] == 200
        elsewhere = {"target": "forward", "forward_to": ECHO}
        assert await ask("PUT", f"{path}/inbound", elsewhere) == (409, "inbound_conflict")
        assert await customer.call_in(number) == 486
        assert (await ask("PUT", f"{path}/inbound", {**elsewhere, "force": True}))[0] == 200
        assert await customer.call_in(number) == 200
        stream = {"target": "media_stream", "stream_url": "ws://127.0.0.1:9/", "force": True}
        status, wiring = await ask("PUT", f"{path}/inbound", stream)
        assert (status, state(wiring)) == (200, (True, True, "media_stream"))
        assert await customer.call_in(number) == 480

        assert await ask("DELETE", f"{path}/carrier") == (409, "inbound_bound")
        status, wiring = await ask("DELETE", f"{path}/inbound")
        assert (status, state(wiring)) == (200, (True, False, None))
        assert (await ask("DELETE", f"{path}/inbound"))[0] == 200
        assert (await ask("POST", "/calls", call))[0] == 201
        await ask("PUT", f"{path}/inbound", to_busy)
        status, wiring = await ask("DELETE", f"{path}/carrier?force=true")
        assert (status, wiring["status"], state(wiring)) == (200, "deregistered", (False, False, None))
        assert await customer.call_in(number) == 480
        await customer.calls_over()

        assert (await ask("DELETE", path))[0] == 204
        assert await customer.call_in(number) == 404
        assert await ask("GET", f"{path}/telephony") == (404, "not_found")
        assert await ask("GET", path) == (404, "NOT_FOUND")


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"target": "pigeon"}, "bind_failed"),
    ({"target": "media_stream"}, "bind_failed"),
    ({"target": "media_stream", "stream_url": "http://127.0.0.1/"}, "bind_failed"),
    ({"target": "media_stream", "stream_url": "ws://127.0.0.1/", "sample_rate": 44100}, "bind_failed"),
    ({"target": "webhook"}, "bind_failed"),
    ({"target": "voice_agent", "agent_id": NOBODY, "workspace_id": NOBODY}, "bind_failed"),
    ({"target": "forward", "forward_to": "+1900"}, "bind_failed"),
    ({"target": "forward", "colour": "red"}, "validation"),
    ({}, "validation"),
]


async def test_bindings_that_are_rejected_change_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        _, (number, *_) = await customer.ask("GET", "/phone-numbers")
        path = f"/phone-numbers/{number['id']}"
        before = await customer.ask("GET", f"{path}/telephony")
        for body, code in REJECTED:
            assert await customer.ask("PUT", f"{path}/inbound", {**body, "force": True}) == (400, code), body
        assert await customer.ask("PUT", "/phone-numbers/7/inbound", REJECTED[1][0]) == (400, "validation")
        assert await customer.ask("GET", f"{path}/telephony") == before


async def test_a_suspended_number_neither_calls_nor_is_called(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        bought = await customer.buy()
        number, path = bought["number"], f"/phone-numbers/{bought['phone_number_id']}"
        call = {"from": number, "to": SHORT, "verbs": [{"verb": "hangup"}]}
        await customer.ask("PUT", f"{path}/inbound", {"target": "forward", "forward_to": BUSY})
        storage = customer.server.storage
        assert customer.server.demo is not None
        owned = await storage.numbers.get(customer.server.demo.account_sid, bought["phone_number_id"])

        async def become(status: str) -> None:
            await storage.writer.commit(
                lambda connection: numbers.update(
                    connection, replace(owned, status=status), revisions.next_revision(connection)
                )
            )
            await storage.directory.refresh()

        await become("suspended")
        assert await customer.ask("POST", "/calls", call) == (403, "NUMBER_NOT_OWNED")
        assert await customer.call_in(number) == 404
        # Nor may another number of the account show it on what it forwards.
        demo = customer.server.demo.number
        _, listed = await customer.ask("GET", "/phone-numbers")
        other = next(item["id"] for item in listed if item["number"] == demo)
        shown = {"target": "forward", "forward_to": ECHO, "caller_id": number, "force": True}
        assert await customer.ask("PUT", f"/phone-numbers/{other}/inbound", shown) == (400, "bind_failed")
        _, listed = await customer.ask("GET", "/phone-numbers?status=suspended")
        assert [item["number"] for item in listed] == [number]

        await become("active")
        assert await customer.call_in(number) == 486
        assert (await customer.ask("POST", "/calls", call))[0] == 201
        await customer.calls_over()


async def test_without_a_carrier_of_the_platform_nothing_is_provisioned(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        bought = await customer.buy()
        path = f"/phone-numbers/{bought['phone_number_id']}"
        storage = customer.server.storage
        for carrier in await storage.trunks.platform_carriers():
            await storage.trunks.delete_carrier(None, carrier.carrier_sid)
        target = {"target": "forward", "forward_to": ECHO}
        refused = (503, "not_configured")
        assert await customer.ask("POST", f"{path}/carrier") == refused
        assert await customer.ask("DELETE", f"{path}/carrier") == refused
        assert await customer.ask("PUT", f"{path}/inbound", target) == refused
        assert (await customer.ask("GET", f"{path}/telephony"))[0] == 200


async def test_lists_of_numbers_are_filtered_and_paged(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        assert customer.server.demo is not None
        await customer.server.storage.wallet.top_up(customer.server.demo.account_sid, 1_000_000)
        bought = [await customer.buy("Pune"), await customer.buy("Pune"), await customer.buy("Chennai")]

        async def found(query: str) -> set[str]:
            status, listed = await customer.ask("GET", f"/phone-numbers?{query}")
            assert status == 200
            return {item["number"] for item in listed}

        own = {item["number"] for item in bought}
        assert await found("") == own | {customer.server.demo.number}
        assert await found("region=pune") == {item["number"] for item in bought[:2]}
        assert await found("region=%2B9144") == await found("region=+9144") == {bought[2]["number"]}
        assert await found("number_type=mobile") == set()
        assert await found("status=active&number_type=local") == own | {customer.server.demo.number}
        assert await found("status=released") == set()
        pages = [await found(f"page={page}&per_page=3") for page in (1, 2, 3)]
        assert [len(page) for page in pages] == [3, 1, 0]


async def test_a_purchase_that_is_repeated_with_its_key_is_one(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        _, (listing, *_) = await customer.ask("GET", "/dids/available?region=Pune")
        body = {"live_ref": listing["live_ref"], "months": 2, "acknowledged_total": 359.0}
        key = {"Idempotency-Key": new_id()}
        first = await customer.ask("POST", "/dids/purchase-live", body, **key)
        assert (first[0], first[1]["total_charged"], first[1]["new_wallet_balance"]) == (201, 359.0, 641.0)
        assert await customer.ask("POST", "/dids/purchase-live", body, **key) == first
        other = {**body, "months": 1}
        assert await customer.ask("POST", "/dids/purchase-live", other, **key) == (
            409,
            "IDEMPOTENCY_CONFLICT",
        )
        assert await customer.ask("POST", "/dids/purchase-live", body) == (409, "NUMBER_NOT_OWNED")
        assert customer.server.demo is not None
        assert await customer.server.storage.wallet.balance(customer.server.demo.account_sid) == 64_100


async def test_many_repeats_with_few_keys_buy_one_number_for_each_key(tmp_path: Path) -> None:
    async with desk(tmp_path) as customer:
        _, listings = await customer.ask("GET", "/dids/available?region=Pune&per_page=5")

        async def buy(n: int) -> tuple[int, Any]:
            body = {"live_ref": listings[n % 5]["live_ref"]}
            return await customer.ask(
                "POST", "/dids/purchase-live", body, **{"Idempotency-Key": f"order-{n % 5}"}
            )

        answers = await asyncio.gather(*(buy(n) for n in range(100)))
        bought = {answer["phone_number_id"] for status, answer in answers if status == 201}
        others = {(status, answer) for status, answer in answers if status != 201}
        assert len(bought) == 5 and others <= {(409, "IDEMPOTENCY_CONFLICT")}
        assert customer.server.demo is not None
        sid = customer.server.demo.account_sid
        assert len(await customer.server.storage.numbers.every(sid)) == 6
        assert await customer.server.storage.wallet.balance(sid) == 100_000 - 5 * 17_950
