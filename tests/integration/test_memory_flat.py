"""Calls with numbers of their own leave no more objects behind after many than after few."""

import gc
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.process.caches import functions
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from sip import Answered, Confirmed, SessionEvent
from tests.support.agent_bot import Bot
from tests.support.domain import OWN_NUMBER
from tests.support.phone import PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

_PRODUCT = ("api.", "callcontrol.", "media.", "sip.")
_KEPT_CALLS = 3
_ROUND = 6
# Transactions absorb repetitions for 32 s (RFC 3261 17), dialogs are remembered as long.
_FORGOTTEN_S = 70.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        # Traces and journals of the last calls are kept on purpose: here of fewer than one round has.
        world.control.traces._max_calls = world.records.journal._max_calls = _KEPT_CALLS
        yield world


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


async def test_as_many_objects_are_left_of_twice_as_many_calls(world: World) -> None:
    """Forwarded, placed and streamed calls of numbers never seen before; what is left is counted by type."""
    world.phone.on_call = ring_and_answer
    async with Bot(lambda bot: bot.until_closed()).running() as bot:
        await round_of_calls(world, bot.url, 0)  # What the first calls bring along is no growth.
        counts = []
        for turn in (1, 2, 3):
            await round_of_calls(world, bot.url, turn)
            counts.append(objects())
    after, grown = counts[0], counts[2]
    assert {name: (after[name], count) for name, count in grown.items() if count > after[name]} == {}


async def round_of_calls(world: World, agent_url: str, turn: int) -> None:
    """Bring up and end some calls of each kind, and forget all that the doubles have kept of them."""
    for place in range(_ROUND):
        number = f"+9198{turn:04d}{place:04d}"
        world.forward()
        await one(world, world.phone.call(OWN_NUMBER, world.port, from_user=number), Answered)
        world.stream(agent_url)
        await one(world, world.phone.call(OWN_NUMBER, world.port, from_user=number), Answered)
        before = len(world.phone.calls)
        await world.place({"verb": "pause", "length": 60}, to=number)
        await one(world, await world.phone.next_call(before + 1), Confirmed)
        await time_passes(1.0)  # An account has ten new calls a second.
    await time_passes(_FORGOTTEN_S)
    forget(world)


async def one(world: World, call: PhoneCall, up: type[SessionEvent]) -> None:
    """Wait until a call is up, and end it."""
    await call.wait(up)
    for runner in list(world.control._runners.values()):
        runner.post(HangupRequested("system", NORMAL_CLEARING))
    assert await eventually(lambda: world.control.active_calls == 0)


def forget(world: World) -> None:
    """Forget what the doubles keep of all calls, where the server keeps nothing."""
    for call in world.phone.calls:
        call.close()
    records = world.records
    for kept in (world.phone.calls, records.events, records.broadcasts, records.finished, records.records):
        kept.clear()


def objects() -> Counter[str]:
    """Objects of the product's types that the collector knows, by type, without those in bounded caches."""
    for cached in functions().values():
        cached.cache_clear()
    gc.collect()
    names = (f"{type(item).__module__}.{type(item).__qualname__}" for item in gc.get_objects())
    return Counter(name for name in names if name.startswith(_PRODUCT))
