"""Conferences of real parties: who hears whom, who waits, and what is left when all are gone."""

from functools import partial
from pathlib import Path

import pytest

from callcontrol.calls.aio.media.conferences import ConferenceMember, Conferences
from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import ConferenceEntered, ConferenceOver
from callcontrol.calls.plan import JoinConference, Pause, Plan, Step
from callcontrol.calls.requests import CallMetadata
from callcontrol.errors import NotFound
from media.aio import MediaEngine, RtpStream
from media.audio import Clip, tone
from sip import Ended
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID
from tests.support.phone import PhoneCall, engine_settings, eventually
from tests.support.world import WEBHOOK, World, running

ROOM = JoinConference("sales", beep=False)
GUEST = JoinConference("sales", beep=False, starts=False)


async def in_conference(world: World, *steps: Step) -> PhoneCall:
    number = len(world.phone.calls) + 1
    plan = Plan(steps, dial=make_party())
    await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
    return await world.phone.next_call(number)


def events(world: World, name: str) -> int:
    return sum(item.event == name for item in world.records.events)


async def over(world: World) -> None:
    assert await eventually(lambda: world.control.active_calls == 0)
    assert await eventually(lambda: not world.control.engine.conferences)


async def test_members_hear_each_other_and_not_themselves(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        ann, bob = await in_conference(world, ROOM), await in_conference(world, ROOM)
        ann.speak(440.0)
        bob.speak(1000.0)
        await ann.hears(1000.0)
        await bob.hears(440.0)
        assert not ann.hears_now(440.0)
        ann.hang_up()
        bob.hang_up()
        await over(world)


async def test_who_waits_hears_music_until_the_host_is_there_and_goes_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        guest = await in_conference(world, GUEST)
        await guest.until(lambda: any(guest.heard))
        assert events(world, "conference.joined") == 0
        host = await in_conference(world, JoinConference("sales", beep=False, ends=True))
        host.speak(1000.0)
        await guest.hears(1000.0)
        assert events(world, "conference.joined") == 2
        host.hang_up()
        await guest.wait(Ended)
        await over(world)
        assert events(world, "conference.left") == 2


async def test_a_muted_member_hears_and_is_not_heard(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        ann = await in_conference(world, ROOM)
        mute = await in_conference(world, JoinConference("sales", muted=True, beep=False))
        mute.speak(440.0)
        ann.speak(1000.0)
        await mute.hears(1000.0)
        await ann.hears_silence()
        for call in (ann, mute):
            call.hang_up()
        await over(world)


async def test_a_full_conference_takes_nobody_else(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        ann = await in_conference(world, ROOM)
        late = await in_conference(world, JoinConference("sales", max_members=1))
        await late.wait(Ended)
        assert world.published("conference.refused")["data"]["reason"] == "full"
        ann.hang_up()
        await over(world)


async def test_a_member_is_held_and_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        ann, bob = await in_conference(world, ROOM), await in_conference(world, ROOM)
        ann.speak(440.0)
        bob.speak(1000.0)
        await ann.hears(1000.0)
        await bob.hears(440.0)
        (state,) = world.control.conferences.of_account(ACCOUNT_SID)
        held = state.participants[1].call_sid
        change = partial(world.control.conferences.change, ACCOUNT_SID, state.conference_sid, held)
        change(held=True)
        await ann.hears_silence()
        await bob.until(lambda: not bob.hears_now(440.0))
        change(held=True, muted=True)
        change(held=False)
        await bob.hears(440.0)
        await ann.hears_silence()
        change(muted=False)
        await ann.hears(1000.0)
        (member,) = (
            item
            for item in world.control.conferences.find(ACCOUNT_SID, state.conference_sid).participants
            if item.call_sid == held
        )
        assert not member.held and not member.terms.muted
        change(held=True)
        bob.hang_up()
        ann.hang_up()
        await over(world)


async def test_who_is_held_while_it_waits_stays_held_when_the_conference_begins(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        guest = await in_conference(world, GUEST)
        await guest.until(lambda: any(guest.heard))
        conferences = world.control.conferences
        (state,) = conferences.of_account(ACCOUNT_SID)
        assert not state.begun
        call_sid = state.participants[0].call_sid
        conferences.change(ACCOUNT_SID, state.conference_sid, call_sid, held=True)
        host = await in_conference(world, ROOM)
        host.speak(1000.0)
        assert await eventually(lambda: events(world, "conference.joined") == 2)
        assert not guest.hears_now(1000.0)
        conferences.change(ACCOUNT_SID, state.conference_sid, call_sid, held=False)
        await guest.hears(1000.0)
        conferences.end(ACCOUNT_SID, state.conference_sid)
        await guest.wait(Ended)
        await host.wait(Ended)
        await over(world)
        assert events(world, "conference.left") == 2
        assert conferences.of_account(ACCOUNT_SID) == []


async def test_who_is_removed_goes_on_with_its_next_step(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        ann = await in_conference(world, ROOM)
        bob = await in_conference(world, ROOM, Pause(60))
        await bob.until(lambda: len(world.control.conferences.of_account(ACCOUNT_SID)[0].participants) == 2)
        (state,) = world.control.conferences.of_account(ACCOUNT_SID)
        call_sid = state.participants[1].call_sid
        world.control.conferences.dismiss(ACCOUNT_SID, state.conference_sid, call_sid)
        assert await eventually(lambda: events(world, "conference.left") == 1)
        assert world.control.active_calls == 2
        for account, conference, call in (
            (ACCOUNT_SID, state.conference_sid, call_sid),
            (ACCOUNT_SID, call_sid, call_sid),
            ("another", state.conference_sid, state.participants[0].call_sid),
        ):
            with pytest.raises(NotFound):
                world.control.conferences.dismiss(account, conference, call)
        for call_of_phone in (ann, bob):
            call_of_phone.hang_up()
        await over(world)


async def opened(engine: MediaEngine) -> list[RtpStream]:
    return [engine.open_stream(lambda _: None) for _ in range(3)]


async def test_accounts_never_meet_and_a_closed_stream_is_out() -> None:
    engine = MediaEngine(engine_settings())
    await engine.start()
    try:
        conferences = Conferences(engine, Clip(tone(440.0, 100)))
        told: list[Event] = []
        ann, bob, eve = [
            ConferenceMember(f"call-{number}", 0, stream, told.append)
            for number, stream in enumerate(await opened(engine))
        ]
        for account, member in (("one", ann), ("one", bob), ("two", eve)):
            came = conferences.enter(account, "sales", member, MemberTerms(ends=True), 40)
            assert came == ConferenceEntered(0, waits=False)
        assert (len(conferences), len(engine.conferences)) == (2, 2)
        assert ann.stream.conference is bob.stream.conference
        assert eve.stream.conference is not ann.stream.conference
        # Its call broke down without a word.
        ann.stream.close()
        assert await eventually(lambda: told == [ConferenceOver(0)])
        assert (len(conferences), len(engine.conferences)) == (1, 1)
        conferences.leave(eve.name)
        assert (len(conferences), len(engine.conferences)) == (0, 0)
    finally:
        await engine.close()


async def test_those_who_are_there_hear_one_come_and_go(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        ann = await in_conference(world, ROOM)
        assert await eventually(lambda: events(world, "conference.joined") == 1)
        bob = await in_conference(world, JoinConference("sales"))
        await ann.until(lambda: ann.heard_beep(880.0))
        assert not ann.heard_beep(440.0)
        bob.hang_up()
        await ann.until(lambda: ann.heard_beep(440.0))
        ann.hang_up()
        await over(world)
