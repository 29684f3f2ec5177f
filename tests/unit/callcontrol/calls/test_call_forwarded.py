"""Forwarded calls on virtual time: every way they can go and end."""

import pytest

from callcontrol.calls.effects.media import AnswerOffer, CloseMedia, LinkMedia, RelayDigit, SendDigits
from callcontrol.calls.effects.records import Arm, FindRoute, Finish, RestGateway, Save
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg, RingLeg, TakeOffer
from callcontrol.calls.events.answers import RouteRefused, Timer
from callcontrol.calls.events.legs import (
    LegAnswered,
    LegCancelled,
    LegEnded,
    LegFailed,
    LegOffered,
    LegProgress,
    LegRefused,
    OfferTaken,
)
from callcontrol.calls.events.media import DigitReceived, MediaSilent
from callcontrol.calls.hangup_cause import CALL_REJECTED
from callcontrol.calls.plan import Dial
from callcontrol.models import CallStatus
from tests.support.call_drive import (
    DIAL,
    A,
    B,
    C,
    Drive,
    assert_nothing_left,
    bridged,
    forward,
    make_party,
    outcome,
)


def test_a_forwarded_call_in_all_its_steps() -> None:
    drive = forward()
    assert [type(effect) for effect in drive.all] == [TakeOffer, FindRoute, Arm, DialLeg]
    assert drive.done(DialLeg)[0].peer_leg == A
    drive.feed(LegProgress(B, 180))
    assert drive.effects == [RingLeg(A, 180, False), Save("call.ringing")]
    drive.after(3)
    drive.feed(LegAnswered(B, b"sdp"))
    assert AnswerLeg(A) in drive.effects and LinkMedia(A, B) in drive.effects
    assert drive.record.status is CallStatus.IN_PROGRESS
    armed = [effect.timer for effect in drive.effects if isinstance(effect, Arm)]
    assert armed == [Timer.TIME_LIMIT, Timer.MONEY], "once for both legs"
    drive.answer_a()
    drive.after(61.4)
    drive.feed(LegEnded(A))
    assert [type(effect) for effect in drive.effects] == [
        CloseMedia,
        HangUpLeg,
        CloseMedia,
        Finish,
    ]
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "caller")
    assert (drive.record.duration_sec, drive.record.bill_duration_sec) == (61, 120)
    assert drive.done(Finish)[0].charge_paise == 2 * (40 + 60)
    assert drive.events() == ["call.ringing", "call.answered"]
    assert_nothing_left(drive)


def test_ringing_is_told_once() -> None:
    drive = forward()
    drive.feed(
        LegProgress(B, 180), LegProgress(B, 180), LegProgress(B, 183, b"sdp"), LegProgress(B, 183, b"sdp")
    )
    assert drive.done(RingLeg) == [RingLeg(A, 180, False), RingLeg(A, 183, True)]
    assert drive.done(LinkMedia)[0] == LinkMedia(A, B)
    assert drive.events() == ["call.ringing", "call.early-media"]


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
    assert drive.done(RejectLeg)[0].status == rejection
    assert drive.done(Finish)[0].charge_paise == 0
    assert_nothing_left(drive)


def test_the_next_gateway_is_tried_and_the_first_rests() -> None:
    drive = forward(routes=2)
    drive.feed(LegFailed(B, 503, "", "response", 30.0))
    assert drive.done(RestGateway) == [RestGateway("gateway-1", 30.0)]
    assert [effect.attempt.gateway.gateway_sid for effect in drive.done(DialLeg)] == [
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
    assert drive.done(HangUpLeg)[0].leg == C
    assert_nothing_left(drive)


def test_the_caller_cancels() -> None:
    drive = forward()
    drive.feed(LegProgress(B, 180), LegCancelled(A))
    assert outcome(drive) == ("no-answer", "ORIGINATOR_CANCEL", "caller")
    assert drive.done(HangUpLeg) == [HangUpLeg(B, drive.done(HangUpLeg)[0].cause)]
    assert not drive.done(RejectLeg), "SIP has answered the INVITE already"
    assert_nothing_left(drive)


def test_a_caller_who_has_cancelled_before_our_answer_left_was_not_answered() -> None:
    drive = forward()
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"), LegCancelled(A))
    assert outcome(drive) == ("no-answer", "ORIGINATOR_CANCEL", "caller")
    assert drive.done(Finish)[0].charge_paise == 0
    record = drive.record
    assert (record.answered_at, record.duration_sec, record.bill_duration_sec) == (None, 0, 0)
    assert record.sip_status == 487
    assert_nothing_left(drive)


def test_a_party_that_may_not_be_dialled() -> None:
    drive = Drive(DIAL, obliging=False).start()
    drive.feed(OfferTaken(A), RouteRefused(CALL_REJECTED, "no"))
    assert outcome(drive) == ("failed", "CALL_REJECTED", "system")
    assert drive.done(RejectLeg)[0].status == 403
    assert_nothing_left(drive)


def test_the_callers_offer_is_refused_before_anyone_is_dialled() -> None:
    for problem, status in (("codec", 488), ("ports", 503)):
        drive = Drive(DIAL, obliging=False).start()
        drive.feed(LegRefused(A, problem))  # type: ignore[arg-type]
        assert drive.done(RejectLeg)[0].status == status
        assert drive.record.sip_status == status
        assert not drive.done(FindRoute)
        assert_nothing_left(drive)


def test_new_offers_of_both_sides_are_answered_by_us() -> None:
    drive = bridged()
    assert drive.feed(LegOffered(A, b"hold")) == [AnswerOffer(A, b"hold")]
    assert drive.feed(LegOffered(B, b"")) == [AnswerOffer(B, b"")]


def test_a_lost_party_is_told_from_one_that_hung_up() -> None:
    drive = bridged()
    drive.feed(LegEnded(A, clean=False))
    assert outcome(drive) == ("completed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")
    drive = bridged()
    drive.feed(LegEnded(B, clean=False))
    assert outcome(drive) == ("completed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")
    assert_nothing_left(drive)


def test_silence_of_either_party_ends_the_call() -> None:
    for leg, party in ((A, "a"), (B, "b")):
        drive = bridged()
        drive.feed(MediaSilent(leg, 60.0))
        assert outcome(drive) == ("completed", "MEDIA_TIMEOUT", "system")
        assert drive.record.sip_reason == f"no RTP from leg {party} for 60 s"
        assert len(drive.done(HangUpLeg)) == 2
        assert_nothing_left(drive)


def test_digits_in_signalling_are_sent_on_and_others_are_left_to_the_relay() -> None:
    drive = bridged()
    assert drive.feed(DigitReceived(A, "5", 100, in_band=False))[1:] == [SendDigits(B, "5", 100)]
    assert drive.feed(DigitReceived(B, "6", 100, in_band=False))[1:] == [SendDigits(A, "6", 100)]
    drive.feed(DigitReceived(A, "7", 100))
    assert drive.effects == [
        Save("call.dtmf", {"digit": "7", "duration_ms": 100, "leg": "a"}),
        RelayDigit(B, "7", 100),
    ]
