"""Masked calls over the API of a whole server: its carrier, its database, its webhooks, and its restart."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from callcontrol.models import Binding
from tests.support.customers import add_registered_number
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import look_again, until
from tests.support.webhook_stage import Received, Receiver

PATIENCE_S = 40.0
ECHO, BUSY, RINGS, LEAVES, LISTENS = (f"980000000{digit}" for digit in (1, 3, 4, 8, 9))
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ELSEWHERE = "9876543210"
CALLS, LOGS = "/v1/masking/calls", "/v1/masking/call-logs"
FINAL = {"completed", "failed", "no-answer"}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Town:
    """A server with its sandbox carrier, and a receiver of its masking webhook."""

    server: Server
    receiver: Receiver
    http: aiohttp.ClientSession
    key: str

    @property
    def account_sid(self) -> str:
        assert self.server.demo is not None
        return self.server.demo.account_sid

    async def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        url = self.server.url + path
        async with self.http.request(method, url, json=body, headers=headers) as response:
            answer = await response.json()
            return response.status, answer["data"] if response.status < 400 else answer["error"]["code"]

    async def start(self, party_a: str, party_b: str, **body: Any) -> str:
        status, started = await self.ask("POST", CALLS, {"party_a": party_a, "party_b": party_b, **body})
        assert status == 201, started
        assert (started["status"], started["party_a"], started["party_b"]) == ("initiated", party_a, party_b)
        return str(started["call_sid"])

    async def when(self, call_sid: str, *statuses: str) -> dict[str, Any]:
        """The call once it has one of some statuses."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status, call = await self.ask("GET", f"{CALLS}/{call_sid}")
                assert status == 200
                if call["status"] in statuses:
                    return dict(call)
                await look_again()

    def of_call(self, call_sid: str) -> list[Received]:
        return [got for got in self.receiver.requests if json.loads(got.body)["data"]["id"] == call_sid]

    async def told(self, call_sid: str, statuses: Sequence[str]) -> list[dict[str, Any]]:
        """Return the events of a call, once all have arrived; each is signed and shows its status."""
        await until(lambda: len(self.of_call(call_sid)) >= len(statuses))
        bodies = []
        for number, got in enumerate(self.of_call(call_sid), start=1):
            digest = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
            assert got.headers["X-Service-Signature"] == f"sha256={digest}"
            body = json.loads(got.body)
            assert body["event"] == f"masking.call.{body['data']['status']}" and body["sequence"] == number
            bodies.append(body["data"])
        assert [body["status"] for body in bodies] == list(statuses)
        return bodies


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    folder = tmp_path_factory.mktemp("masking")
    server, receiver = Server(loopback_settings(folder)), Receiver()
    await receiver.start()
    await server.start()
    assert server.demo is not None and server.demo.api_key is not None
    settings = server.storage.masking_settings
    change = {"webhook_url": receiver.url("/masked"), "webhook_secret": SECRET}
    await settings.update(server.demo.account_sid, change)
    async with aiohttp.ClientSession() as http:
        yield Town(server, receiver, http, server.demo.api_key)
    await server.stop()
    await receiver.close()


async def test_a_masked_call_from_the_request_to_the_last_webhook(town: Town) -> None:
    before = await town.server.storage.wallet.wallet(town.account_sid)
    call_sid = await town.start(LISTENS, LEAVES, max_duration_sec=60)
    call = await town.when(call_sid, *FINAL)
    assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING")
    assert [leg["status"] for leg in call["legs"]] == ["completed", "completed"]
    assert call["started_at"] <= call["answered_at"] <= call["ended_at"]
    assert (call["direction"], call["bill_duration_sec"]) == ("click_to_call", 60)
    assert call["duration_sec"] >= 2
    assert (call["caller_number"], call["target_number"]) == (f"+91{LISTENS}", LEAVES)
    told = await town.told(
        call_sid, ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress", "completed"]
    )
    final = {**told[-1], "recording_url": None}
    assert final == {**call, "recording_url": None}
    await until(lambda: town.server.control.active_calls == 0)
    after = await town.server.storage.wallet.wallet(town.account_sid)
    assert before.balance_paise - after.balance_paise == round(call["price"] * 100) > 0
    status, plain = await town.ask("GET", f"/v1/Accounts/{town.account_sid}/Calls/{call_sid}")
    assert (status, plain["recording_status"]) == (200, "completed"), (
        "it is recorded unless that is switched off"
    )


@pytest.mark.parametrize(
    ("party_a", "party_b", "status", "cause", "told"),
    [
        (BUSY, ECHO, "no-answer", "USER_BUSY", ["initiated", "no-answer"]),
        (ECHO, BUSY, "no-answer", "USER_BUSY", ["initiated", "a_ringing", "a_answered", "no-answer"]),
    ],
)
async def test_a_party_is_busy(
    town: Town, party_a: str, party_b: str, status: str, cause: str, told: list[str]
) -> None:
    call_sid = await town.start(party_a, party_b)
    call = await town.when(call_sid, *FINAL)
    assert (call["status"], call["hangup_cause"], call["answered_at"]) == (status, cause, None)
    got = await town.told(call_sid, told)
    assert got[-1]["hangup_cause"] == cause


@pytest.mark.parametrize("parties", [(ECHO, ELSEWHERE), (ELSEWHERE, ECHO)])
async def test_nobody_is_called_when_a_party_has_no_route(town: Town, parties: tuple[str, str]) -> None:
    sandbox = town.server.sandbox
    assert sandbox is not None
    before = len(sandbox.calls), len((await town.ask("GET", LOGS))[1])
    answer = await town.ask("POST", CALLS, {"party_a": parties[0], "party_b": parties[1]})
    assert answer == (400, "validation")
    assert (len(sandbox.calls), len((await town.ask("GET", LOGS))[1])) == before


async def test_it_is_ended_over_the_api_and_only_once(town: Town) -> None:
    call_sid = await town.start(ECHO, RINGS)
    await town.when(call_sid, "b_ringing")
    status, _ = await town.ask("DELETE", f"{CALLS}/{call_sid}")
    assert status == 200
    call = await town.when(call_sid, *FINAL)
    assert (call["status"], [leg["status"] for leg in call["legs"]]) == (
        "no-answer",
        ["completed", "canceled"],
    )
    assert await town.ask("DELETE", f"{CALLS}/{call_sid}") == (409, "call_ended")


async def test_a_call_is_its_accounts_alone_and_no_other_product_is_seen(town: Town) -> None:
    call_sid = await town.start(BUSY, ECHO)
    await town.when(call_sid, *FINAL)
    storage = town.server.storage
    other, _ = await storage.accounts.create("Other", balance_paise=10_000)
    key = await storage.keys.create(other.account_sid, "platform", ["masking.read", "masking.write"])
    for method in ("GET", "DELETE"):
        assert await town.ask(method, f"{CALLS}/{call_sid}", key=key) == (404, "not_found")
    assert await town.ask("POST", CALLS, {"party_a": ECHO, "party_b": BUSY}, key=key) == (
        403,
        "number_not_owned",
    )
    plain = {"from": "+918047000001", "to": f"+91{BUSY}", "verbs": [{"verb": "hangup"}]}
    _, placed = await town.ask("POST", "/v1/calls", plain)
    assert await town.ask("GET", f"{CALLS}/{placed['call_sid']}") == (404, "not_found")
    await until(lambda: town.server.control.active_calls == 0)


async def test_an_enrolled_number_is_shown_rather_than_an_older_one(town: Town) -> None:
    storage, sid = town.server.storage, town.account_sid
    number_id = await add_registered_number(storage, sid, "+918047000077")
    body = {"party_a": BUSY, "party_b": ECHO}
    _, started = await town.ask("POST", CALLS, body)
    assert started["masked_number"] == "+918047000001"
    await storage.numbers.bind(sid, number_id, Binding("masking"), force=False)
    _, started = await town.ask("POST", CALLS, body)
    assert started["masked_number"] == "+918047000077"
    await storage.numbers.unbind(sid, number_id)
    await until(lambda: town.server.control.active_calls == 0)


async def test_a_call_that_a_kill_cut_off_has_its_end_and_its_webhook(town: Town, tmp_path: Path) -> None:
    """A second server starts on the files as they are while the call is up, as after a kill."""
    bridged = await town.start(LISTENS, ECHO)
    await town.when(bridged, "in-progress")
    ringing = await town.start(ECHO, RINGS)
    await town.when(ringing, "b_ringing")
    await town.server.storage.calls.flush()
    await town.told(bridged, ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress"])
    await town.told(ringing, ["initiated", "a_ringing", "a_answered", "b_ringing"])
    for path in town.server.settings.data_dir.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    after = Server(loopback_settings(tmp_path))
    await after.start()
    try:
        for call_sid, status, bill_sec, paise in (
            (bridged, "completed", 60, 120),
            (ringing, "failed", 0, 60),
        ):
            record = await after.storage.calls.get(town.account_sid, call_sid)
            details = record.details or {}
            assert (details["status"], record.hangup_cause) == (status, "CRASH")
            assert (details["bill_duration_sec"], record.price_paise) == (bill_sec, paise)
            await until(partial(is_told_of_the_crash, town, call_sid))
        assert await after.storage.wallet.open_reserves() == []
    finally:
        await after.stop()
        for call_sid in (bridged, ringing):
            await town.ask("DELETE", f"{CALLS}/{call_sid}")
        await until(lambda: town.server.control.active_calls == 0)


def is_told_of_the_crash(town: Town, call_sid: str) -> bool:
    # The first server lives on here, and tells of the end too: the second has sent BYE to the parties.
    told = [json.loads(got.body)["data"] for got in town.of_call(call_sid)]
    return any(data["status"] in FINAL and data["hangup_cause"] == "CRASH" for data in told)
