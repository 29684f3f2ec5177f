"""Calls to masked numbers before it is known whom their callers reach."""

import pytest

from callcontrol.calls.charges import Rates
from callcontrol.calls.effects.media import LinkMedia, PlayAudio, StopAudio
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, RejectLeg, RingLeg
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.events.legs import LegAnswered, LegCancelled, LegProgress
from callcontrol.calls.events.media import PlaybackEnded
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.calls.plan import Plan
from callcontrol.calls.product import BoundCall
from callcontrol.masking.calls import masked_details
from callcontrol.masking.product import MASKING, plan_inbound
from callcontrol.masking.routing import CallerRoute, RoutingResult
from callcontrol.masking.steps.route_by_caller import MAX_PROMPT_S, CallerRouted, RouteByCaller, RouteCaller
from callcontrol.models import Binding
from callcontrol.trunks.inbound_invite import Caller
from tests.support.call_drive import A, B, Drive, assert_nothing_left, outcome
from tests.support.domain import CALLEE, CALLER, OWN_NUMBER, MemoryDirectory, make_number

ROUTE = CallerRoute(CALLEE, record=False, max_duration_s=60, session_id="session-1")


def called(found: RoutingResult | None = None, *, routed: bool = True) -> Drive:
    """A call to a masked number; what is found of its caller is told at once unless ``routed`` is False."""
    drive = Drive(RouteByCaller(CALLER, OWN_NUMBER, "ta"))
    drive.record.product, drive.machine.policy = "masking", MASKING
    drive.record.details = masked_details(
        direction="inbound", caller_number=CALLER, target_number=None, masked_number=OWN_NUMBER
    )
    drive.start()
    if routed:
        drive.feed(CallerRouted(1, found))
    return drive


def test_the_caller_is_asked_for_and_hears_no_ringing_meanwhile() -> None:
    drive = called(routed=False)
    assert drive.done(RouteCaller) == [RouteCaller(1, CALLER, OWN_NUMBER)]
    assert not drive.done(RingLeg)


def test_a_caller_who_is_known_is_joined_with_the_other_party() -> None:
    drive = called(ROUTE)
    (dialled,) = drive.done(DialLeg)
    assert str(dialled.party.target) == CALLEE
    assert (dialled.party.caller_id, dialled.party.passthrough) == (OWN_NUMBER, False)
    details = drive.record.details
    assert details is not None
    assert (details["target_number"], details["session_id"]) == (CALLEE, "session-1")
    assert details["max_duration_sec"] == 60
    assert not drive.done(AnswerLeg), "the caller is answered when the other party is"
    drive.feed(LegProgress(B, 180))
    assert drive.done(RingLeg)[-1].status == 180
    drive.feed(LegAnswered(B, b"sdp"))
    assert drive.done(AnswerLeg)
    assert drive.done(LinkMedia)
    assert drive.record.status == "in-progress"


def test_an_unknown_caller_is_told_in_the_language_of_the_number_and_then_refused() -> None:
    drive = called("unknown")
    assert drive.done(RingLeg) == [RingLeg(A, 183, early_media=True)]
    assert drive.done(PlayAudio) == [PlayAudio(A, "prompt:ta/not-active", 2)]
    assert not drive.done(DialLeg)
    drive.feed(PlaybackEnded(A))
    assert outcome(drive) == ("failed", "NO_ROUTE_DESTINATION", "system")
    assert drive.done(RejectLeg)[0].status == 480
    assert not drive.done(AnswerLeg)
    assert_nothing_left(drive)


def test_a_caller_who_hears_nothing_is_refused_all_the_same() -> None:
    drive = called("unknown")
    drive.after(MAX_PROMPT_S)
    assert outcome(drive) == ("failed", "NO_ROUTE_DESTINATION", "system")
    assert_nothing_left(drive)


def test_a_caller_whom_the_customer_rejects_is_refused_at_once() -> None:
    drive = called("rejected")
    assert outcome(drive) == ("busy", "CALL_REJECTED", "api")
    assert drive.done(RejectLeg)[0].status == 603
    assert not drive.done(PlayAudio)
    assert_nothing_left(drive)


def test_a_caller_is_not_called_unknown_when_nobody_could_be_asked() -> None:
    drive = called(None)
    assert outcome(drive) == ("failed", "NORMAL_TEMPORARY_FAILURE", "system")
    assert not drive.done(PlayAudio)
    assert_nothing_left(drive)


def test_a_caller_who_gives_up_while_the_route_is_looked_up_reaches_nobody() -> None:
    drive = called(routed=False)
    drive.feed(LegCancelled(A))
    assert_nothing_left(drive)
    drive.feed(CallerRouted(1, ROUTE))
    assert not drive.done(DialLeg)


def test_a_caller_who_gives_up_while_it_is_told_leaves_nothing() -> None:
    drive = called("unknown")
    drive.feed(LegCancelled(A))
    assert drive.record.status == "no-answer"
    assert_nothing_left(drive)


def test_the_api_ends_it_while_the_caller_is_told() -> None:
    drive = called("unknown")
    drive.feed(HangupRequested("api", NORMAL_CLEARING))
    assert drive.done(StopAudio)
    assert_nothing_left(drive)


def test_what_is_said_of_another_question_is_not_heard() -> None:
    drive = called(routed=False)
    drive.feed(CallerRouted(2, ROUTE), PlaybackEnded(A))
    assert not drive.done(DialLeg) and not drive.record.status.ended


@pytest.mark.parametrize(
    ("caller", "shown"),
    [
        (Caller(CALLER), CALLER),
        (Caller(CALLER, withheld=True), None),
        (Caller("anonymous"), None),
        (Caller("reception"), None),
    ],
)
def test_a_caller_without_a_number_is_nobody(caller: Caller, shown: str | None) -> None:
    binding = Binding("masking", language="hi")
    plan = plan_inbound(BoundCall(make_number(), binding, caller, MemoryDirectory(), 14_400.0)).plan
    assert plan is not None and plan.steps == (RouteByCaller(shown, OWN_NUMBER, "hi"),)


def test_money_is_held_for_both_legs() -> None:
    rates = Rates(outbound_paise=60, inbound_paise=40)
    plan = Plan((RouteByCaller(CALLER, OWN_NUMBER),))
    assert plan.reserve_paise(rates) == rates.reserve_pulses * 100
