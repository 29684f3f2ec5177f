"""Missed calls and their subscribers, over a whole server: real calls, real requests to a real receiver."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from standardwebhooks import Webhook

from api.process.server import Server
from callcontrol.accounts.keys import SCOPES
from callcontrol.models import CallStatus
from fixtures.carrier_call import SandboxCall
from fixtures.scripts import Hangup, Pause
from tests.support.customers import add_customer
from tests.support.domain import new_record
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, look_again, until
from tests.support.webhook_stage import Received, Receiver, statuses

NUMBER = "+918047555801"
ECHO, BUSY, SILENT, DECLINES, UNKNOWN = (
    *("+919800000001", "+919800000003", "+919800000004", "+919800000603", "+919811199999"),
)
SECRET = "whsec_" + base64.b64encode(b"twenty-four bytes of key").decode()
SUBSCRIPTIONS = "/v1/webhooks/subscriptions"


@dataclass
class Desk:
    """A customer with one number, and a receiver of what is told of it."""

    server: Server
    http: aiohttp.ClientSession
    receiver: Receiver
    account_sid: str
    key: str
    phone_number_id: str

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status of an answer, and its data or its error."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            if response.status == 204:
                return 204, None
            answer = await response.json()
            return response.status, answer.get("data", answer.get("error"))

    async def subscribe(self, path: str = "/missed", **values: Any) -> str:
        body = {"url": self.receiver.url(path), "event_types": ["call.missed"], **values}
        status, made = await self.ask("POST", SUBSCRIPTIONS, body)
        assert status == 201, made
        return str(made["id"])

    async def bind(self, **binding: Any) -> None:
        path = f"/v1/phone-numbers/{self.phone_number_id}/inbound"
        status, answer = await self.ask("PUT", path, {"force": True, **binding})
        assert status == 200, answer

    async def call_in(self) -> SandboxCall:
        """Call the number from the trunk, until the call is over; who is answered hangs up."""
        assert self.server.sandbox is not None
        call = self.server.sandbox.call(NUMBER, (Pause(0.05), Hangup()))
        async with asyncio.timeout(PATIENCE_S):
            await call.finished()
        return call

    async def give_up(self) -> SandboxCall:
        """Call the number, and hang up as soon as it rings."""
        assert self.server.sandbox is not None
        call = self.server.sandbox.call(NUMBER, (Pause(),))
        async with asyncio.timeout(PATIENCE_S):
            await call.sees(180)
            call.hangup()
            await call.finished()
        return call

    async def hang_up(self) -> SandboxCall:
        """Call the number, and have the API end the call while it rings."""
        assert self.server.sandbox is not None
        call = self.server.sandbox.call(NUMBER, (Pause(),))
        async with asyncio.timeout(PATIENCE_S):
            await call.sees(180)
            _, calls = await self.ask("GET", "/v1/calls?status=ringing")
            sid = calls[0]["call_sid"]
            status, _ = await self.ask("DELETE", f"/v1/Accounts/{self.account_sid}/Calls/{sid}")
            assert status == 200
            await call.finished()
        return call

    async def all_written(self) -> None:
        """Wait until no call is up and the ends of all are in the database."""
        await until(lambda: self.server.control.active_calls == 0)
        await self.server.storage.calls.flush()

    def told(self, path: str = "/missed") -> list[Received]:
        return [got for got in self.receiver.requests if got.path == path]

    async def log(self, subscription_id: str) -> list[dict[str, Any]]:
        status, found = await self.ask("GET", f"{SUBSCRIPTIONS}/{subscription_id}/deliveries")
        assert status == 200
        return list(found)

    async def logged(self, subscription_id: str, status: str) -> dict[str, Any]:
        """The newest delivery, once it has a status."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.log(subscription_id)
                if found and found[0]["status"] == status:
                    return found[0]
                await look_again()


@asynccontextmanager
async def desk(data_dir: Path, receiver: Receiver, *, balance_paise: int = 100_000) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(data_dir, rtp_ports=200))
    await server.start()
    storage = server.storage
    try:
        number = storage.directory.number(NUMBER)
        if number is None:
            customer = await add_customer(storage, NUMBER, balance_paise=balance_paise)
            number = await storage.numbers.get(customer.account_sid, customer.phone_number_id)
        key = await storage.keys.create(number.account_sid, "platform", SCOPES["platform"])
        async with aiohttp.ClientSession() as http:
            yield Desk(server, http, receiver, number.account_sid, key, number.phone_number_id)
    finally:
        await server.stop()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


def is_signed(got: Received) -> bool:
    """Return True if both signatures of a request are made with the subscription's secret."""
    plain = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    Webhook(SECRET).verify(got.body, got.headers)
    return got.headers["X-Service-Signature"] == f"sha256={plain}"


async def test_every_way_a_call_can_be_missed_is_told_with_why(tmp_path: Path, receiver: Receiver) -> None:
    async with desk(tmp_path, receiver) as customer:
        subscription_id = await customer.subscribe(secret=SECRET)
        forward = {"target": "forward", "timeout": 5}
        for binding, call, reason, status in (
            ({**forward, "forward_to": BUSY}, customer.call_in, "busy", "busy"),
            ({**forward, "forward_to": DECLINES}, customer.call_in, "rejected", "busy"),
            ({**forward, "forward_to": UNKNOWN}, customer.call_in, "unreachable", "failed"),
            ({**forward, "forward_to": SILENT}, customer.give_up, "caller_hangup", "no-answer"),
            ({**forward, "forward_to": SILENT}, customer.hang_up, "rejected", "canceled"),
            ({**forward, "forward_to": SILENT}, customer.call_in, "no-answer", "no-answer"),
            ({"target": "missed_call", "timeout": 5}, customer.give_up, "caller_hangup", "no-answer"),
        ):
            before = len(customer.told())
            await customer.bind(**binding)
            far = await call()
            await until(lambda: len(customer.told()) > before)  # noqa: B023 - called within the turn
            got = customer.told()[-1]
            body = json.loads(got.body)
            data = body["data"]
            assert (data["reason"], data["status"]) == (reason, status), (binding, data, far.heard.statuses)
            assert (body["event"], body["id"], got.delivery_id) == (
                "call.missed",
                got.delivery_id,
                body["id"],
            )
            assert (data["from"], data["to"], data["direction"]) == ("+919811100001", NUMBER, "inbound")
            assert data["phone_number_id"] == customer.phone_number_id
            assert is_signed(got)
            _, shown = await customer.ask(
                "GET", f"/v1/Accounts/{customer.account_sid}/Calls/{data['call_sid']}"
            )
            assert (shown["status"], shown["answered_at"]) == (status, None)
            delivery = await customer.logged(subscription_id, "delivered")
            assert (delivery["id"], delivery["call_sid"]) == (body["id"], data["call_sid"])
        rang = [json.loads(got.body)["data"]["ring_duration_sec"] for got in customer.told()]
        assert rang[5] >= 4, "it rang until its time was up"
        await customer.ask("DELETE", f"/v1/phone-numbers/{customer.phone_number_id}/inbound")
        await customer.call_in()
        await until(lambda: len(customer.told()) == 8)
        assert json.loads(customer.told()[-1].body)["data"]["reason"] == "unreachable"
        # An answered call is not missed: once the next missed one is told, it would have been as well.
        await customer.bind(**forward, forward_to=ECHO)
        answered = await customer.call_in()
        assert 200 in answered.heard.statuses
        await customer.bind(**forward, forward_to=BUSY)
        await customer.call_in()
        await until(lambda: len(customer.told()) == 9)
        assert json.loads(customer.told()[-1].body)["data"]["reason"] == "busy"


async def test_a_number_rings_to_be_missed_though_the_wallet_is_empty(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with desk(tmp_path, receiver, balance_paise=0) as customer:
        await customer.subscribe()
        await customer.bind(target="missed_call", timeout=5)
        far = await customer.call_in()
        assert (180 in far.heard.statuses, far.heard.statuses[-1]) == (True, 480)
        await until(lambda: len(customer.told()) == 1)
        data = json.loads(customer.told()[0].body)["data"]
        assert (data["reason"], data["status"]) == ("no-answer", "no-answer")
        assert 4 <= data["ring_duration_sec"] <= 30
        await customer.bind(target="forward", forward_to=ECHO)
        await customer.call_in()
        await until(lambda: len(customer.told()) == 2)
        assert json.loads(customer.told()[1].body)["data"]["reason"] == "rejected"


async def test_a_call_that_a_restart_cut_off_is_told_by_the_next_run(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with desk(tmp_path, receiver) as customer:
        await customer.subscribe()
        record = new_record(customer.account_sid, "inbound", to=NUMBER, status=CallStatus.RINGING)
        await customer.server.storage.calls.insert(record)
    assert customer.told() == []
    async with desk(tmp_path, receiver):
        await until(lambda: len(customer.told()) == 1)
    data = json.loads(customer.told()[0].body)["data"]
    assert (data["call_sid"], data["reason"], data["status"]) == (record.call_sid, "unreachable", "failed")


async def test_a_subscription_is_tried_paused_mended_and_replayed(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers["/broken"] = statuses(500)
    async with desk(tmp_path, receiver) as customer:
        path = f"{SUBSCRIPTIONS}/{await customer.subscribe('/broken', secret='plain secret')}"
        subscription_id = path.rsplit("/", 1)[1]
        status, trial = await customer.ask("POST", f"{path}/test")
        assert (status, trial) == (200, {"success": False, "status_code": 500, "error": "answered 500"})
        got = customer.told("/broken")[0]
        body = json.loads(got.body)
        assert (body["event"], body["data"], body["id"]) == (
            "webhook.test",
            {"message": "test"},
            got.delivery_id,
        )
        signature = hmac.new(b"plain secret", got.body, hashlib.sha256).hexdigest()
        assert got.headers["X-Service-Signature"] == f"sha256={signature}"
        assert await customer.log(subscription_id) == []

        await customer.bind(target="forward", forward_to=BUSY)
        await customer.call_in()
        waiting = await customer.logged(subscription_id, "retrying")
        assert (waiting["attempts"], waiting["response_code"], waiting["error"]) == (1, 500, "answered 500")
        await customer.ask("PATCH", path, {"is_active": False})
        lost = await customer.logged(subscription_id, "failed")
        assert (lost["id"], lost["error"]) == (waiting["id"], "the subscription was paused")
        await customer.call_in()
        await customer.all_written()
        status, error = await customer.ask("POST", f"{path}/deliveries/replay", {"status": "failed"})
        assert (status, "paused" in error) == (409, True)

        await customer.ask("PATCH", path, {"is_active": True, "url": receiver.url("/mended"), "secret": None})
        status, replayed = await customer.ask("POST", f"{path}/deliveries/replay", {"status": "failed"})
        assert (status, replayed) == (200, {"replayed": 1, "truncated": False})
        done = await customer.logged(subscription_id, "delivered")
        assert (done["id"], done["attempts"], done["response_code"]) == (waiting["id"], 1, 204)
        (again,) = customer.told("/mended")
        assert again.delivery_id == waiting["id"]
        assert "X-Service-Signature" not in again.headers, "the secret was taken away"
        status, one = await customer.ask("POST", f"{path}/deliveries/{waiting['id']}/replay")
        assert (status, one) == (200, {"replayed": 1})
        await until(lambda: len(customer.told("/mended")) == 2)

        receiver.answers["/mended"] = statuses(410)
        await customer.call_in()
        await customer.logged(subscription_id, "failed")
        _, (shown,) = await customer.ask("GET", SUBSCRIPTIONS)
        assert shown["is_active"] is False, "a receiver that is gone pauses its subscription"
        assert (await customer.ask("DELETE", path))[0] == 204
        assert (await customer.ask("DELETE", path))[0] == 404


async def test_a_test_of_what_cannot_be_reached_is_answered(tmp_path: Path, receiver: Receiver) -> None:
    async with desk(tmp_path, receiver) as customer:
        dead = Receiver()
        await dead.start()
        url = dead.url()
        await dead.close()
        subscription_id = await customer.subscribe(url=url)
        status, trial = await customer.ask("POST", f"{SUBSCRIPTIONS}/{subscription_id}/test")
        assert (status, trial["success"], trial["status_code"]) == (200, False, 0)
        assert trial["error"]
