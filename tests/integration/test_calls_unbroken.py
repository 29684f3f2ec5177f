"""Legs that are never without RTP: a far end that counts packets while nothing is said for 100 s."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from callcontrol.calls.live.requests import LiveUpdate, TransferRequest
from callcontrol.calls.plan import Announce, Gather, JoinConference, Pause, Plan, Play, RecordMessage, Step
from callcontrol.calls.requests import CallMetadata
from callcontrol.masking.steps.connect import masked_plan
from media.audio import Clip, tone
from sip import Answered, Confirmed, Ended, OfferAnswered
from tests.support.agent_bot import Bot, raw_server
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, CALLEE, OWN_NUMBER, make_carrier, make_gateway
from tests.support.phone import Phone, PhoneCall, engine_settings
from tests.support.rtp_counter import LENGTH_S, Counter, answering, counter, counters
from tests.support.sip_agents import replaces_of
from tests.support.waiting import until
from tests.support.world import WEBHOOK, World, running

CAROL = "+919899000000"


@asynccontextmanager
async def world_of(directory: Path, *, threads: int = 1, **settings: str) -> AsyncIterator[World]:
    """A server as it is started, but that no silence ends a call; its carrier may transfer."""
    media = engine_settings(continuous=True, threads=threads)
    async with running(directory, media=media, media_timeout_s=0.0, **settings) as world:
        world.directory.put(carriers=[make_carrier(allows_refer=True)])
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
        call = world.phone.call(OWN_NUMBER, world.port, body=far.sdp())
        await call.wait(Answered)
        await asyncio.gather(far.check(), other.check())
        call.hang_up()
        await world.ended()


async def test_legs_whose_levels_are_measured_get_rtp_without_a_gap(tmp_path: Path) -> None:
    """Packets are relayed as before, and decoded beside that."""
    async with world_of(tmp_path) as world, counter() as far:
        world.forward()
        world.phone.on_call = far.answer
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        runner = world.control.active(world.records.only().call_sid)
        assert runner is not None
        for _ in range(3):
            await far.check(2.0)
            assert {meter.level_db for meter in runner.media.meters().values()} == {None}
            await far.check(2.0)
            caller, callee = runner.media.meters().values()
            assert caller.level_db is not None and caller.level_db < 30
            assert callee.level_db == 127, "it says nothing"
            runner.media.stop_meters()
        a.hang_up()
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


async def test_a_party_whom_its_agent_transfers_gets_rtp_while_the_target_rings(tmp_path: Path) -> None:
    async def transfers(bot: Bot) -> None:
        await bot.send(event="transfer", transfer={"to": CAROL})
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


async def bridged(world: World, caller: Counter, callee: Counter) -> tuple[PhoneCall, PhoneCall]:
    """Both parties of a forwarded call that is up."""
    before = len(world.phone.calls)
    world.phone.on_call = answering(callee)
    a = world.phone.call(OWN_NUMBER, world.port, body=caller.sdp())
    await a.wait(Answered)
    b = await world.phone.next_call(before + 2)
    await b.wait(Confirmed)
    return a, b


async def holds(call: PhoneCall, far: Counter) -> None:
    """Put the other party on hold."""
    call.session.reinvite(far.sdp("sendonly"))
    await call.wait(OfferAnswered)


@pytest.mark.parametrize("music", ["none", "tones"])
@pytest.mark.parametrize("threads", [1, pytest.param(4, marks=pytest.mark.long("the same by other threads"))])
async def test_nobody_is_without_rtp_while_a_party_is_consulted_and_then_connected(
    tmp_path: Path, threads: int, music: str
) -> None:
    """A holds B, asks D in a second call, and connects the two (REFER with Replaces)."""
    async with world_of(tmp_path, threads=threads, hold_music=music) as world, counters(4) as fars:
        world.forward()
        a, b, asking, d = fars
        held, waiting = await bridged(world, a, b)
        await asyncio.gather(*(far.check(LENGTH_S / 20) for far in (a, b)))
        await holds(held, a)
        consulting, consulted = await bridged(world, asking, d)
        await asyncio.gather(*(far.check(LENGTH_S / 2) for far in (b, asking, d)))
        replaces = replaces_of(consulting.session)
        held.session.refer(f"sip:{CALLEE}@127.0.0.1:{world.port}", replaces=replaces)
        for call in (held, consulting):
            await call.wait(Ended)
        await asyncio.gather(*(far.check(LENGTH_S / 2) for far in (b, d)))
        waiting.hang_up()
        await consulted.wait(Ended)
        await until_over(world, 2)


async def by_refer(world: World, asking: PhoneCall) -> None:
    asking.session.refer(f"tel:{CAROL}")


async def by_refer_and_leaving(world: World, asking: PhoneCall) -> None:
    """The one that stays hears it ring."""
    await by_refer(world, asking)
    asking.hang_up()


async def by_api(world: World, asking: PhoneCall) -> None:
    transfer = TransferRequest(to=CAROL, party="b", timeout_s=60.0)
    record = world.records.only()
    await world.control.update_call(ACCOUNT_SID, record.call_sid, LiveUpdate(transfer=transfer))


@pytest.mark.parametrize("way", [by_refer, by_refer_and_leaving, by_api])
async def test_nobody_is_without_rtp_while_a_target_rings_and_is_then_connected(
    tmp_path: Path, way: Callable[[World, PhoneCall], Awaitable[None]]
) -> None:
    """A transfers B to C without asking: B waits while C rings, and hears C then."""
    async with world_of(tmp_path) as world, counters(3) as (a, b, c):
        carol = await behind_a_trunk_of_its_own(world)
        carol.on_call = PhoneCall.ring
        world.forward()
        asking, waiting = await bridged(world, a, b)
        await way(world, asking)
        called = await carol.next_call()
        await b.check(LENGTH_S / 4)
        c.answer(called)
        await called.wait(Confirmed)
        await asyncio.gather(*(far.check(LENGTH_S * 3 / 4) for far in (b, c)))
        called.hang_up()
        await waiting.wait(Ended)
        await until_over(world, 1)


async def test_nobody_is_without_rtp_when_a_party_is_replaced(tmp_path: Path) -> None:
    """C calls in and takes the place of A (INVITE with Replaces)."""
    async with world_of(tmp_path) as world, counters(3) as (a, b, c):
        world.forward()
        replaced, waiting = await bridged(world, a, b)
        await asyncio.gather(*(far.check(LENGTH_S / 4) for far in (a, b)))
        headers = [("Replaces", str(replaces_of(replaced.session)))]
        taking = world.phone.call(OWN_NUMBER, world.port, body=c.sdp(), headers=headers)
        await taking.wait(Answered)
        await replaced.wait(Ended)
        await asyncio.gather(*(far.check(LENGTH_S * 3 / 4) for far in (b, c)))
        taking.hang_up()
        await waiting.wait(Ended)
        await until_over(world, 1)


async def behind_a_trunk_of_its_own(world: World) -> Phone:
    """A telephone that one number reaches."""
    phone = Phone(world.far_engine)
    await phone.start()
    world.phones.append(phone)
    world.directory.put(
        carriers=[make_carrier("carrier-c", prefixes=(CAROL,), allows_refer=True)],
        gateways=[make_gateway("gateway-c", port=phone.port, carrier_sid="carrier-c")],
    )
    return phone


async def until_over(world: World, calls: int) -> None:
    await until(lambda: len(world.records.finished) == calls)


@pytest.mark.parametrize("linked", [True, False])
async def test_a_leg_that_is_sent_digits_gets_rtp_between_them_too(tmp_path: Path, linked: bool) -> None:
    """Also while a `W` waits for a second, and the other party says nothing."""
    async with world_of(tmp_path) as world, counters(2) as (far, other):
        if linked:
            world.forward()
            call, _ = await bridged(world, far, other)
        else:
            call = await up(world, far, Pause(2 * LENGTH_S))
        record = world.records.only()
        await far.check(1.0)
        for _ in range(5):
            update = LiveUpdate(digits="12WWwWW34W5w", digits_party="a")
            await world.control.update_call(ACCOUNT_SID, record.call_sid, update)
            await far.check(LENGTH_S / 5)
        call.hang_up()
        await world.ended()
