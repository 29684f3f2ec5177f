"""Transfers between real far ends: who hears whom, who pays, and that nothing is left of anybody."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.aio.performer import EFFECTS, Performer
from callcontrol.calls.effects.transfers import AskPartner
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.models import CallStatus
from sip import Answered, Confirmed, Ended, InfoReceived, OfferAnswered, ReferFailed, ReferProgress
from tests.support.agent_bot import Bot
from tests.support.domain import CALLEE, OWN_NUMBER, make_carrier, make_gateway
from tests.support.phone import Phone, PhoneCall, engine_settings, eventually
from tests.support.sip_agents import replaces_of
from tests.support.waiting import time_passes
from tests.support.world import World, running

GATEWAYS = ("gateway-1", "gateway-c", "carrier-1", "carrier-c")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        world.directory.put(carriers=[make_carrier(allows_refer=True)])
        yield world
        assert await eventually(lambda: not any(counts(world))), f"places are left: {counts(world)}"


def counts(world: World) -> list[int]:
    """Calls that are counted, and legs at each trunk."""
    capacity = world.control._capacity
    return [capacity.calls, *(capacity.legs_at(sid) for sid in GATEWAYS)]


async def third(world: World, **policy: Any) -> Phone:
    """A telephone on a trunk of its own, which serves no number by itself."""
    phone = Phone(world.far_engine)
    await phone.start()
    world.phones.append(phone)
    world.directory.put(
        carriers=[make_carrier("carrier-c", prefixes=("+999",), **{"allows_refer": True, **policy})],
        gateways=[make_gateway("gateway-c", port=phone.port, carrier_sid="carrier-c")],
    )
    return phone


async def bridged(world: World, number: int = 1) -> tuple[PhoneCall, PhoneCall]:
    """Both parties of a forwarded call that is up; it is the number-th of its kind."""
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2 * number)
    await b.wait(Confirmed)
    return a, b


def at(phone: Phone) -> str:
    return f"sip:carol@127.0.0.1:{phone.port}"


def news(call: PhoneCall) -> list[int]:
    return [event.status for event in call.events if isinstance(event, ReferProgress | ReferFailed)]


async def hear_each_other(one: PhoneCall, other: PhoneCall) -> None:
    one.speak(440.0)
    other.speak(1000.0)
    await other.hears(440.0)
    await one.hears(1000.0)


@pytest.mark.parametrize("caller_asks", [True, False])
async def test_the_two_that_remain_hear_each_other(world: World, caller_asks: bool) -> None:
    carol = await third(world)
    pair = await bridged(world)
    asking, staying = pair if caller_asks else reversed(pair)
    asking.session.refer(at(carol))
    c = await carol.next_call()
    await asking.wait(Ended)
    assert news(asking)[-1] == 200
    await hear_each_other(staying, c)
    assert counts(world) == [1, 1, 1, 1, 1]
    c.hang_up()
    await staying.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.COMPLETED,
        "NORMAL_CLEARING",
        "callee",
    )
    assert record.price_paise == 40 + 60 + 60
    assert world.wallets.balance_paise == 100_000 - record.price_paise
    assert world.records.event_names() == [
        "call.initiated",
        "call.answered",
        "call.transferred",
        "call.completed",
    ]


async def test_a_party_on_hold_at_both_ends_hears_the_target_when_it_is_back(world: World) -> None:
    carol = await third(world)
    a, b = await bridged(world)
    a.hold()
    await a.wait(OfferAnswered)
    b.hold()
    await b.wait(OfferAnswered)
    a.session.refer(at(carol))
    c = await carol.next_call()
    await a.wait(Ended)
    b.resume()
    await b.until(lambda: sum(isinstance(event, OfferAnswered) for event in b.events) == 2)
    await hear_each_other(b, c)
    b.hang_up()
    assert (await world.ended()).price_paise == 40 + 60 + 60


async def test_digits_go_on_after_a_transfer(world: World) -> None:
    carol = await third(world, dtmf_type="info")
    a, b = await bridged(world)
    a.session.refer(at(carol))
    c = await carol.next_call()
    await a.wait(Ended)
    b.open().send_dtmf("4")
    await c.until(lambda: any(isinstance(event, InfoReceived) for event in c.events))
    c.session.info("application/dtmf", b"7")
    await b.until(lambda: b.digits == "7")
    c.hang_up()
    await world.ended()


async def test_the_agent_goes_on_with_the_target(world: World) -> None:
    async def echo(bot: Bot) -> None:
        while frame := await bot.next():
            if frame["event"] == "media":
                await bot.send(event="media", media={"payload": frame["media"]["payload"]})

    carol = await third(world)
    bot = Bot(echo)
    async with bot.running():
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.speak(440.0)
        await a.hears(440.0)
        a.session.refer(at(carol))
        c = await carol.next_call()
        await a.wait(Ended)
        c.speak(1000.0)
        await c.hears(1000.0)
        assert bot.connections == 1
        c.hang_up()
        record = await world.ended()
    assert record.stream is not None and record.stream.state == "stopped"
    assert record.price_paise == 40 + 60


@pytest.mark.parametrize("who", ["a", "b", "c"])
async def test_a_transfer_ends_whoever_hangs_up_while_the_target_rings(world: World, who: str) -> None:
    carol = await third(world)
    carol.on_call = PhoneCall.ring
    a, b = await bridged(world)
    a.session.refer(at(carol))
    c = await carol.next_call()
    await a.until(lambda: 180 in news(a))
    match who:
        case "c":
            c.reject(486)
            await a.until(lambda: 486 in news(a))
            await hear_each_other(a, b)
            a.hang_up()
        case "b":
            b.hang_up()
        case _:
            a.hang_up()
            await a.wait(Ended)
            await time_passes(0.1)
            b.hang_up()
    record = await world.ended()
    assert (record.status, record.price_paise) == (CallStatus.COMPLETED, 40 + 60)


async def test_a_defect_while_parties_change_places_ends_the_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    carol = await third(world)
    a, b = await bridged(world)
    (runner,) = world.control._runners.values()

    def fail(*_: object) -> None:
        raise RuntimeError("defect")

    monkeypatch.setattr(runner._performer.media.audio, "link", fail)
    a.session.refer(at(carol))
    c = await carol.next_call()
    for call in (a, b, c):
        await call.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "system")
    assert record.price_paise == 40 + 60 + 60


async def test_both_parties_ask_at_once(world: World) -> None:
    carol = await third(world)
    a, b = await bridged(world)
    a.session.refer(at(carol))
    b.session.refer(at(carol))
    await eventually(lambda: any(isinstance(event, ReferFailed) for event in [*a.events, *b.events]))
    assert len(carol.calls) == 1
    carol.calls[0].hang_up()
    await world.ended()


async def test_a_target_whose_trunk_is_full(world: World) -> None:
    carol = await third(world, max_concurrent_calls=0)
    a, b = await bridged(world)
    a.session.refer(at(carol))
    refused = await a.wait(ReferFailed)
    assert isinstance(refused, ReferFailed) and refused.status == 503
    await hear_each_other(a, b)
    a.hang_up()
    assert (await world.ended()).price_paise == 40 + 60


async def test_the_end_of_the_process_ends_transferred_calls(world: World) -> None:
    carol = await third(world)
    a, b = await bridged(world)
    a.session.refer(at(carol))
    c = await carol.next_call()
    await a.wait(Ended)
    await world.control.drain(0.1)
    for call in (b, c):
        await call.wait(Ended)
    record = await world.ended()
    assert (record.hangup_cause, record.price_paise) == ("SYSTEM_SHUTDOWN", 40 + 60 + 60)


class TestJoined:
    """Calls of which one party each is joined with the other's."""

    @pytest.fixture(params=[1, 4])
    async def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
        media = engine_settings(400, threads=request.param)
        async with running(tmp_path, media=media) as world:
            world.directory.put(carriers=[make_carrier(allows_refer=True)])
            yield world
            assert await eventually(lambda: not any(counts(world))), f"places are left: {counts(world)}"

    async def joined(self, world: World) -> tuple[PhoneCall, PhoneCall, list[PhoneCall]]:
        """Those that remain, and those that are gone."""
        first, b = await bridged(world)
        second, d = await bridged(world, 2)
        replaces = replaces_of(second.session)
        first.session.refer(f"sip:{CALLEE}@127.0.0.1:{world.port}", replaces=replaces)
        for call in (first, second):
            await call.wait(Ended)
        assert news(first)[-1] == 200
        return b, d, [first, second]

    async def test_they_hear_each_other_and_each_call_pays_for_its_own(self, world: World) -> None:
        b, d, _ = await self.joined(world)
        await hear_each_other(b, d)
        b.open().send_dtmf("3")
        await d.until(lambda: d.digits == "3")
        b.session.info("application/dtmf", b"9")
        await d.until(lambda: d.digits == "39")
        assert counts(world)[:2] == [2, 2]
        d.hang_up()
        await b.wait(Ended)
        assert await eventually(lambda: len(world.records.finished) == 2)
        records = world.records.records.values()
        assert [record.price_paise for record in records] == [100, 100]
        assert world.wallets.balance_paise == 100_000 - 200
        assert {record.status for record in records} == {CallStatus.COMPLETED}

    async def test_a_call_that_ends_before_it_is_joined_leaves_the_other_as_it_was(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, b = await bridged(world)
        second, _ = await bridged(world, 2)
        asked = EFFECTS[AskPartner]

        def ask_too_late(performer: Performer, effect: AskPartner) -> None:
            world.control._runners[effect.call_sid].post(HangupRequested())
            asked(performer, effect)

        monkeypatch.setitem(EFFECTS, AskPartner, ask_too_late)
        first.session.refer(f"sip:{CALLEE}@127.0.0.1:{world.port}", replaces=replaces_of(second.session))
        await first.until(lambda: 603 in news(first))
        await hear_each_other(first, b)
        first.hang_up()
        assert await eventually(lambda: len(world.records.finished) == 2)
