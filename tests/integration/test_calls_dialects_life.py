"""Whole calls in every dialect: heard to the end, transferred and left, connected anew, ended in order."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType

from callcontrol.models import CallStatus
from media.streams import WEBSOCKET_DIALECTS
from sip import Answered, Ended
from tests.support.agent_bot import Bot
from tests.support.domain import CALLEE, OWN_NUMBER
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

PROTOCOLS = sorted(WEBSOCKET_DIALECTS)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


class Listener:
    """Takes every frame of a socket, whatever kind it is of."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self.texts: list[str] = []
        self.binaries = 0

    async def until(self, text: str | None = None) -> None:
        """Read until a text frame holds ``text``, or until the socket is closed."""
        async with asyncio.timeout(40):
            while True:
                message = await self.bot.socket.receive()
                if message.type is WSMsgType.TEXT:
                    self.texts.append(message.data)
                    if text is not None and text in message.data:
                        return
                elif message.type is WSMsgType.BINARY:
                    self.binaries += 1
                else:
                    self.bot.close_code = self.bot.socket.close_code
                    self.bot.closed.set()
                    assert text is None, f"closed before {text}: {self.texts[-3:]}"
                    return


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_transfer_takes_the_caller_over_and_the_close_that_follows_does_not_end_the_call(
    world: World, protocol: str
) -> None:
    seen: list[Listener] = []

    async def script(bot: Bot) -> None:
        listener = Listener(bot)
        seen.append(listener)
        await bot.send(event="transfer", transfer={"to": CALLEE})
        await listener.until("ringing")
        await listener.until("answered")
        await listener.until()

    world.phone.on_call = lambda call: call.ring()
    async with Bot(script, opening_frames=0).running() as bot:
        world.stream(bot.url, stream_protocol=protocol)
        a = world.phone.call(OWN_NUMBER, world.port)
        b = await world.phone.next_call(2)
        await time_passes(0.1)
        b.answer()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
        assert bot.close_code == 1000
        a.speak(440.0)
        b.speak(1000.0)
        await b.hears(440.0)
        await a.hears(1000.0)
        b.hang_up()
        await a.wait(Ended)
        record = await world.ended()
    assert record.hangup_source == "callee"
    assert "call.transferred" in world.records.event_names()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_commands_are_taken_and_the_hang_up_of_the_agent_ends_the_call(
    world: World, protocol: str
) -> None:
    async def script(bot: Bot) -> None:
        listener = Listener(bot)
        await bot.send(event="hold", hold={"active": True})
        await listener.until('"hold"')
        await bot.send(event="mute", mute={"active": True})
        await listener.until('"mute"')
        await bot.send(event="record", record={"action": "stop"})
        await listener.until("the call is not being recorded")
        await bot.send(event="transfer", transfer={"to": "nobody"})
        await listener.until("transfer.to")
        await bot.send(event="hangup", hangup={"drain": True})
        await listener.until()

    async with Bot(script, opening_frames=0).running() as bot:
        world.stream(bot.url, stream_protocol=protocol)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        record = await world.ended()
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
    assert bot.close_code == 1000
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "stream")
    assert record.stream is not None and record.stream.protocol == protocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_connection_that_breaks_is_opened_anew(world: World, protocol: str) -> None:
    again: list[Any] = []

    async def script(bot: Bot) -> None:
        listener = Listener(bot)
        if bot.connections > 1:
            again.append(listener)
            await listener.until()
            return
        await time_passes(0.2)
        assert bot.request is not None and bot.request.transport is not None
        bot.request.transport.abort()

    async with Bot(script, opening_frames=0).running() as bot:
        world.stream(bot.url, stream_protocol=protocol, stream_max_retries=2)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        assert await eventually(lambda: bool(again) and len(again[0].texts) + again[0].binaries > 25)
        a.hang_up()
        record = await world.ended()
    assert record.hangup_source == "caller"
    names = [name for name in world.records.event_names() if name.startswith("stream.")]
    assert names == ["stream.started", "stream.reconnecting", "stream.started", "stream.stopped"]
    assert tone_level_dbfs(bytes(a.heard), 880.0) < -40.0
