"""Calls that come in by SIP and are streamed to agents of every dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.models import CallStatus
from media.audio import tone
from media.streams import DIALECTS, WEBSOCKET_DIALECTS
from sip import Answered, Ended
from tests.support.dialect_agent import (
    CLEARS,
    DECODERS,
    ENCODERS,
    LASTS,
    MARKS,
    NO_LAST,
    QUIET_MARKS,
    DialectAgent,
)
from tests.support.domain import CALLEE, OWN_NUMBER
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.world import World, running

EVERY_DIALECT = pytest.mark.parametrize("name", sorted(WEBSOCKET_DIALECTS))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


def key_pressed(frame: dict[str, Any]) -> str | None:
    """The key that a frame tells of, in whatever words."""
    if frame.get("event") not in ("dtmf", "websocket:dtmf", "DTMF_END"):
        return None
    digit = frame.get("digit", frame.get("dtmf"))
    return str(digit["digit"]) if isinstance(digit, dict) else str(digit)


@EVERY_DIALECT
async def test_a_call_is_heard_both_ways_and_keys_get_through(world: World, name: str) -> None:
    encoding, rate = DIALECTS[name].formats[0]
    async with DialectAgent(name, echo=True).running() as agent:
        world.stream(agent.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        a.open().send_dtmf("5")
        assert await eventually(lambda: any(key_pressed(frame) == "5" for frame in agent.frames))
        a.hang_up()
        record = await world.ended()
        await asyncio.wait_for(agent.closed.wait(), PATIENCE_S)
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "caller")
    heard = DECODERS[encoding](bytes(agent.heard))
    assert tone_level_dbfs(heard[-rate:], 440.0, rate) > -20.0
    assert record.call_sid in json.dumps(
        agent.frames[0 if agent.frames[0].get("event") != "connected" else 1]
    )
    assert name in NO_LAST or agent.frames[-1]["event"] == LASTS[name]
    assert agent.close_code == 1000


@EVERY_DIALECT
async def test_an_interruption_takes_back_what_was_said(world: World, name: str) -> None:
    encoding, rate = DIALECTS[name].formats[0]
    mark, reached = MARKS[name]
    clear, cleared = CLEARS[name]
    async with DialectAgent(name).running() as agent:
        world.stream(agent.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await agent.say(ENCODERS[encoding](tone(1000, 200, sample_rate=rate)))
        await agent.send(mark)
        assert await eventually(lambda: len(agent.told(reached)) == 1), "a mark that was played"
        await agent.say(ENCODERS[encoding](tone(1000, 20_000, sample_rate=rate)))
        await agent.send(mark)
        await a.hears(1000.0)
        await agent.send(clear)
        await a.hears_silence()
        if cleared is not None:
            assert await eventually(lambda: bool(agent.told(cleared)))
        answers = 1 if name in QUIET_MARKS else 2
        assert await eventually(lambda: len(agent.told(reached)) == answers)
        await agent.say(ENCODERS[encoding](tone(440, 20_000, sample_rate=rate)))
        await a.hears(440.0)
        a.hang_up()
        await world.ended()


@EVERY_DIALECT
async def test_a_transferred_caller_stays_when_the_agent_closes(world: World, name: str) -> None:
    def ring(call: PhoneCall) -> None:
        call.ring()

    world.phone.on_call = ring
    async with DialectAgent(name).running() as agent:
        world.stream(agent.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await agent.send(json.dumps({"event": "transfer", "transfer": {"to": CALLEE, "timeout": 20}}))
        b = await world.phone.next_call(2)
        b.answer()
        await asyncio.wait_for(agent.closed.wait(), PATIENCE_S)
        statuses = [frame["transfer"]["status"] for frame in agent.told({"event": "transfer"})]
        assert statuses == ["ringing", "answered"]
        if name not in NO_LAST:
            assert agent.frames[-1]["event"] == LASTS[name]
            assert "transferred" in json.dumps(agent.frames[-1])
        a.speak(440.0)
        b.speak(1000.0)
        await b.hears(440.0)
        await a.hears(1000.0)
        b.hang_up()
        await a.wait(Ended)
        record = await world.ended()
    assert record.hangup_source == "callee"


@EVERY_DIALECT
async def test_an_agent_that_closes_is_heard_to_its_end(world: World, name: str) -> None:
    encoding, rate = DIALECTS[name].formats[0]
    async with DialectAgent(name).running() as agent:
        world.stream(agent.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await agent.say(ENCODERS[encoding](tone(1000, 600, sample_rate=rate)))
        await agent.close()
        await a.hears(1000.0)
        await a.wait(Ended)
        record = await world.ended()
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "stream")
