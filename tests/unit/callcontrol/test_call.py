"""The call machine on virtual time: every way a call can go and end."""

import pytest

from callcontrol import effects as do
from callcontrol.events import (
    AgentClosed,
    AgentDigits,
    AgentExit,
    AgentHangup,
    AgentOpened,
    AgentRefused,
    AgentTransfer,
    DigitReceived,
    DigitsSent,
    HangupRequested,
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegOffered,
    LegProgress,
    LegRefused,
    MediaSilent,
    OfferTaken,
    PlaybackEnded,
    PlayoutDrained,
    RecordingEnded,
    ReserveExtended,
    ReserveRefused,
    RouteRefused,
    Timer,
    TimerFired,
)
from callcontrol.hangup import CALL_REJECTED, SYSTEM_SHUTDOWN
from callcontrol.hunt import Ending
from callcontrol.meter import Rates
from callcontrol.models import CallStatus
from callcontrol.plan import Answer, Dial, Hangup, Pause, Play, Reject, SendDtmf, Step, Stream
from media.streams import choose_stream
from tests.support.call_drive import CALLER, Drive, assert_nothing_left, make_party

A, B, C = 0, 1, 2
AGENT = Stream(choose_stream("wss://agent.example/ws"))
DIAL = Dial(make_party())


def outcome(drive: Drive) -> tuple[str, str | None, str | None]:
    record = drive.record
    return record.status.value, record.hangup_cause, record.hangup_source


def forward(**changes: object) -> Drive:
    return Drive(DIAL, **changes).start()  # type: ignore[arg-type]


def bridged(**changes: object) -> Drive:
    drive = forward(**changes)
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    drive.answer_a()
    return drive


def streamed(**changes: object) -> Drive:
    drive = Drive(AGENT, **changes).start()  # type: ignore[arg-type]
    drive.feed(AgentOpened(), LegConfirmed(A))
    return drive


def placed(*steps: Step, **changes: object) -> Drive:
    drive = Drive(*steps, inbound=False, **changes).start()  # type: ignore[arg-type]
    drive.feed(LegProgress(A, 180), LegAnswered(A, b"sdp"))
    return drive


# --- forwarded ---


def test_a_forwarded_call_in_all_its_steps() -> None:
    drive = forward()
    assert [type(effect) for effect in drive.all] == [do.TakeOffer, do.FindRoute, do.Arm, do.DialLeg]
    assert drive.done(do.DialLeg)[0].like == A
    drive.feed(LegProgress(B, 180))
    assert drive.effects == [do.RingLeg(A, 180, False), do.Save("call.ringing")]
    drive.after(3)
    drive.feed(LegAnswered(B, b"sdp"))
    assert do.AnswerLeg(A) in drive.effects and do.LinkMedia(A, B) in drive.effects
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.answer_a()
    drive.after(61.4)
    drive.feed(LegEnded(A))
    assert [type(effect) for effect in drive.effects] == [
        do.CloseMedia,
        do.HangUpLeg,
        do.CloseMedia,
        do.Finish,
    ]
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "caller")
    assert (drive.record.duration_sec, drive.record.bill_duration_sec) == (61, 120)
    assert drive.done(do.Finish)[0].charge_paise == 2 * (40 + 60)
    assert drive.events() == ["call.ringing", "call.answered"]
    assert_nothing_left(drive)


def test_ringing_is_told_once() -> None:
    drive = forward()
    drive.feed(
        LegProgress(B, 180), LegProgress(B, 180), LegProgress(B, 183, b"sdp"), LegProgress(B, 183, b"sdp")
    )
    assert drive.done(do.RingLeg) == [do.RingLeg(A, 180, False), do.RingLeg(A, 183, True)]
    assert drive.done(do.LinkMedia)[0] == do.LinkMedia(A, B)
    assert drive.events() == ["call.ringing"]


@pytest.mark.parametrize(
    ("failure", "expected", "rejection"),
    [
        (LegFailed(B, 486, "Busy Here"), ("busy", "USER_BUSY", "callee"), 486),
        (LegFailed(B, 480, "Gone"), ("no-answer", "NO_ANSWER", "callee"), 480),
        (LegFailed(B, 407, "Auth"), ("failed", "CALL_REJECTED", "carrier"), 403),
        (LegFailed(B, 503, "Down"), ("failed", "NORMAL_CIRCUIT_CONGESTION", "carrier"), 503),
        (LegFailed(B, 408, "", "timeout"), ("failed", "NO_USER_RESPONSE", "carrier"), 408),
        (LegFailed(B, 503, "", "transport"), ("failed", "DESTINATION_OUT_OF_ORDER", "carrier"), 503),
        (LegFailed(B, 404, "", "resolve"), ("failed", "DESTINATION_OUT_OF_ORDER", "carrier"), 404),
        (LegRefused(B, "codec"), ("failed", "BEARERCAPABILITY_NOTAVAIL", "carrier"), 488),
        (LegRefused(B, "ports"), ("failed", "NORMAL_CIRCUIT_CONGESTION", "system"), 503),
    ],
)
def test_a_callee_that_is_not_reached(
    failure: LegFailed | LegRefused, expected: tuple[str, str, str], rejection: int
) -> None:
    drive = forward()
    drive.feed(failure)
    assert outcome(drive) == expected
    assert drive.done(do.RejectLeg)[0].status == rejection
    assert drive.done(do.Finish)[0].charge_paise == 0
    assert_nothing_left(drive)


def test_the_next_gateway_is_tried_and_the_first_rests() -> None:
    drive = forward(routes=2)
    drive.feed(LegFailed(B, 503, "", "response", 30.0))
    assert drive.done(do.RestGateway) == [do.RestGateway("gateway-1", 30.0)]
    assert [effect.attempt.gateway.gateway_sid for effect in drive.done(do.DialLeg)] == [
        "gateway-1",
        "gateway-2",
    ]
    drive.feed(LegAnswered(C, b"sdp"))
    drive.feed(LegEnded(C))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_late_news_of_a_gateway_that_was_given_up_is_ignored() -> None:
    drive = forward(routes=2)
    drive.feed(LegFailed(B, 503))
    drive.feed(LegAnswered(B, b"sdp"), LegProgress(B, 180), LegEnded(B))
    assert drive.record.status is CallStatus.INITIATED
    drive.feed(LegCancelled(A))
    assert_nothing_left(drive)


def test_the_ring_timeout_covers_all_gateways() -> None:
    drive = Drive(Dial(make_party(ring_timeout_s=20.0)), routes=2).start()
    drive.after(15)
    drive.feed(LegFailed(B, 503))
    drive.after(6)
    assert outcome(drive) == ("no-answer", "NO_ANSWER", "system")
    assert drive.done(do.HangUpLeg)[0].leg == C
    assert_nothing_left(drive)


def test_the_caller_cancels() -> None:
    drive = forward()
    drive.feed(LegProgress(B, 180), LegCancelled(A))
    assert outcome(drive) == ("no-answer", "ORIGINATOR_CANCEL", "caller")
    assert drive.done(do.HangUpLeg) == [do.HangUpLeg(B, drive.done(do.HangUpLeg)[0].cause)]
    assert not drive.done(do.RejectLeg), "SIP has answered the INVITE already"
    assert_nothing_left(drive)


def test_a_party_that_may_not_be_dialled() -> None:
    drive = Drive(DIAL, obliging=False).start()
    drive.feed(OfferTaken(A), RouteRefused(CALL_REJECTED, "no"))
    assert outcome(drive) == ("failed", "CALL_REJECTED", "system")
    assert drive.done(do.RejectLeg)[0].status == 403
    assert_nothing_left(drive)


def test_the_callers_offer_is_refused_before_anyone_is_dialled() -> None:
    for problem, status in (("codec", 488), ("ports", 503)):
        drive = Drive(DIAL, obliging=False).start()
        drive.feed(LegRefused(A, problem))  # type: ignore[arg-type]
        assert drive.done(do.RejectLeg)[0].status == status
        assert drive.record.sip_status == status
        assert not drive.done(do.FindRoute)
        assert_nothing_left(drive)


def test_new_offers_of_both_sides_are_answered_by_us() -> None:
    drive = bridged()
    assert drive.feed(LegOffered(A, b"hold")) == [do.AnswerOffer(A, b"hold")]
    assert drive.feed(LegOffered(B, b"")) == [do.AnswerOffer(B, b"")]


def test_a_lost_party_is_told_from_one_that_hung_up() -> None:
    drive = bridged()
    drive.feed(LegEnded(A, clean=False))
    assert outcome(drive) == ("completed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")
    drive = bridged()
    drive.feed(LegEnded(B, clean=False))
    assert outcome(drive) == ("completed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")
    assert_nothing_left(drive)


def test_silence_of_either_party_ends_the_call() -> None:
    for leg in (A, B):
        drive = bridged()
        drive.feed(MediaSilent(leg, 60.0))
        assert outcome(drive) == ("completed", "MEDIA_TIMEOUT", "system")
        assert len(drive.done(do.HangUpLeg)) == 2
        assert_nothing_left(drive)


def test_digits_in_signalling_are_sent_on_and_others_are_not() -> None:
    drive = bridged()
    assert drive.feed(DigitReceived(A, "5", 100, in_band=False))[1:] == [do.SendDigits(B, "5", 100)]
    assert drive.feed(DigitReceived(B, "6", 100, in_band=False))[1:] == [do.SendDigits(A, "6", 100)]
    drive.feed(DigitReceived(A, "7", 100))
    assert drive.effects == [do.Save("call.dtmf", {"digit": "7", "duration_ms": 100, "leg": "a"})]


# --- streamed ---


def test_a_caller_is_answered_when_the_agent_is_there() -> None:
    drive = Drive(AGENT).start()
    assert [type(effect) for effect in drive.all] == [do.TakeOffer, do.RingLeg, do.Save, do.OpenAgent]
    drive.feed(AgentOpened())
    assert [effect for effect in drive.effects if isinstance(effect, do.AnswerLeg | do.StartAgent)] == [
        do.AnswerLeg(A),
        do.StartAgent(A),
    ]
    drive.feed(DigitReceived(A, "5", 160))
    assert do.TellAgentDigit("5", 160) in drive.effects
    drive.feed(LegEnded(A))
    assert do.StopAgent("callended", "caller_hangup") in drive.effects
    assert drive.events() == [
        "call.ringing",
        "call.answered",
        "stream.started",
        "call.dtmf",
        "stream.stopped",
    ]
    assert_nothing_left(drive)


def test_an_agent_that_refuses() -> None:
    drive = Drive(AGENT).start()
    drive.feed(AgentRefused("http_status", 403, 1))
    assert outcome(drive) == ("failed", "STREAM_DISCONNECTED", "stream")
    assert drive.done(do.RejectLeg)[0].status == 480
    saved = [effect for effect in drive.done(do.Save) if effect.event == "stream.failed"]
    assert saved[0].details["http_status"] == 403
    assert_nothing_left(drive)


def test_a_caller_who_cancels_while_the_agent_is_connected() -> None:
    drive = Drive(AGENT).start()
    drive.feed(LegCancelled(A))
    assert do.StopAgent("callended", "caller_hangup") in drive.effects
    drive.feed(AgentOpened(), AgentRefused("timeout"))
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    "leaving", [AgentClosed(AgentExit.NORMAL, 1000), AgentHangup(drain=True)], ids=["close", "hangup"]
)
def test_an_agent_that_leaves_is_heard_to_its_end(leaving: AgentClosed | AgentHangup) -> None:
    drive = streamed()
    drive.feed(leaving)
    assert drive.effects == [do.Arm(Timer.DRAIN, 10.0), do.DrainAgent(A)]
    drive.feed(AgentClosed(AgentExit.LOST), AgentDigits("1"), DigitReceived(A, "1", 100))
    drive.after(4)
    drive.feed(PlayoutDrained(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert_nothing_left(drive)


def test_the_last_words_of_an_agent_are_bounded() -> None:
    drive = streamed()
    drive.feed(AgentClosed(AgentExit.NORMAL, 1000))
    drive.after(9.9)
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.after(0.2)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    ("leaving", "cause"),
    [
        (AgentClosed(AgentExit.AT_ONCE, 4000), "NORMAL_CLEARING"),
        (AgentHangup(drain=False), "NORMAL_CLEARING"),
        (AgentClosed(AgentExit.LOST, 1006), "STREAM_DISCONNECTED"),
    ],
)
def test_an_agent_that_leaves_at_once(leaving: AgentClosed | AgentHangup, cause: str) -> None:
    drive = streamed()
    drive.feed(leaving)
    assert outcome(drive) == ("completed", cause, "stream")
    assert ("stream.failed" in drive.events()) is (cause == "STREAM_DISCONNECTED")
    assert_nothing_left(drive)


def test_an_agent_sends_digits() -> None:
    drive = streamed()
    assert drive.feed(AgentDigits("1#", 100, 50)) == [do.SendDigits(A, "1#", 100, 50)]
    assert drive.feed(DigitsSent(A, "1#")) == [do.TellAgentDigitsSent("1#")]
    drive.feed(DigitsSent(A, "1#", "the far end takes none"))
    assert drive.effects == [do.TellAgentError("dtmf_unavailable", "the far end takes none", "dtmf")]


def test_an_outbound_party_and_its_agent() -> None:
    drive = Drive(AGENT, inbound=False).start()
    assert not drive.done(do.OpenAgent)
    drive.feed(LegProgress(A, 180), LegProgress(A, 180))
    assert len(drive.done(do.OpenAgent)) == 1
    drive.feed(AgentOpened())
    assert not drive.done(do.StartAgent)
    drive.feed(LegAnswered(A, b"sdp"))
    assert drive.done(do.StartAgent) == [do.StartAgent(A)]
    drive.feed(LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_an_outbound_party_that_answers_before_its_agent() -> None:
    drive = Drive(AGENT, inbound=False).start()
    drive.feed(LegAnswered(A, b"sdp"))
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.feed(AgentOpened())
    assert drive.done(do.StartAgent) == [do.StartAgent(A)]


def test_an_agent_that_is_lost_while_the_party_rings() -> None:
    for news in (AgentClosed(AgentExit.LOST), AgentClosed(AgentExit.NORMAL), AgentHangup()):
        drive = Drive(AGENT, inbound=False).start()
        drive.feed(LegProgress(A, 180), AgentOpened(), news)
        assert outcome(drive) == ("failed", "STREAM_DISCONNECTED", "stream")
        assert drive.done(do.HangUpLeg)[0].leg == A
        assert_nothing_left(drive)


def test_an_agent_connected_while_ringing_survives_a_change_of_gateway() -> None:
    drive = Drive(AGENT, inbound=False, routes=2).start()
    drive.feed(LegProgress(A, 180), AgentOpened(), LegFailed(A, 503))
    drive.feed(LegAnswered(1, b"sdp"))
    assert drive.done(do.StartAgent) == [do.StartAgent(1)]
    drive.feed(LegEnded(1))
    assert_nothing_left(drive)


def test_a_plan_may_go_on_after_an_agent() -> None:
    drive = Drive(AGENT, Play("prompt:bye")).start()
    drive.feed(AgentOpened(), AgentClosed(AgentExit.AT_ONCE, 4000))
    assert drive.done(do.PlayAudio) == [do.PlayAudio(A, "prompt:bye")]
    drive.feed(PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")


def test_a_fallback_for_an_agent_that_refuses() -> None:
    drive = Drive(AGENT, Play("prompt:sorry")).start()
    drive.feed(AgentRefused("timeout"))
    assert do.AnswerLeg(A) in drive.effects
    assert drive.done(do.PlayAudio) == [do.PlayAudio(A, "prompt:sorry")]


# --- transfer ---


def test_a_transfer_takes_the_place_of_the_stream() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"))
    assert drive.done(do.DialLeg)[0].party.caller_id == "+918047491899"
    drive.feed(LegProgress(B, 180))
    assert drive.effects == [do.TellAgentTransfer("ringing", 180)]
    drive.feed(LegAnswered(B, b"sdp"))
    kinds = [type(effect) for effect in drive.effects]
    assert kinds.index(do.StopAgent) < kinds.index(do.LinkMedia)
    assert do.StopAgent("stopped", "transferred") in drive.effects
    drive.feed(AgentClosed(AgentExit.NORMAL), LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert drive.done(do.Finish)[0].charge_paise == 100
    assert_nothing_left(drive)


def test_a_transfer_that_fails_leaves_the_stream() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), LegFailed(B, 486))
    assert drive.effects[-1] == do.TellAgentTransfer("failed", 486, "USER_BUSY")
    drive.feed(AgentTransfer("+919812345678"), AgentTransfer("+919812345679"))
    assert isinstance(drive.effects[-1], do.TellAgentError)
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_transfers_that_are_refused() -> None:
    for command in (AgentTransfer("nobody"), AgentTransfer("+919812345678", mode="refer")):
        drive = streamed()
        drive.feed(command)
        assert isinstance(drive.effects[-1], do.TellAgentError)
        assert not drive.done(do.DialLeg)


def test_an_agent_that_leaves_during_a_transfer_gives_it_up() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), AgentHangup(drain=False))
    assert drive.done(do.HangUpLeg)[0].leg == B
    assert_nothing_left(drive)


# --- placed ---


def test_a_plan_of_many_steps() -> None:
    drive = placed(SendDtmf("1"), Pause(2.0), Answer(), Play("prompt:x", 2), DIAL, Hangup())
    assert drive.events() == ["call.initiated", "call.ringing", "call.answered"]
    assert drive.done(do.SendDigits) == [do.SendDigits(A, "1")]
    drive.feed(DigitsSent(A, "1"))
    drive.after(2.0)
    assert drive.done(do.PlayAudio) == [do.PlayAudio(A, "prompt:x", 2)]
    drive.feed(PlaybackEnded(A), LegProgress(B, 180))
    assert drive.done(do.PlayRingback) == [do.PlayRingback(A)]
    drive.feed(LegProgress(B, 183, b"sdp"))
    assert do.StopAudio(A) in drive.effects and do.LinkMedia(A, B) in drive.effects
    drive.feed(LegAnswered(B, b"sdp"), LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")
    assert_nothing_left(drive)


def test_a_second_party_that_fails_lets_the_plan_go_on() -> None:
    drive = placed(DIAL, Play("prompt:sorry"))
    drive.feed(LegProgress(B, 180), LegFailed(B, 486))
    assert do.StopAudio(A) in drive.effects
    drive.feed(PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")


def test_the_first_party_hangs_up_while_the_second_rings() -> None:
    drive = placed(DIAL)
    drive.feed(LegProgress(B, 180), LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert drive.done(do.HangUpLeg)[0].leg == B
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
    assert len(drive.done(do.DialLeg)) == 1


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
    assert drive.done(do.RejectLeg)[0].status == 480
    assert_nothing_left(drive)


def test_the_process_ends_a_call() -> None:
    drive = streamed()
    drive.feed(HangupRequested("system", SYSTEM_SHUTDOWN))
    assert outcome(drive) == ("completed", "SYSTEM_SHUTDOWN", "system")
    assert do.StopAgent("stopped", "server_shutdown") in drive.effects
    drive = Drive(Pause(60), inbound=False).start()
    drive.feed(HangupRequested("system", SYSTEM_SHUTDOWN))
    assert outcome(drive) == ("failed", "SYSTEM_SHUTDOWN", "system")


def test_a_caller_may_be_rejected_or_hung_up_by_the_plan() -> None:
    drive = Drive(Reject(603)).start()
    assert drive.done(do.RejectLeg)[0].status == 603
    assert outcome(drive) == ("busy", "CALL_REJECTED", "api")
    drive = Drive(Hangup()).start()
    assert outcome(drive) == ("no-answer", "NORMAL_CLEARING", "api")
    drive = Drive(Answer(), Reject(486)).start()
    assert outcome(drive) == ("completed", "USER_BUSY", "api")
    assert_nothing_left(drive)


def test_a_caller_whose_call_cannot_be_taken() -> None:
    drive = Drive(DIAL)
    ending = Ending(CallStatus.FAILED, CALL_REJECTED, "system", 480, "Temporarily Unavailable")
    drive._take(drive.machine.refuse(ending, drive.now))
    assert drive.done(do.RejectLeg)[0].status == 480
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


# --- money ---


def test_the_reserve_grows_with_the_call() -> None:
    drive = bridged()  # five pulses of both legs are held
    drive.after(5 * 60 - 6)
    assert not drive.done(do.ExtendReserve)
    drive.after(2)
    assert drive.done(do.ExtendReserve) == [do.ExtendReserve(1000)]
    drive.feed(ReserveExtended(1000))
    drive.after(5 * 60)
    assert drive.done(do.ExtendReserve)[1:] == [do.ExtendReserve(1500)]


def test_a_call_is_cut_before_it_costs_more_than_is_held() -> None:
    drive = bridged()
    drive.after(5 * 60 - 4)
    drive.feed(ReserveRefused())
    drive.after(3)
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.after(2)
    assert outcome(drive) == ("completed", "BALANCE_EXHAUSTED", "system")
    assert drive.done(do.Finish)[0].charge_paise == 500
    assert_nothing_left(drive)


def test_a_second_party_that_nobody_reserved_for() -> None:
    drive = streamed()
    drive.after(270)
    drive.feed(AgentTransfer("+919812345678"), LegAnswered(B, b"sdp"))
    drive.after(0)
    assert drive.done(do.ExtendReserve) == [do.ExtendReserve(40 * 5 + 60 + 500)]
    drive.feed(ReserveRefused())
    drive.after(0)
    assert outcome(drive) == ("completed", "BALANCE_EXHAUSTED", "system")
    assert_nothing_left(drive)


# --- recording ---


def test_a_recording_is_waited_for() -> None:
    drive = bridged(record=True)
    assert drive.done(do.StartRecording) == [do.StartRecording(A, 2)]
    drive.feed(LegEnded(A))
    assert not drive.machine.finished
    drive.feed(LegEnded(B), AgentOpened(), HangupRequested())
    drive.feed(RecordingEnded(A, "/r/x.wav", 1500))
    assert drive.record.recording_path == "/r/x.wav"
    assert drive.record.recording_url == f"/recordings/{drive.record.call_sid}.wav"
    assert drive.events()[-1] == "call.recording.ready"
    assert_nothing_left(drive)


def test_a_recording_that_fails_is_not_waited_for() -> None:
    drive = bridged(record=True)
    drive.feed(RecordingEnded(A, "/r/x.wav", 0, "disk full"))
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.feed(LegEnded(A))
    assert drive.record.recording_url is None
    assert_nothing_left(drive)


def test_a_recording_that_never_ends_is_given_up() -> None:
    drive = bridged(record=True)
    drive.feed(LegEnded(A))
    drive.after(11)
    assert_nothing_left(drive)


def test_timers_that_fire_late_do_nothing() -> None:
    for timer in Timer:
        if timer not in (Timer.TIME_LIMIT,):
            drive = bridged()
            drive.feed(TimerFired(timer))
            assert drive.record.status is CallStatus.IN_PROGRESS, timer
