"""Calls to numbers that are there to be missed: they ring, and nobody is there."""

from callcontrol.calls.effects.records import Finish
from callcontrol.calls.effects.signalling import AnswerLeg, RejectLeg, RingLeg
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.events.legs import LegCancelled
from callcontrol.calls.hangup_cause import ORIGINATOR_CANCEL
from callcontrol.calls.plan import Ring
from tests.support.call_drive import A, Drive, assert_nothing_left, outcome


def test_it_rings_until_the_time_is_up_and_is_refused() -> None:
    drive = Drive(Ring(20.0)).start()
    assert len(drive.done(RingLeg)) == 1
    drive.after(19.9)
    assert not drive.record.status.ended
    drive.after(0.2)
    assert [effect.status for effect in drive.done(RejectLeg)] == [480]
    assert outcome(drive) == ("no-answer", "NO_ANSWER", "system")
    assert drive.record.answered_at is None and not drive.done(AnswerLeg)
    assert [effect.charge_paise for effect in drive.done(Finish)] == [0]
    assert_nothing_left(drive)


def test_a_caller_who_gives_up_leaves_nothing() -> None:
    drive = Drive(Ring(20.0)).start()
    drive.feed(LegCancelled(A, ORIGINATOR_CANCEL))
    assert outcome(drive) == ("no-answer", "ORIGINATOR_CANCEL", "caller")
    assert_nothing_left(drive)


def test_the_api_can_end_it() -> None:
    drive = Drive(Ring(20.0)).start()
    drive.feed(HangupRequested("api", ORIGINATOR_CANCEL))
    assert drive.record.status.ended
    assert_nothing_left(drive)
