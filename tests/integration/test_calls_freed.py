"""A call that is over is gone from memory at once, without the garbage collector's help."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from sip import Answered, Confirmed
from tests.support.agent_bot import Bot
from tests.support.domain import OWN_NUMBER
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.world import World, running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


async def placed(world: World) -> None:
    await world.place({"verb": "pause", "length": 60})
    await (await world.phone.next_call()).wait(Confirmed)


async def forwarded(world: World) -> None:
    world.forward()
    await world.phone.call(OWN_NUMBER, world.port).wait(Answered)
    await (await world.phone.next_call(2)).wait(Confirmed)


async def streamed(world: World) -> None:
    await world.phone.call(OWN_NUMBER, world.port).wait(Answered)


@pytest.mark.parametrize("bring_up", [placed, forwarded, streamed])
async def test_nothing_of_a_call_waits_for_the_garbage_collector(
    world: World, bring_up: Callable[[World], Awaitable[None]]
) -> None:
    world.phone.on_call = ring_and_answer
    async with Bot(lambda bot: bot.until_closed()).running() as bot:
        world.stream(bot.url)
        gc.collect()
        gc.disable()
        try:
            await bring_up(world)
            parts = end(world)
            await world.ended()
            assert await eventually(lambda: not any(part() is not None for part in parts)), [
                part() for part in parts
            ]
        finally:
            gc.enable()
        if bring_up is streamed:
            await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)


def end(world: World) -> list[weakref.ref[object]]:
    """End the only call; returns its parts, without holding them."""
    (runner,) = world.control._runners.values()
    runner.post(HangupRequested("system", NORMAL_CLEARING))
    performer, machine = runner._performer, runner._machine
    streams = [leg.stream for leg in performer.media._legs.values()]
    parts = (runner, runner._mailbox, machine, machine.step, performer, performer.media, *streams)
    return [weakref.ref(part) for part in parts]
