"""The voice assistant from its API to the far end of a real call, and back by webhooks."""

from __future__ import annotations

import asyncio
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
from callcontrol.models import Binding, LedgerFilter
from fixtures.carrier import SandboxCarrier
from fixtures.scripts import Hangup, Pause
from tests.support.agent_bot import Bot
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, look_again, time_passes, until
from tests.support.webhook_stage import Receiver

ECHO, BUSY, TONE = "+919800000001", "+919800000003", "+919800000007"
EVENTS = [
    "call.started",
    "call.answered",
    "call.completed",
    "call.transferred",
    "transcript.ready",
    "agent.updated",
    "error.occurred",
]
ENDED = {"completed", "failed", "no-answer", "busy", "voicemail"}


@dataclass
class Office:
    """A server with its sandbox, a receiver of webhooks, and a key of the assistant."""

    server: Server
    sandbox: SandboxCarrier
    receiver: Receiver
    http: aiohttp.ClientSession
    key: str

    async def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> tuple[int, Any]:
        """Ask the assistant, and give the status with the whole answer."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        url = f"{self.server.url}/api/v1{path}"
        async with self.http.request(method, url, json=body, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def data(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Ask for what must succeed."""
        status, answer = await self.ask(method, path, body, key=key)
        assert status < 300, answer
        return answer["data"] if answer is not None else None

    async def ended(self, call_id: str) -> dict[str, Any]:
        """The call once it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                call: dict[str, Any] = await self.data("GET", f"/calls/{call_id}")
                if call["status"] in ENDED:
                    return call
                await look_again()

    def told(self, call_id: str | None = None) -> list[dict[str, Any]]:
        """The bodies of the events of a call, or of none, in the order they came."""
        bodies = [json.loads(got.body) for got in self.receiver.requests if got.path == "/events"]
        return [body for body in bodies if body["data"]["call_id"] == call_id]

    @property
    def account_sid(self) -> str:
        assert self.server.demo is not None
        return self.server.demo.account_sid


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    server = Server(loopback_settings(tmp_path, rtp_ports=200))
    await server.start()
    receiver = Receiver()
    await receiver.start()
    assert server.sandbox is not None and server.demo is not None
    key = await server.storage.keys.create(
        server.demo.account_sid, "assistant", ["assistant", "assistant.keys"]
    )
    async with aiohttp.ClientSession() as http:
        yield Office(server, server.sandbox, receiver, http, key)
        await until(lambda: server.control.active_calls == 0)
        assert await server.storage.wallet.open_reserves() == []
    await receiver.close()
    await server.stop()


@asynccontextmanager
async def talker(*said: tuple[str, str]) -> AsyncIterator[Bot]:
    """An agent that sends a transcript of what was said, and ends the call."""

    async def script(bot: Bot) -> None:
        for role, text in said:
            await bot.send(event="transcript", transcript={"role": role, "text": text})
        await bot.send(event="hangup")
        await bot.until_closed()

    bot = Bot(script)
    async with bot.running():
        yield bot


async def test_an_agent_calls_is_transcribed_told_of_and_counted(office: Office) -> None:
    hook = await office.data(
        "POST", "/webhooks", {"url": office.receiver.url("/events"), "events": EVENTS, "description": "CRM"}
    )
    async with talker(("agent", "Good morning, Asha"), ("user", "Hello")) as bot:
        agent = await office.data("POST", "/agents", {"name": "Asha", "stream_url": bot.url})
        body = {"phone_number": ECHO, "agent_id": agent["id"], "context": {"customer_name": "Asha"}}
        call_id = (await office.data("POST", "/calls/outbound", body))["id"]
        call = await office.ended(call_id)
        # The agent learns the context, whatever else it gets.
        start = next(frame for frame in bot.received if frame["event"] == "start")
        assert "customer_name" in json.dumps(start)
    # The last event tells that the transcript is there.
    await until(lambda: len(office.told(call_id)) == 4)
    call = await office.ended(call_id)
    assert (call["status"], call["sandbox"], call["cost"]) == ("completed", True, 0)
    said = [(item["role"], item["text"]) for item in call["transcript"]]
    assert said == [("agent", "Good morning, Asha"), ("user", "Hello")]
    transcript = await office.data("GET", f"/calls/{call_id}/transcript")
    assert [(item["role"], item["text"]) for item in transcript["segments"]] == said
    told = office.told(call_id)
    names = ["call.started", "call.answered", "call.completed", "transcript.ready"]
    assert [body["event"] for body in told] == names
    assert [body["data"]["status"] for body in told[:2]] == ["queued", "in-progress"]
    assert told[-1]["data"]["transcript_url"] == f"{office.server.url}/api/v1/calls/{call_id}/transcript"
    assert {body["data"]["agent_id"] for body in told} == {agent["id"]}
    assert len({body["id"] for body in told}) == 4
    for got in office.receiver.requests:
        Webhook(hook["secret"]).verify(got.body, got.headers)
    figures = await office.data("GET", "/analytics?environment=sandbox")
    assert (figures["total_calls"], figures["completed_calls"], figures["success_rate"]) == (1, 1, 1.0)
    assert (await office.data("GET", "/analytics"))["total_calls"] == 0, "sandbox calls are no live ones"
    entries = await office.server.storage.wallet.ledger(office.account_sid, 1, 100, LedgerFilter())
    assert [entry.call_sid for entry in entries.items if entry.call_sid] == [], "nothing was charged"


async def test_failures_are_told_with_their_reason(office: Office) -> None:
    await office.data("POST", "/webhooks", {"url": office.receiver.url("/events"), "events": EVENTS})
    agent = await office.data("POST", "/agents", {"name": "Gone", "stream_url": "ws://127.0.0.1:9/nobody"})
    body = {"phone_number": ECHO, "agent_id": agent["id"]}
    call_id = (await office.data("POST", "/calls/outbound", body))["id"]
    call = await office.ended(call_id)
    assert call["error"]["code"] == "AGENT_UNREACHABLE", call
    await until(lambda: [body["event"] for body in office.told(call_id)][-1:] == ["call.completed"])
    names = [body["event"] for body in office.told(call_id)]
    assert names[0] == "call.started"
    assert names.count("error.occurred") == 1 and "transcript.ready" not in names
    await office.data("PATCH", f"/agents/{agent['id']}", {"voice": "calm"})
    await until(lambda: bool(office.told(None)))
    (updated,) = office.told(None)
    assert (updated["event"], updated["data"]["changed_fields"]) == ("agent.updated", ["voice"])


async def test_a_call_that_nobody_answers_is_told_of_from_its_beginning(office: Office) -> None:
    hook = {"url": office.receiver.url("/events"), "events": ["call.started", "call.completed"]}
    await office.data("POST", "/webhooks", hook)
    agent = await office.data("POST", "/agents", {"name": "Gone", "stream_url": "ws://127.0.0.1:9/nobody"})
    body = {"phone_number": BUSY, "agent_id": agent["id"]}
    call_id = (await office.data("POST", "/calls/outbound", body))["id"]
    assert (await office.ended(call_id))["status"] == "busy"
    await until(lambda: len(office.told(call_id)) == 2)
    assert [(body["event"], body["data"]["status"]) for body in office.told(call_id)] == [
        ("call.started", "queued"),
        ("call.completed", "busy"),
    ]


async def test_calls_that_come_in_to_an_agent_are_the_assistants_and_are_paid_for(office: Office) -> None:
    await office.data("POST", "/webhooks", {"url": office.receiver.url("/events"), "events": EVENTS})
    async with talker(("agent", "Welcome")) as bot:
        agent = await office.data("POST", "/agents", {"name": "Asha", "stream_url": bot.url})
        assert office.server.demo is not None
        number = office.server.demo.number
        storage = office.server.storage
        (found,) = await storage.numbers.every(office.account_sid)
        workspace = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
        binding = Binding("voice_agent", agent_id=agent["id"], workspace_id=workspace)
        await storage.numbers.bind(office.account_sid, found.phone_number_id, binding, force=True)
        await asyncio.wait_for(office.sandbox.place_call(number, (Pause(3.0), Hangup())), PATIENCE_S)
    (call,) = await office.data("GET", f"/calls?agent_id={agent['id']}")
    call = await office.ended(call["id"])
    assert (call["direction"], call["sandbox"], call["to"]) == ("inbound", False, number)
    assert call["cost"] > 0
    await until(lambda: len(office.told(call["id"])) == 4)
    told = [body["event"] for body in office.told(call["id"])]
    assert told == ["call.started", "call.answered", "call.completed", "transcript.ready"]
    assert (await office.data("GET", "/analytics"))["completed_calls"] == 1


async def test_a_sandbox_key_reaches_test_numbers_and_sandbox_calls_alone(office: Office) -> None:
    made = await office.data("POST", "/keys", {"name": "CI", "environment": "sandbox"})
    key = made["key"]
    agent = await office.data("POST", "/agents", {"name": "Asha", "stream_url": "ws://127.0.0.1:9/nobody"})
    body = {"phone_number": "+919876543210", "agent_id": agent["id"]}
    status, answer = await office.ask("POST", "/calls/outbound", body, key=key)
    assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")
    status, _ = await office.ask("POST", "/keys", {"name": "more"}, key=key)
    assert status == 403, "it does not manage keys"
    body = {"phone_number": BUSY, "agent_id": agent["id"]}
    call_id = (await office.data("POST", "/calls/outbound", body, key=key))["id"]
    await office.ended(call_id)
    assert [item["id"] for item in await office.data("GET", "/calls", key=key)] == [call_id]
    status, answer = await office.ask("GET", "/calls?environment=live", key=key)
    assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")


async def test_a_key_that_only_manages_keys_makes_none_that_opens_more(office: Office) -> None:
    made = await office.data("POST", "/keys", {"name": "keeper", "scopes": ["assistant.keys"]})
    for body in ({"name": "implicit"}, {"name": "explicit", "scopes": ["assistant"]}):
        status, answer = await office.ask("POST", "/keys", body, key=made["key"])
        assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")
    body = {"name": "another keeper", "scopes": ["assistant.keys"]}
    status, _ = await office.ask("POST", "/keys", body, key=made["key"])
    assert status == 201


async def test_two_keys_are_valid_while_one_follows_the_other_and_no_request_fails(office: Office) -> None:
    limits = {"assistant_requests_per_minute": 10_000}
    await office.server.storage.accounts.update(office.account_sid, limits)
    first = await office.data("POST", "/keys", {"name": "production"})
    current, statuses, done = first["key"], [], asyncio.Event()

    async def client() -> None:
        while not done.is_set():
            status, _ = await office.ask("GET", "/agents", key=current)
            statuses.append(status)
            await asyncio.sleep(0)

    clients = [asyncio.create_task(client()) for _ in range(4)]
    rotated = await office.data("POST", f"/keys/{first['id']}/rotate", {"overlap_seconds": 600})
    await until(lambda: len(statuses) > 40)
    # Both open the assistant; then the clients change over, and the old one is revoked.
    assert (await office.ask("GET", "/agents", key=first["key"]))[0] == 200
    current = rotated["key"]
    seen = len(statuses)
    await until(lambda: len(statuses) > seen + 40)
    await office.data("DELETE", f"/keys/{first['id']}")
    seen = len(statuses)
    await until(lambda: len(statuses) > seen + 40)
    done.set()
    await asyncio.gather(*clients)
    assert set(statuses) == {200}
    assert (await office.ask("GET", "/agents", key=first["key"]))[0] == 401


async def test_all_keys_of_an_organisation_share_its_limit(office: Office) -> None:
    other = (await office.data("POST", "/keys", {"name": "another"}))["key"]
    await office.server.storage.accounts.update(office.account_sid, {"assistant_requests_per_minute": 5})
    await time_passes(1.1)  # for so long a key may be known from before
    answers = []
    for key in (office.key, other) * 4:
        answers.append(await office.ask("GET", "/agents", key=key))
    assert 429 in [status for status, _ in answers]
    refused = next(answer for status, answer in answers if status == 429)
    assert refused["error"]["code"] == "RATE_LIMITED"


async def test_an_agent_without_a_server_calls_and_its_words_are_kept(office: Office) -> None:
    agent = await office.data("POST", "/agents", {"name": "Asha", "greeting": "Good morning."})
    body = {"phone_number": TONE, "agent_id": agent["id"], "time_limit": 20}
    call_id = (await office.data("POST", "/calls/outbound", body))["id"]
    async with asyncio.timeout(PATIENCE_S):
        while True:
            call = await office.data("GET", f"/calls/{call_id}")
            if call["transcript"] or call["status"] in ENDED:
                break
            await look_again()
    if call["status"] not in ENDED:
        await office.ask("DELETE", f"/calls/{call_id}")
    call = await office.ended(call_id)
    assert (call["status"], call["error"]) == ("completed", None)
    assert call["transcript"][0]["role"] == "agent"
    assert call["transcript"][0]["text"].startswith("Good morning"), call["transcript"]
    await office.data("DELETE", f"/calls/{call_id}/transcript")
    assert (await office.data("GET", f"/calls/{call_id}/transcript"))["segments"] == []
