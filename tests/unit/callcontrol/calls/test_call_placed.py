"""Placed calls on virtual time; money, recordings and timers of any call."""

import pytest

from callcontrol.calls.charges import Rates
from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects.agent import StopAgent
from callcontrol.calls.effects.media import (
    LinkMedia,
    PlayAudio,
    PlayRingback,
    SendDigits,
    StartRecording,
    StopAudio,
)
from callcontrol.calls.effects.records import ExtendReserve, Finish, Save
from callcontrol.calls.effects.signalling import DialLeg, HangUpLeg, RejectLeg
from callcontrol.calls.events.agent import AgentOpened, AgentTransfer
from callcontrol.calls.events.answers import ReserveExtended, ReserveRefused, Timer, TimerFired
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.events.legs import LegAnswered, LegEnded, LegFailed, LegProgress
from callcontrol.calls.events.media import DigitsSent, PlaybackEnded, RecordingEnded
from callcontrol.calls.hangup_cause import CALL_REJECTED, SYSTEM_SHUTDOWN
from callcontrol.calls.plan import Answer, Hangup, Pause, Play, Reject, SendDtmf
from callcontrol.models import CallStatus
from tests.support.call_drive import (
    DIAL,
    A,
    B,
    Drive,
    assert_nothing_left,
    bridged,
    forward,
    outcome,
    placed,
    streamed,
)
from tests.support.domain import CALLER


def test_a_plan_of_many_steps() -> None:
    drive = placed(SendDtmf("1"), Pause(2.0), Answer(), Play("prompt:x", 2), DIAL, Hangup())
    assert drive.events() == ["call.initiated", "call.ringing", "call.answered"]
    assert drive.done(SendDigits) == [SendDigits(A, "1")]
    drive.feed(DigitsSent(A, "1"))
    drive.after(2.0)
    assert drive.done(PlayAudio) == [PlayAudio(A, "prompt:x", 2)]
    drive.feed(PlaybackEnded(A), LegProgress(B, 180))
    assert drive.done(PlayRingback) == [PlayRingback(A)]
    drive.feed(LegProgress(B, 183, b"sdp"))
    assert StopAudio(A) in drive.effects and LinkMedia(A, B) in drive.effects
    drive.feed(LegProgress(B, 180))
    assert not drive.effects, "a ringing tone would cover the early media"
    drive.feed(LegAnswered(B, b"sdp"), LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")
    assert_nothing_left(drive)


def test_a_sound_that_cannot_be_played_is_passed_over_and_reported() -> None:
    drive = placed(Play("https://customer.example/a.wav", 2), Pause(1.0))
    drive.feed(PlaybackEnded(A, "answered with status 404"))
    (alert,) = [save for save in drive.done(Save) if save.event == "webhook.failed"]
    assert alert.details == {
        "reason": "play",
        "message": "answered with status 404",
        "http_status": None,
        "attempts": 1,
        "webhook_url": "https://customer.example/a.wav",
    }
    drive.after(1.0)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")
    assert_nothing_left(drive)


def test_a_second_party_that_fails_lets_the_plan_go_on() -> None:
    drive = placed(DIAL, Play("prompt:sorry"))
    drive.feed(LegProgress(B, 180), LegFailed(B, 486))
    assert StopAudio(A) in drive.effects
    drive.feed(PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")


def test_the_first_party_hangs_up_while_the_second_rings() -> None:
    drive = placed(DIAL)
    drive.feed(LegProgress(B, 180), LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert drive.done(HangUpLeg)[0].leg == B
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (486, ("busy", "USER_BUSY", "callee")),
        (600, ("busy", "USER_BUSY", "callee")),
        (603, ("busy", "CALL_REJECTED", "callee")),
        (408, ("no-answer", "NO_USER_RESPONSE", "callee")),
        (404, ("failed", "UNALLOCATED_NUMBER", "carrier")),
        (488, ("failed", "BEARERCAPABILITY_NOTAVAIL", "carrier")),
        (504, ("failed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")),
    ],
)
def test_a_placed_call_that_is_not_answered(status: int, expected: tuple[str, str, str]) -> None:
    drive = Drive(Pause(1), inbound=False).start()
    drive.feed(LegFailed(A, status, "reason"))
    assert outcome(drive) == expected
    assert (drive.record.sip_status, drive.record.sip_reason) == (status, "reason")
    assert_nothing_left(drive)


def test_a_408_after_ringing_is_no_answer_and_no_reason_to_ring_again() -> None:
    drive = Drive(Pause(1), inbound=False, routes=2).start()
    drive.feed(LegProgress(A, 180), LegFailed(A, 408))
    assert outcome(drive) == ("no-answer", "NO_USER_RESPONSE", "callee")
    assert len(drive.done(DialLeg)) == 1


def test_the_api_ends_a_call_at_any_time() -> None:
    drive = Drive(Pause(60), inbound=False).start()
    drive.feed(LegProgress(A, 180), HangupRequested())
    assert outcome(drive) == ("canceled", "ORIGINATOR_CANCEL", "api")
    assert_nothing_left(drive)
    drive = placed(Pause(60))
    drive.feed(HangupRequested())
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")
    assert_nothing_left(drive)
    drive = forward()
    drive.feed(HangupRequested())
    assert outcome(drive) == ("canceled", "ORIGINATOR_CANCEL", "api")
    assert drive.done(RejectLeg)[0].status == 480
    assert_nothing_left(drive)


def test_the_process_ends_a_call() -> None:
    drive = streamed()
    drive.feed(HangupRequested("system", SYSTEM_SHUTDOWN))
    assert outcome(drive) == ("completed", "SYSTEM_SHUTDOWN", "system")
    assert StopAgent("stopped", "server_shutdown") in drive.effects
    drive = Drive(Pause(60), inbound=False).start()
    drive.feed(HangupRequested("system", SYSTEM_SHUTDOWN))
    assert outcome(drive) == ("failed", "SYSTEM_SHUTDOWN", "system")


def test_a_caller_may_be_rejected_or_hung_up_by_the_plan() -> None:
    drive = Drive(Reject(603)).start()
    assert drive.done(RejectLeg)[0].status == 603
    assert outcome(drive) == ("busy", "CALL_REJECTED", "api")
    drive = Drive(Hangup()).start()
    assert outcome(drive) == ("no-answer", "NORMAL_CLEARING", "api")
    drive = Drive(Answer(), Reject(486)).start()
    assert outcome(drive) == ("completed", "USER_BUSY", "api")
    assert_nothing_left(drive)


def test_an_answer_that_the_plan_ends_at_once_is_shown_as_an_answered_call() -> None:
    drive = Drive(DIAL, Answer(), Hangup())
    drive.record.status_webhook_url = "https://customer.example/events"
    drive.start()
    drive.feed(LegFailed(B, 486, "Busy Here", "response"))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")
    shown = {effect.event: effect.shown["status"] for effect in drive.done(Save) if effect.shown is not None}
    assert shown == {"call.answered": "in-progress"}


def test_a_caller_whose_call_cannot_be_taken() -> None:
    drive = Drive(DIAL)
    ending = Ending(CallStatus.FAILED, CALL_REJECTED, "system", 480, "Temporarily Unavailable")
    drive._take(drive.machine.refuse(ending, drive.now))
    assert drive.done(RejectLeg)[0].status == 480
    assert outcome(drive) == ("failed", "CALL_REJECTED", "system")
    assert (drive.record.sip_status, drive.record.from_) == (480, CALLER)
    assert_nothing_left(drive)


def test_the_time_limit() -> None:
    drive = placed(Pause(10_000), time_limit_s=90.0, rates=Rates(0, 0))
    drive.after(89)
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.after(2)
    assert outcome(drive) == ("completed", "ALLOTTED_TIMEOUT", "system")
    assert drive.record.duration_sec == 90
    assert_nothing_left(drive)


def test_the_reserve_grows_with_the_call() -> None:
    drive = bridged()  # five pulses of both legs are held
    drive.after(5 * 60 - 6)
    assert not drive.done(ExtendReserve)
    drive.after(2)
    assert drive.done(ExtendReserve) == [ExtendReserve(1000)]
    drive.feed(ReserveExtended(1000))
    drive.after(5 * 60)
    assert drive.done(ExtendReserve)[1:] == [ExtendReserve(1500)]


def test_a_call_is_cut_before_it_costs_more_than_is_held() -> None:
    drive = bridged()
    drive.after(5 * 60 - 4)
    drive.feed(ReserveRefused())
    drive.after(3)
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.after(2)
    assert outcome(drive) == ("completed", "BALANCE_EXHAUSTED", "system")
    assert drive.done(Finish)[0].charge_paise == 500
    assert_nothing_left(drive)


def test_a_second_party_that_nobody_reserved_for() -> None:
    drive = streamed()
    drive.after(270)
    drive.feed(AgentTransfer("+919812345678"), LegAnswered(B, b"sdp"))
    drive.after(0)
    assert drive.done(ExtendReserve) == [ExtendReserve(40 * 5 + 60 + 500)]
    drive.feed(ReserveRefused())
    drive.after(0)
    assert outcome(drive) == ("completed", "BALANCE_EXHAUSTED", "system")
    assert_nothing_left(drive)


def test_a_recording_is_waited_for() -> None:
    drive = bridged(record=True)
    assert drive.done(StartRecording) == [StartRecording(A, 2)]
    drive.feed(LegEnded(A))
    assert not drive.machine.finished
    drive.feed(LegEnded(B), AgentOpened(), HangupRequested())
    drive.feed(RecordingEnded(A, "/r/x.wav", 1500))
    assert drive.record.recording_path == "/r/x.wav"
    assert drive.record.recording_url == f"/recordings/{drive.record.call_sid}.wav"
    assert drive.record.recording_status == "completed"
    assert drive.events()[-1] == "call.recording.ready"
    assert_nothing_left(drive)


def test_a_recording_that_fails_is_not_waited_for() -> None:
    drive = bridged(record=True)
    drive.feed(RecordingEnded(A, "/r/x.wav", 0, "disk full"))
    assert drive.record.status is CallStatus.IN_PROGRESS
    assert drive.record.recording_status == "failed"
    assert isinstance(drive.effects[-1], Save), "it is written at once"
    drive.feed(LegEnded(A))
    assert drive.record.recording_url is None
    assert "call.recording.ready" not in drive.events()
    assert_nothing_left(drive)


def test_a_recording_that_never_ends_is_given_up() -> None:
    drive = bridged(record=True)
    drive.feed(LegEnded(A))
    assert not drive.machine.finished
    drive.after(11)
    assert drive.record.recording_status == "failed"
    assert_nothing_left(drive)


def test_timers_that_fire_late_do_nothing() -> None:
    for timer in Timer:
        if timer not in (Timer.TIME_LIMIT,):
            drive = bridged()
            drive.feed(TimerFired(timer))
            assert drive.record.status is CallStatus.IN_PROGRESS, timer
