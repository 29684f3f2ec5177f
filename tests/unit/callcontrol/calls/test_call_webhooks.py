"""Calls whose next steps the customer's server says: the questions, the answers, and the lack of them."""

import pytest

from callcontrol.calls.effects.agent import StartAgent, StopAgent
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking
from callcontrol.calls.effects.media import LinkMedia, PlayAudio, StopAudio
from callcontrol.calls.effects.records import Finish, Save
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg, RingLeg
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentOpened
from callcontrol.calls.events.commands import RedirectRequested
from callcontrol.calls.events.instructions import InstructionsFailed, InstructionsReceived
from callcontrol.calls.events.legs import LegAnswered, LegCancelled, LegConfirmed, LegProgress
from callcontrol.calls.events.media import PlaybackEnded
from callcontrol.calls.events.transfers import PartnerFound, PartnerReady
from callcontrol.calls.plan import Answer, Dial, Hangup, Pause, Play, Reject, RequestInstructions, Step
from callcontrol.calls.steps.webhook import MAX_REQUESTS
from callcontrol.instructions.verbs import REJECT_STATUSES
from tests.support.call_drive import (
    AGENT,
    DIAL,
    A,
    B,
    Drive,
    assert_nothing_left,
    bridged,
    make_party,
    outcome,
    streamed,
)
from tests.unit.callcontrol.calls.test_call_transferred import PARTNER, REPLACES, asked

URL = "https://customer.example/calls"
NEXT = "https://customer.example/next"
INCOMING = RequestInstructions(URL, event="call.incoming", ring_timeout_s=30.0)


def instructed(inbound: bool = True) -> Drive:
    drive = Drive(INCOMING, Hangup(), inbound=inbound).start()
    if not inbound:
        drive.feed(LegProgress(A, 180), LegAnswered(A, b"sdp"))
    return drive


def said(number: int, *steps: Step) -> InstructionsReceived:
    return InstructionsReceived(number, steps)


def failed(number: int) -> InstructionsFailed:
    return InstructionsFailed(number, "http_status", "answered 500", 500, 2)


def test_a_caller_hears_ringing_while_the_server_is_asked() -> None:
    drive = instructed()
    assert [effect for effect in drive.all if isinstance(effect, RingLeg | AskWebhook)] == [
        RingLeg(A),
        AskWebhook(1, URL, "POST", "call.incoming"),
    ]
    assert drive.record.status == "ringing"
    assert not drive.done(AnswerLeg)


def test_what_the_server_says_takes_the_place_of_the_rest_of_the_plan() -> None:
    drive = instructed()
    drive.feed(said(1, Answer(), Play("prompt:hello")))
    assert drive.done(AnswerLeg)
    assert drive.done(PlayAudio)
    drive.feed(PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")
    assert_nothing_left(drive)


def test_a_pause_before_the_answer_rings() -> None:
    drive = instructed()
    drive.feed(said(1, Pause(3.0), Answer(), Pause(60.0)))
    assert not drive.done(AnswerLeg)
    drive.after(3.0)
    assert drive.record.status == "in-progress"


def test_a_caller_is_not_kept_ringing_for_ever() -> None:
    drive = instructed()
    for number in range(1, 7):
        assert not drive.record.status.ended
        drive.feed(said(number, Pause(100.0), RequestInstructions(NEXT)))
        drive.after(100.1)
    assert outcome(drive) == ("no-answer", "ALLOTTED_TIMEOUT", "system")
    assert [effect.status for effect in drive.done(RejectLeg)] == [480]
    assert_nothing_left(drive)
    drive = instructed()
    drive.feed(said(1, Pause(100.0), Answer(), Pause(1000.0)))
    drive.after(100.1)
    drive.after(900.0)
    assert drive.record.status == "in-progress", "once it is answered its own limit counts"


def test_a_rejected_caller_hears_the_status_the_server_chose() -> None:
    drive = instructed()
    drive.feed(said(1, Reject(603)))
    assert [effect.status for effect in drive.done(RejectLeg)] == [603]
    assert outcome(drive) == ("busy", "CALL_REJECTED", "api")


@pytest.mark.parametrize("status", REJECT_STATUSES)
def test_a_caller_is_refused_with_every_status_that_may_be_asked_for(status: int) -> None:
    drive = instructed()
    drive.feed(said(1, Reject(status)))
    assert [effect.status for effect in drive.done(RejectLeg)] == [status]
    assert drive.record.sip_status == status
    assert_nothing_left(drive)


def test_a_server_without_a_word_lets_it_ring_until_the_timeout() -> None:
    drive = instructed()
    drive.feed(said(1))
    drive.after(29.9)
    assert not drive.record.status.ended
    drive.after(0.2)
    assert [effect.status for effect in drive.done(RejectLeg)] == [480]
    assert outcome(drive) == ("no-answer", "NO_ANSWER", "system")
    assert "webhook.failed" not in drive.events()
    assert_nothing_left(drive)


def test_a_server_without_a_word_lets_an_answered_party_go() -> None:
    drive = instructed(inbound=False)
    drive.feed(said(1))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")
    assert_nothing_left(drive)


def test_a_server_that_fails_costs_a_caller_who_waits_a_480() -> None:
    drive = instructed()
    drive.feed(failed(1))
    assert [effect.status for effect in drive.done(RejectLeg)] == [480]
    assert outcome(drive) == ("failed", "NORMAL_TEMPORARY_FAILURE", "system")
    (alert,) = [save for save in drive.done(Save) if save.event == "webhook.failed"]
    assert alert.details == {
        "reason": "http_status",
        "message": "answered 500",
        "http_status": 500,
        "attempts": 2,
        "webhook_url": URL,
    }
    assert_nothing_left(drive)


def test_a_server_that_fails_ends_an_answered_call() -> None:
    drive = instructed(inbound=False)
    drive.feed(failed(1))
    assert outcome(drive) == ("completed", "NORMAL_TEMPORARY_FAILURE", "system")


@pytest.mark.parametrize("late", [said(2, Hangup()), failed(7), said(0)])
def test_an_answer_to_another_question_is_none(late: Event) -> None:
    drive = instructed()
    assert drive.feed(late) == []


def test_nobody_waits_for_the_answer_once_the_caller_is_gone() -> None:
    drive = instructed()
    drive.feed(LegCancelled(A))
    assert drive.done(StopAsking) == [StopAsking(1)]
    assert drive.feed(said(1, Answer())) == []
    assert_nothing_left(drive)


def test_a_server_may_have_itself_asked_again_but_not_for_ever() -> None:
    drive = instructed()
    drive.feed(said(1, Answer(), RequestInstructions(NEXT)))
    assert drive.done(AskWebhook)[-1] == AskWebhook(2, NEXT, "POST", "call.redirected")
    for number in range(2, MAX_REQUESTS + 1):
        assert not drive.record.status.ended
        drive.feed(said(number, RequestInstructions(NEXT)))
    assert len(drive.done(AskWebhook)) == MAX_REQUESTS
    assert outcome(drive) == ("completed", "NORMAL_TEMPORARY_FAILURE", "system")
    assert "webhook.failed" in drive.events()


# --- in the middle of a call --------------------------------------------------------------------------------


def test_a_call_goes_on_until_the_server_has_answered() -> None:
    drive = streamed()
    drive.feed(RedirectRequested(NEXT, "GET"))
    assert drive.effects == [AskWebhook(1, NEXT, "GET", "call.redirected")]
    drive.feed(said(1, DIAL))
    assert StopAgent("stopped", "transferred") in drive.effects
    assert drive.done(DialLeg)
    assert drive.record.stream is not None and drive.record.stream.state == "stopped"
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    assert drive.done(LinkMedia) == [LinkMedia(A, B)]


def test_a_second_party_is_let_go_and_charged_no_further() -> None:
    drive = bridged()
    drive.after(30)
    drive.feed(RedirectRequested(NEXT), said(1, AGENT))
    assert [effect.leg for effect in drive.done(HangUpLeg)] == [B]
    drive.feed(AgentOpened())
    assert drive.done(StartAgent) == [StartAgent(A)]
    drive.after(600)
    drive.feed(LegCancelled(B))  # news of a leg that is over
    assert not drive.record.status.ended
    drive.feed(RedirectRequested(NEXT), said(2, Hangup()))
    # Ten and a half minutes of the caller at 40, one started minute of the party at 60.
    assert drive.done(Finish)[0].charge_paise == 11 * 40 + 60
    assert_nothing_left(drive)


def test_what_was_played_is_cut_off() -> None:
    drive = Drive(Play("prompt:long"), Hangup()).start()
    drive.feed(LegConfirmed(A), RedirectRequested(NEXT), said(1, Play("prompt:short"), Pause(60)))
    assert drive.done(StopAudio) == [StopAudio(A)]
    assert [effect.url for effect in drive.done(PlayAudio)] == ["prompt:long", "prompt:short"]


@pytest.mark.parametrize("answer", [said(1), failed(1)])
def test_a_server_that_says_nothing_or_fails_changes_nothing_of_a_call_that_is_up(answer: Event) -> None:
    drive = streamed()
    drive.feed(RedirectRequested(NEXT), answer)
    assert not drive.done(StopAgent) and not drive.record.status.ended
    assert ("webhook.failed" in drive.events()) is isinstance(answer, InstructionsFailed)


def test_a_newer_question_takes_the_place_of_an_older_one() -> None:
    drive = streamed()
    drive.feed(RedirectRequested(URL), RedirectRequested(NEXT))
    assert drive.done(StopAsking) == [StopAsking(1)]
    assert drive.feed(said(1, Hangup())) == []
    drive.feed(said(2, Hangup()))
    assert drive.record.status.ended


def test_a_caller_who_rings_may_be_sent_elsewhere() -> None:
    drive = instructed()
    drive.feed(said(1), RedirectRequested(NEXT), said(2, Answer(), Pause(600)))
    assert drive.record.status == "in-progress"
    drive.after(60)
    assert not drive.record.status.ended, "the ring timeout no longer counts"


def test_a_question_of_the_plan_stays_asked_beside_one_of_the_api() -> None:
    drive = instructed(inbound=False)
    drive.feed(RedirectRequested(NEXT))
    assert not drive.done(StopAsking)
    drive.feed(failed(2), said(1, Play("prompt:hello")))
    assert drive.done(PlayAudio)
    drive.feed(RedirectRequested(NEXT), said(3, Pause(60)))
    drive.after(30)
    assert not drive.record.status.ended


def test_what_the_api_has_asked_goes_before_a_question_of_the_plan() -> None:
    drive = instructed(inbound=False)
    drive.feed(RedirectRequested(NEXT), said(2, Pause(60)))
    assert drive.done(StopAsking) == [StopAsking(1)]
    drive.after(30)
    assert not drive.record.status.ended


def test_a_party_that_has_not_answered_cannot_be_redirected() -> None:
    drive = Drive(AGENT, inbound=False).start()
    drive.feed(RedirectRequested(NEXT))
    assert not drive.done(AskWebhook)
    (alert,) = [save for save in drive.done(Save) if save.event == "webhook.failed"]
    assert alert.details["reason"] == "state"


def test_a_party_joined_with_one_of_another_call_cannot_be_redirected() -> None:
    drive = Drive(Answer(), Dial(make_party())).start()
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    drive.feed(asked(A, replaces=REPLACES), PartnerFound(PARTNER, 7), PartnerReady(PARTNER, 8))
    drive.feed(RedirectRequested(NEXT))
    assert not drive.done(AskWebhook)
    assert "webhook.failed" in drive.events()
