"""Whole calls between the sandbox carrier, the server and an agent: what was said is heard at the far end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import best_match, find_tone, read_stereo, samples_of
from fixtures.carrier import PROMPTS_DIRECTORY, SandboxCarrier
from fixtures.carrier_call import SandboxCall
from fixtures.scripts import Hangup, Pause, PlayTone, SendDigits
from media.audio import PromptLibrary, tone
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import look_again, until

PATIENCE_S = 40.0
ECHO, SPEECH, BUSY, DIGITS, TONE, SHORT = (f"+91980000000{n}" for n in (1, 2, 3, 6, 7, 8))
AGENT_TONE_HZ = 700.0
CALLER_TONE_HZ = 440.0
ENDED = {"completed", "busy", "no-answer", "failed", "canceled"}


@dataclass
class Town:
    """A server with its sandbox carrier, an agent, and a client of the API."""

    server: Server
    sandbox: SandboxCarrier
    agent: DemoAgent
    http: aiohttp.ClientSession

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        account = self.server.demo
        assert account is not None
        headers = {"Authorization": f"Bearer {account.api_key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
            assert response.status < 300, answer
            return answer["data"]

    @property
    def number(self) -> str:
        assert self.server.demo is not None
        return self.server.demo.number

    async def bind(self, **binding: Any) -> None:
        """Bind the demo account's number."""
        numbers = await self.api("GET", "/v1/phone-numbers")
        number_id = next(number["id"] for number in numbers if number["number"] == self.number)
        await self.api("PUT", f"/v1/phone-numbers/{number_id}/inbound", {**binding, "force": True})

    async def place(self, to: str, **body: Any) -> str:
        call = await self.api("POST", "/v1/calls", {"from": self.number, "to": to, **body})
        return str(call["call_sid"])

    async def ended(self, call_sid: str | None = None) -> dict[str, Any]:
        """The call, or the latest one, once it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                calls = await self.api("GET", "/v1/calls")
                call: dict[str, Any] = next(c for c in calls if call_sid in (None, c["call_sid"]))
                if call["status"] in ENDED:
                    return call
                await look_again()


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    settings = loopback_settings(tmp_path, rtp_ports=400)
    server, agent = Server(settings), DemoAgent(tone(AGENT_TONE_HZ, 1000))
    await server.start()
    await agent.start()
    assert server.sandbox is not None
    server.sandbox.record_directory = tmp_path
    async with aiohttp.ClientSession() as http:
        yield Town(server, server.sandbox, agent, http)
        await until(lambda: server.control.active_calls == 0)
        assert server.control.engine.stats().ports_in_use == 0
        assert await server.storage.wallet.open_reserves() == []
    await agent.stop()
    await server.stop()
    assert server.sandbox.active == 0


def recorded(call: SandboxCall) -> Path:
    assert call.heard.recording is not None
    return call.heard.recording


def assert_heard_tone(path: Path, frequency_hz: float) -> None:
    """The far end received the tone."""
    received, _, rate = read_stereo(path)
    found = find_tone(received, rate)
    assert found.frequency_hz == pytest.approx(frequency_hz, abs=3)
    assert found.share > 0.8


async def test_a_call_from_the_trunk_is_streamed_to_the_agent_and_back(town: Town) -> None:
    await town.bind(target="media_stream", stream_url=town.agent.url)
    script = (Pause(1.5), PlayTone(CALLER_TONE_HZ, 1.5), Pause(0.3), SendDigits("5"), Pause(0.5), Hangup())
    call = await asyncio.wait_for(town.sandbox.place_call(town.number, script), PATIENCE_S)
    assert_heard_tone(recorded(call), AGENT_TONE_HZ)
    session = await town.agent.session()
    await asyncio.wait_for(session.closed.wait(), PATIENCE_S)
    found = find_tone(samples_of(bytes(session.heard)), session.sample_rate_hz)
    assert found.frequency_hz == pytest.approx(CALLER_TONE_HZ, abs=3) and found.share > 0.8
    assert (session.digits, session.problems, session.close_code) == ("5", [], 1000)
    assert session.stop is not None and session.stop["reason"] == "callended"
    record = await town.ended()
    assert (record["direction"], record["status"], record["hangup_source"]) == (
        "inbound",
        "completed",
        "caller",
    )


async def test_sixteen_kilohertz_streams_carry_the_same_sound(town: Town) -> None:
    town.agent.greeting = b""
    call_sid = await town.place(TONE, stream_url=town.agent.url, sample_rate=16000)
    session = await asyncio.wait_for(town.agent.session(), PATIENCE_S)
    await asyncio.wait_for(session.hears(2 * 32_000), PATIENCE_S)
    await session.hang_up()
    assert session.sample_rate_hz == 16000
    found = find_tone(samples_of(bytes(session.heard)), 16000)
    assert found.frequency_hz == pytest.approx(1000, abs=3) and found.share > 0.8
    assert (await town.ended(call_sid))["hangup_source"] == "stream"


async def test_a_call_from_the_trunk_is_bridged_to_a_second_leg(town: Town) -> None:
    await town.bind(target="forward", forward_to=TONE)
    script = (Pause(0.5), SendDigits("42#"), Pause(1.5), Hangup())
    call = await asyncio.wait_for(town.sandbox.place_call(town.number, script), PATIENCE_S)
    assert_heard_tone(recorded(call), 1000.0)
    far = next(c for c in town.sandbox.calls if c.number == TONE)
    await asyncio.wait_for(far.finished(), PATIENCE_S)
    assert far.heard.digits == "42#"
    assert (await town.ended())["status"] == "completed"


async def test_a_prompt_is_played_and_the_keys_pressed_are_sent(town: Town) -> None:
    verbs = [
        {"verb": "play", "url": "prompt:en/welcome"},
        {"verb": "send_digits", "digits": "12#"},
        {"verb": "hangup"},
    ]
    call = await town.ended(await town.place(SPEECH, verbs=verbs))
    assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING")
    [far] = town.sandbox.calls
    await asyncio.wait_for(far.finished(), PATIENCE_S)
    received, _, rate = read_stereo(recorded(far))
    prompt = samples_of(PromptLibrary(PROMPTS_DIRECTORY).get("en/welcome"))
    assert best_match(prompt, received, rate).correlation > 0.9
    assert far.heard.digits == "12#"


async def test_the_agent_hears_the_keys_the_callee_presses(town: Town) -> None:
    call_sid = await town.place(DIGITS, stream_url=town.agent.url)
    session = await asyncio.wait_for(town.agent.session(), PATIENCE_S)
    await asyncio.wait_for(session.sees("123#"), PATIENCE_S)
    await session.hang_up()
    await town.ended(call_sid)


async def test_the_callee_hangs_up(town: Town) -> None:
    call = await town.ended(await town.place(SHORT, stream_url=town.agent.url))
    assert (call["status"], call["hangup_source"]) == ("completed", "callee")
    session = await town.agent.session()
    await asyncio.wait_for(session.closed.wait(), PATIENCE_S)
    assert session.stop is not None and session.stop["detail"] == "callee_hangup"


async def test_an_agent_that_nobody_runs_ends_the_call_before_it_is_answered(town: Town) -> None:
    await town.agent.stop()
    await town.bind(target="media_stream", stream_url=town.agent.url)
    call = await asyncio.wait_for(town.sandbox.place_call(town.number, "listen"), PATIENCE_S)
    assert 200 not in call.heard.statuses and call.heard.statuses[-1] == 480
    assert (await town.ended())["status"] == "failed"


async def test_an_agent_that_drops_its_socket_ends_the_call(town: Town) -> None:
    call_sid = await town.place(ECHO, stream_url=town.agent.url)
    session = await asyncio.wait_for(town.agent.session(), PATIENCE_S)
    await asyncio.wait_for(session.greeted.wait(), PATIENCE_S)
    await session.socket.close(code=1011)
    call = await town.ended(call_sid)
    assert call["hangup_cause"] == "STREAM_DISCONNECTED"
    [far] = town.sandbox.calls
    await asyncio.wait_for(far.finished(), PATIENCE_S)
    assert far.heard.ended_by == "remote"


async def test_a_busy_second_leg_leaves_the_first_one_busy(town: Town) -> None:
    await town.bind(target="forward", forward_to=BUSY)
    call = await asyncio.wait_for(town.sandbox.place_call(town.number, "listen"), PATIENCE_S)
    assert call.heard.statuses[-1] == 486
    assert (await town.ended())["status"] == "busy"
