"""Calls of the sandbox that agents and a customer's server control, from the API to the far end's ear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from fixtures.agent import DemoAgent
from fixtures.scripts import Hangup, Pause
from media.audio import tone
from tests.integration.test_sandbox_calls import (
    AGENT_TONE_HZ,
    ECHO,
    PATIENCE_S,
    Town,
    assert_heard_tone,
    recorded,
    town,
)
from tests.support.waiting import until
from tests.support.webhook_stage import Receiver

__all__ = ["town"]

WORKSPACE = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
OTHER_TONE_HZ = 1300.0


@pytest.fixture
async def shop() -> AsyncIterator[Receiver]:
    server = Receiver()
    await server.start()
    yield server
    await server.close()


async def ask_assistant(town: Town, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Ask the voice assistant's endpoints, with a key of that service."""
    account = town.server.demo
    assert account is not None
    key = await town.server.storage.keys.create(account.account_sid, "assistant")
    headers = {"Authorization": f"Bearer {key}"}
    async with town.http.request(method, town.server.url + path, json=body, headers=headers) as response:
        return response.status, await response.json(content_type=None)


async def call_in(town: Town, talk_s: float = 1.5) -> Any:
    return await asyncio.wait_for(town.sandbox.place_call(town.number, (Pause(talk_s), Hangup())), PATIENCE_S)


async def test_the_calls_of_a_number_go_to_its_agent_wherever_that_is(town: Town) -> None:
    status, answer = await ask_assistant(
        town, "POST", "/api/v1/agents", {"name": "Asha", "stream_url": town.agent.url}
    )
    assert status == 201
    agent_id = answer["data"]["id"]
    await town.bind(target="voice_agent", agent_id=agent_id, workspace_id=WORKSPACE)
    assert_heard_tone(recorded(await call_in(town)), AGENT_TONE_HZ)
    second = DemoAgent(tone(OTHER_TONE_HZ, 1000))
    await second.start()
    try:
        change = {"stream_url": second.url}
        status, _ = await ask_assistant(town, "PATCH", f"/api/v1/agents/{agent_id}", change)
        assert status == 200
        # The very next call goes by it, in and out.
        assert_heard_tone(recorded(await call_in(town)), OTHER_TONE_HZ)
        call_sid = await town.place(ECHO, agent_id=agent_id, time_limit=2)
        assert (await town.ended(call_sid))["stream"]["stream_url"] == second.url
    finally:
        await second.stop()
    status, answer = await ask_assistant(town, "DELETE", f"/api/v1/agents/{agent_id}")
    assert (status, answer["error"]["details"]) == (409, {"numbers": 1})


async def test_a_customers_server_controls_calls_and_hears_of_them(town: Town, shop: Receiver) -> None:
    stream = {"verb": "stream", "url": town.agent.url}
    shop.answers["/calls"] = lambda _: web.json_response([{"verb": "answer"}, stream])
    await town.bind(
        target="webhook", webhook_url=shop.url("/calls"), status_webhook_url=shop.url("/status"), timeout=10
    )
    assert_heard_tone(recorded(await call_in(town)), AGENT_TONE_HZ)
    await until(lambda: len([got for got in shop.requests if got.path == "/status"]) >= 6)
    told = [json.loads(got.body) for got in shop.requests if got.path == "/status"]
    assert [body["sequence"] for body in told] == list(range(1, len(told) + 1))
    assert [body["event"] for body in told] == [
        "call.initiated",
        "call.ringing",
        "call.answered",
        "stream.started",
        "stream.stopped",
        "call.completed",
    ]
    (asked,) = [json.loads(got.body) for got in shop.requests if got.path == "/calls"]
    assert (asked["event"], asked["data"]["from"]) == ("call.incoming", told[0]["data"]["from"])


async def test_a_placed_call_goes_where_a_server_sends_it(town: Town, shop: Receiver) -> None:
    shop.answers["/answered"] = lambda _: web.json_response([{"verb": "pause", "length": 60}])
    shop.answers["/next"] = lambda _: web.json_response({"action": "stream", "stream_url": town.agent.url})
    call_sid = await town.place(ECHO, webhook_url=shop.url("/answered"))
    await until(lambda: any(got.path == "/answered" for got in shop.requests))
    account = town.server.demo
    assert account is not None
    path = f"/v1/Accounts/{account.account_sid}/Calls/{call_sid}"
    await town.api("POST", path, {"webhook_url": shop.url("/next"), "webhook_method": "GET"})
    await town.agent.session()
    (moved,) = [got for got in shop.requests if got.path == "/next"]
    assert (moved.method, moved.query["event"]) == ("GET", "call.redirected")
    await town.api("DELETE", path)
    assert (await town.ended(call_sid))["status"] == "completed"
