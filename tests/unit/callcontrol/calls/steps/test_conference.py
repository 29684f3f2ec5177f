"""Conferences without their media: who waits, who is freed, whose leaving ends it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.calls.conference_room import MAX_MEMBERS, ConferenceRoom, Entered, Left, MemberTerms
from callcontrol.calls.effects.media import EnterConference, LeaveConference, Speak
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events.legs import LegEnded
from callcontrol.calls.events.media import (
    ConferenceBegan,
    ConferenceEntered,
    ConferenceOver,
    ConferenceRefused,
)
from callcontrol.calls.plan import JoinConference, Say
from tests.support.call_drive import A, Drive, assert_nothing_left, outcome, placed

GUEST, HOST = MemberTerms(starts=False), MemberTerms(ends=True)


def test_who_comes_before_the_host_waits_for_it() -> None:
    room = ConferenceRoom()
    assert room.enter("ann", GUEST) == Entered(waits=True)
    assert room.enter("bob", GUEST) == Entered(waits=True)
    assert room.enter("host", HOST) == Entered(waits=False, freed=("ann", "bob"))
    assert room.enter("late", GUEST) == Entered(waits=False)


def test_it_is_over_for_all_when_the_host_leaves() -> None:
    room = ConferenceRoom()
    for name, terms in (("ann", GUEST), ("host", HOST), ("bob", GUEST)):
        room.enter(name, terms)
    assert room.leave("ann") == Left()
    assert room.leave("host") == Left(dismissed=("bob",), empty=True)


def test_a_guest_leaves_the_others_alone_and_the_last_one_an_empty_room() -> None:
    room = ConferenceRoom()
    room.enter("ann", MemberTerms())
    room.enter("bob", MemberTerms())
    assert room.leave("ann") == Left()
    assert room.leave("ann") == Left(), "once is enough"
    assert room.leave("bob") == Left(empty=True)


def test_one_who_ends_it_ends_nothing_while_it_has_not_begun() -> None:
    room = ConferenceRoom()
    room.enter("ann", GUEST)
    room.enter("chair", MemberTerms(starts=False, ends=True))
    assert room.leave("chair") == Left()


def test_one_who_never_took_part_ends_nothing() -> None:
    room = ConferenceRoom()
    room.enter("ann", MemberTerms())
    room.enter("host", HOST)
    assert room.leave("host", took_part=False) == Left()
    assert room.members == ("ann",)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.booleans(), st.booleans())))
def test_nobody_waits_in_a_conference_that_has_begun(script: list[tuple[bool, int, bool, bool]]) -> None:
    room, waiting, talking = ConferenceRoom(), set[str](), set[str]()
    for enters, number, starts, ends in script:
        name = f"member {number}"
        if enters and name not in room.members:
            came = room.enter(name, MemberTerms(starts=starts, ends=ends))
            (waiting if came.waits else talking).add(name)
            talking |= set(came.freed)
            waiting -= set(came.freed)
        elif not enters:
            left = room.leave(name)
            for gone in (name, *left.dismissed):
                waiting.discard(gone)
                talking.discard(gone)
            assert left.empty == (not room.members)
        assert waiting | talking == set(room.members)
        assert not (waiting and talking)
        assert not (room.begun and waiting)
        if not room.members:
            room = ConferenceRoom()


def test_there_is_an_end_to_members() -> None:
    room = ConferenceRoom()
    for number in range(MAX_MEMBERS):
        assert room.has_room(1000)
        room.enter(str(number), MemberTerms())
    assert not room.has_room(1000)


def joined(**wanted: Any) -> Drive:
    return placed(JoinConference("sales", **wanted), Say("Good bye."))


def test_waiting_talking_and_being_dismissed() -> None:
    drive = joined(muted=True, starts=False, max_members=3)
    assert drive.done(EnterConference) == [
        EnterConference(A, "sales", MemberTerms(muted=True, starts=False), 3)
    ]
    drive.feed(ConferenceEntered(A, waits=True))
    assert "conference.joined" not in drive.events()
    drive.feed(ConferenceBegan(A))
    assert drive.events()[-1] == "conference.joined"
    drive.feed(ConferenceOver(A))
    assert drive.events()[-1] == "conference.left"
    assert drive.done(Speak), "the plan goes on"
    assert not drive.done(LeaveConference), "it is out already"


@pytest.mark.parametrize("waits", [True, False])
def test_hanging_up_leaves_it(waits: bool) -> None:
    drive = joined()
    drive.feed(ConferenceEntered(A, waits))
    drive.feed(LegEnded(A))
    assert drive.done(LeaveConference) == [LeaveConference(A)]
    assert ("conference.left" in drive.events()) is not waits
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_a_full_conference_is_passed_over_and_told() -> None:
    drive = joined()
    drive.feed(ConferenceRefused(A, "full"))
    refused = next(effect for effect in drive.done(Save) if effect.event == "conference.refused")
    assert refused.details == {"conference": {"name": "sales", "muted": False}, "reason": "full"}
    assert drive.done(Speak)
