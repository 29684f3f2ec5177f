"""Masked calls of a whole server, as its API tells of them: logs, statistics, money and webhooks."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.server import Server
from callcontrol.masking.calls import ENDED
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import look_again, time_passes, until
from tests.support.webhook_stage import Receiver

ECHO, SAYS, BUSY, RINGS, LISTENS = (f"980000000{digit}" for digit in (1, 2, 3, 4, 9))
SECRET = "a secret of the masking webhook"
PATIENCE_S = 40.0
OPENING_RUPEES = 1000.0


@dataclass
class Desk:
    """A customer of a server, with a receiver of masking webhooks."""

    server: Server
    receiver: Receiver
    http: aiohttp.ClientSession

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        return (await self.answer(method, path, body))["data"]

    async def answer(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        assert self.server.demo is not None
        headers = {"Authorization": f"Bearer {self.server.demo.api_key}"}
        url = f"{self.server.url}/v1/masking{path}"
        async with self.http.request(method, url, json=body, headers=headers) as response:
            found: dict[str, Any] = await response.json()
            assert response.status < 300, found
            return found

    async def call(self, party_a: str, party_b: str) -> str:
        placed = await self.api("POST", "/calls", {"party_a": party_a, "party_b": party_b})
        # Lists are in order of time, to the millisecond.
        await time_passes(0.001)
        return str(placed["call_sid"])

    async def when(self, call_sid: str, *statuses: str) -> dict[str, Any]:
        """The call once it has one of the statuses; asked beside the API, whose limit is soon reached."""
        assert self.server.demo is not None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                record = await self.server.storage.calls.get(self.server.demo.account_sid, call_sid)
                if (record.details or {}).get("status") in statuses:
                    call: dict[str, Any] = await self.api("GET", f"/calls/{call_sid}")
                    return call
                await look_again()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    server, receiver = Server(loopback_settings(tmp_path)), Receiver()
    await server.start()
    await receiver.start()
    async with aiohttp.ClientSession() as http:
        yield Desk(server, receiver, http)
    await server.stop()
    await receiver.close()


async def test_the_test_event_is_signed_as_events_are(desk: Desk) -> None:
    assert desk.server.demo is not None
    account = desk.server.storage.directory.account(desk.server.demo.account_sid)
    assert account is not None
    for secret in (None, SECRET):
        await desk.api("PATCH", "/settings", {"webhook_url": desk.receiver.url(), "webhook_secret": secret})
        tested = await desk.api("POST", "/settings/webhook/test", {})
        assert tested == {"success": True, "status_code": 204, "error": ""}
        got = desk.receiver.requests[-1]
        assert json.loads(got.body)["event"] == "webhook.test"
        assert got.headers["X-Service-Signature"] == signature(secret or account.webhook_secret, got.body)


async def test_what_was_called_is_listed_added_up_paid_and_told(desk: Desk) -> None:
    webhook = {"webhook_url": desk.receiver.url("/masking"), "webhook_secret": SECRET, "record_calls": False}
    await desk.api("PATCH", "/settings", webhook)
    pairs = [(ECHO, LISTENS), (RINGS, ECHO), (BUSY, ECHO), (ECHO, BUSY)]
    joined, alone, busy, refused = [await desk.call(*pair) for pair in pairs]
    await desk.when(joined, "in-progress")
    await desk.when(alone, "a_ringing")
    live = await desk.answer("GET", "/call-logs?status=in-progress")
    assert [call["id"] for call in live["data"]] == [joined]
    assert (await desk.api("GET", "/stats"))["answered_calls"] == 1  # while it is up
    for call_sid in (joined, alone):
        await desk.api("DELETE", f"/calls/{call_sid}")
    calls = {sid: await desk.when(sid, *ENDED) for sid in (joined, alone, busy, refused)}

    assert [calls[sid]["status"] for sid in calls] == ["completed", "no-answer", "no-answer", "no-answer"]
    listed = await desk.answer("GET", "/call-logs")
    assert listed["data"] == list(calls.values())[::-1] and listed["meta"]["total"] == 4
    for query, expected in (
        ("status=no-answer", {alone, busy, refused}),
        (f"party={BUSY}", {busy, refused}),
        (f"party={LISTENS}&status=completed", {joined}),
        ("direction=inbound", set()),
        (f"end_date={calls[joined]['started_at'][:10]}T00:00:00Z", set()),
    ):
        found = await desk.answer("GET", f"/call-logs?{query}")
        assert {call["id"] for call in found["data"]} == expected, query
        assert found["meta"]["total"] == len(expected)

    stats = await desk.api("GET", "/stats")
    counted = ("total_calls", "answered_calls", "failed_calls", "no_answer_calls", "in_progress_calls")
    assert [stats[name] for name in counted] == [4, 1, 0, 3, 0]
    assert stats["total_minutes"] == calls[joined]["bill_duration_sec"] / 60 == 1.0
    assert stats["total_cost"] == round(sum(call["price"] for call in calls.values()), 2)
    billing = await desk.api("GET", "/billing")
    assert billing["wallet_balance"] == round(OPENING_RUPEES - stats["total_cost"], 2) < OPENING_RUPEES

    told = {"masking.call.completed": 1, "masking.call.no-answer": 3}
    await until(lambda: all(sum(name == event for name, _ in events(desk)) == n for event, n in told.items()))
    of_joined = [name.rpartition(".")[2] for name, call_sid in events(desk) if call_sid == joined]
    assert of_joined == ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress", "completed"]
    for got in desk.receiver.requests:
        assert got.headers["X-Service-Signature"] == signature(SECRET, got.body)


def signature(secret: str, body: bytes) -> str:
    """The signature of the specification's rule 3."""
    return f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"


def events(desk: Desk) -> list[tuple[str, str]]:
    """Return the received events, with their calls."""
    bodies = [json.loads(got.body) for got in desk.receiver.requests]
    return [(body["event"], body["data"]["id"]) for body in bodies]
