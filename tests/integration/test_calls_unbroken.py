"""Legs that are never without RTP: a far end that counts packets while nothing is said for 100 s."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from callcontrol.calls.plan import Announce, Gather, JoinConference, Pause, Plan, Play, RecordMessage, Step
from callcontrol.calls.requests import CallMetadata
from callcontrol.masking.steps.connect import masked_plan
from media.audio import Clip, tone
from sip import Answered, Ended, OfferAnswered
from tests.support.agent_bot import Bot, raw_server
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, CALLEE, OWN_NUMBER, make_carrier
from tests.support.phone import PhoneCall, engine_settings, eventually
from tests.support.rtp_counter import LENGTH_S, Counter, counter
from tests.support.sip_agents import replaces_of
from tests.support.world import WEBHOOK, World, running


@asynccontextmanager
async def world_of(directory: Path) -> AsyncIterator[World]:
    """A server as it is started, but that no silence ends a call."""
    media = engine_settings(continuous=True)
    async with running(directory, media=media, media_timeout_s=0.0) as world:
        yield world


async def up(world: World, far: Counter, *steps: Step) -> PhoneCall:
    """A call to a far end that answers."""
    world.phone.on_call = far.answer
    await world.control.place(
        ACCOUNT_SID, Plan(steps, dial=make_party()), CallMetadata(status_webhook_url=WEBHOOK)
    )
    return await world.phone.next_call()


async def pauses(world: World, far: Counter) -> PhoneCall:
    return await up(world, far, Pause(2 * LENGTH_S))


async def gathers(world: World, far: Counter) -> PhoneCall:
    gather = Gather((Play("prompt:beep"), Pause(2.0)), timeout_s=60.0)
    return await up(world, far, gather, gather)


async def records(world: World, far: Counter) -> PhoneCall:
    return await up(world, far, *[RecordMessage(silence_s=60.0)] * 2)


async def announces(world: World, far: Counter) -> PhoneCall:
    """As a voice OTP is spoken, with silence between the repetitions and after them."""
    return await up(world, far, Announce((Clip(tone(440.0, 1000)),), 5), Pause(2 * LENGTH_S))


async def confers_alone(world: World, far: Counter) -> PhoneCall:
    return await up(world, far, JoinConference("sales"))


@pytest.mark.parametrize("situation", [pauses, gathers, records, announces, confers_alone])
async def test_a_leg_that_waits_gets_rtp_without_a_gap(
    situation: Callable[[World, Counter], Awaitable[PhoneCall]], tmp_path: Path
) -> None:
    async with world_of(tmp_path) as world, counter() as far:
        call = await situation(world, far)
        await far.check()
        call.hang_up()
        await world.ended()


async def test_both_silent_parties_of_a_bridge_get_rtp_without_a_gap(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world, counter() as far, counter() as other:
        world.forward()
        world.phone.on_call = other.answer
        call = world.phone.call(OWN_NUMBER, world.port, body=far.sdp)
        await call.wait(Answered)
        await asyncio.gather(far.check(), other.check())
        call.hang_up()
        await world.ended()


async def test_parties_of_an_attended_transfer_get_rtp_without_a_gap(tmp_path: Path) -> None:
    """One waits on hold at its partner, who consults the other; then the two talk, or rather listen."""
    async with world_of(tmp_path) as world, counter() as far, counter() as other:
        world.directory.put(carriers=[make_carrier(allows_refer=True)])
        world.forward()
        world.phone.on_call = far.answer
        first = world.phone.call(OWN_NUMBER, world.port)
        await first.wait(Answered)
        first.hold()
        await first.wait(OfferAnswered)
        world.phone.on_call = other.answer
        second = world.phone.call(OWN_NUMBER, world.port)
        await second.wait(Answered)
        await asyncio.gather(far.check(), other.check())
        first.session.refer(f"sip:{CALLEE}@127.0.0.1:{world.port}", replaces=replaces_of(second.session))
        for call in (first, second):
            await call.wait(Ended)
        await asyncio.gather(far.check(10.0), other.check(10.0))
        await world.control.drain(0.1)
        assert await eventually(lambda: len(world.records.finished) == 2)


async def test_a_party_whose_transfer_rings_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    async def transfers(bot: Bot) -> None:
        await bot.send(event="transfer", transfer={"to": "+919812345678"})
        await bot.until_closed()

    async with Bot(transfers).running() as bot, world_of(tmp_path) as world, counter() as far:

        def called(call: PhoneCall) -> None:
            if call.request.uri.user == CALLEE:
                far.answer(call)
            else:
                call.ring()

        world.phone.on_call = called
        await world.place(stream_url=bot.url)
        call = await world.phone.next_call()
        await world.phone.next_call(2)
        # The target rings for at most half a minute.
        await far.check(25.0)
        call.hang_up()
        await world.ended()


async def test_a_party_that_waits_for_another_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world, counter() as far:

        def called(call: PhoneCall) -> None:
            if call.request.uri.user == CALLEE:
                far.answer(call)
            else:
                call.ring()

        world.phone.on_call = called
        plan = masked_plan(CALLEE, "+919812345678", OWN_NUMBER, max_duration_s=None, record=False)
        await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        first = await world.phone.next_call()
        await world.phone.next_call(2)
        # The second party rings for at most a minute.
        await far.check(55.0)
        first.hang_up()
        await world.ended()


async def test_a_party_whose_agent_says_nothing_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    async with Bot(Bot.until_closed).running() as bot, world_of(tmp_path) as world, counter() as far:
        world.phone.on_call = far.answer
        await world.place(stream_url=bot.url)
        call = await world.phone.next_call()
        await far.check()
        call.hang_up()
        await world.ended()


async def test_a_party_that_waits_for_its_agent_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def says_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    async with raw_server(says_nothing) as port, world_of(tmp_path) as world, counter() as far:
        world.phone.on_call = far.answer
        await world.place(stream_url=f"ws://127.0.0.1:{port}/ws")
        call = await world.phone.next_call()
        # The agent has a few seconds to accept the connection.
        await far.check(3.0)
        call.hang_up()
        await world.ended()
        released.set()
