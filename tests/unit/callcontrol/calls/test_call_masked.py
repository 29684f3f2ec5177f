"""Masked calls on virtual time: every way they can go and end, and what is told of it."""

import pytest

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.charges import Rates
from callcontrol.calls.effects.media import (
    ConnectMedia,
    LinkMedia,
    PlayRingback,
    PlaySounds,
    StartRecording,
    StopAudio,
)
from callcontrol.calls.effects.records import ExtendReserve, Finish
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RingLeg
from callcontrol.calls.effects.transfers import RefuseTransfer
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import ReserveRefused
from callcontrol.calls.events.commands import (
    HangupRequested,
    RedirectRequested,
    StepsRequested,
    TimeLimitRequested,
    TransferCommand,
)
from callcontrol.calls.events.legs import LegAnswered, LegCancelled, LegEnded, LegFailed, LegProgress
from callcontrol.calls.events.media import MediaSilent, RecordingEnded
from callcontrol.calls.events.transfers import TransferRequested
from callcontrol.calls.hangup_cause import CRASH, SYSTEM_SHUTDOWN
from callcontrol.calls.live.control import reject_reason
from callcontrol.calls.records.end import close_record
from sip import SipUri
from tests.support.call_drive import A, B, make_party
from tests.support.domain import NOW, OWN_NUMBER
from tests.support.masked_drive import Masked, a_answered, bridged


def test_a_masked_call_in_all_its_steps() -> None:
    drive = Masked()
    assert drive.shown["status"] == "initiated" and drive.legs == [("initiated", None), ("queued", None)]
    drive.feed(LegProgress(A, 180))
    assert drive.shown["status"] == "a_ringing"
    drive.feed(LegAnswered(A, b"sdp"))
    assert drive.shown["status"] == "a_answered" and drive.shown["answered_at"] is None
    assert drive.done(PlayRingback) == [PlayRingback(A)], "it hears ringing at once"
    first, second = (effect.party for effect in drive.done(DialLeg))
    assert (first.caller_id, second.caller_id) == (OWN_NUMBER, OWN_NUMBER)
    drive.after(4)
    drive.feed(LegProgress(B, 180))
    assert drive.shown["status"] == "b_ringing" and drive.legs[1] == ("ringing", None)
    drive.feed(LegProgress(B, 180))
    drive.after(6)
    drive.feed(LegAnswered(B, b"sdp"))
    assert StopAudio(A) in drive.effects and LinkMedia(A, B) in drive.effects
    assert drive.shown["status"] == "in-progress"
    assert drive.shown["answered_at"] == "2026-01-02T03:04:15.000Z"
    drive.after(61.4)
    drive.feed(LegEnded(B))
    assert drive.ended() == ("completed", "NORMAL_CLEARING")
    assert (drive.shown["duration_sec"], drive.shown["bill_duration_sec"]) == (61, 120)
    assert drive.legs == [("completed", "NORMAL_CLEARING")] * 2
    # Each leg costs from its own answer: 72 s and 62 s are two pulses each.
    assert drive.done(Finish)[0].charge_paise == 4 * 60
    assert drive.told == ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress", "completed"]


def test_early_media_of_the_second_party_takes_the_place_of_the_ringing_tone() -> None:
    drive = a_answered()
    drive.feed(LegProgress(B, 183, b"sdp"))
    assert drive.effects[:3] == [
        ConnectMedia(B, b"sdp", early=True),
        StopAudio(A),
        LinkMedia(A, B),
    ]
    assert drive.shown["status"] == "b_ringing"
    drive.feed(LegProgress(B, 180))
    assert len(drive.done(PlayRingback)) == 1, "what the second party plays is not covered"
    drive.feed(LegFailed(B, 486))
    assert drive.ended() == ("no-answer", "USER_BUSY")


def test_parties_that_answer_without_ringing_are_not_said_to_ring() -> None:
    drive = Masked()
    drive.feed(LegAnswered(A, b"sdp"), LegAnswered(B, b"sdp"), LegEnded(A))
    assert drive.ended() == ("completed", "NORMAL_CLEARING")
    assert drive.told == ["initiated", "a_answered", "in-progress", "completed"]


@pytest.mark.parametrize(
    ("event", "status", "cause", "leg"),
    [
        (LegFailed(A, 486, "Busy Here"), "no-answer", "USER_BUSY", "busy"),
        (LegFailed(A, 603, "Decline"), "no-answer", "CALL_REJECTED", "busy"),
        (LegFailed(A, 480), "no-answer", "NO_ANSWER", "no-answer"),
        (LegFailed(A, 404), "failed", "UNALLOCATED_NUMBER", "failed"),
        (LegFailed(A, 503), "failed", "NORMAL_CIRCUIT_CONGESTION", "failed"),
        (LegFailed(A, 408, "", "timeout"), "failed", "NO_USER_RESPONSE", "failed"),
        (HangupRequested(), "no-answer", "ORIGINATOR_CANCEL", "canceled"),
        (HangupRequested("system", SYSTEM_SHUTDOWN), "failed", "SYSTEM_SHUTDOWN", "failed"),
    ],
)
def test_the_first_party_is_not_reached(event: Event, status: str, cause: str, leg: str) -> None:
    drive = Masked()
    drive.feed(LegProgress(A, 180), event)
    assert drive.ended() == (status, cause)
    assert drive.legs == [(leg, cause), ("queued", None)]
    assert drive.done(Finish)[0].charge_paise == 0
    assert (drive.shown["duration_sec"], drive.shown["bill_duration_sec"]) == (0, 0)
    assert drive.told == ["initiated", "a_ringing", status]


def test_the_first_party_does_not_answer() -> None:
    drive = Masked()
    drive.feed(LegProgress(A, 180))
    drive.after(60)
    assert drive.ended() == ("no-answer", "NO_ANSWER")
    assert drive.legs == [("no-answer", "NO_ANSWER"), ("queued", None)]


@pytest.mark.parametrize(
    ("event", "status", "cause", "legs"),
    [
        (LegFailed(B, 486), "no-answer", "USER_BUSY", ("completed", "busy")),
        (LegFailed(B, 480), "no-answer", "NO_ANSWER", ("completed", "no-answer")),
        (LegFailed(B, 503), "failed", "NORMAL_CIRCUIT_CONGESTION", ("completed", "failed")),
        (LegFailed(B, 0, "", "resolve"), "failed", "DESTINATION_OUT_OF_ORDER", ("completed", "failed")),
        (LegEnded(A), "no-answer", "NORMAL_CLEARING", ("completed", "canceled")),
        (LegEnded(A, clean=False), "failed", "RECOVERY_ON_TIMER_EXPIRE", ("completed", "canceled")),
        (HangupRequested(), "no-answer", "NORMAL_CLEARING", ("completed", "canceled")),
        (MediaSilent(A, 60.0), "failed", "MEDIA_TIMEOUT", ("completed", "canceled")),
    ],
)
def test_the_second_party_is_not_reached(
    event: Event, status: str, cause: str, legs: tuple[str, str]
) -> None:
    drive = a_answered()
    drive.feed(LegProgress(B, 180))
    drive.after(7)
    drive.feed(event)
    assert drive.ended() == (status, cause)
    assert tuple(leg for leg, _ in drive.legs) == legs
    # Its first party was answered and costs what it costs; nobody talked.
    assert drive.done(Finish)[0].charge_paise == 60
    assert (drive.shown["duration_sec"], drive.shown["bill_duration_sec"]) == (0, 0)
    assert drive.shown["answered_at"] is None
    assert drive.told == ["initiated", "a_ringing", "a_answered", "b_ringing", status]


def test_the_second_party_does_not_answer() -> None:
    drive = a_answered()
    drive.feed(LegProgress(B, 180))
    drive.after(60)
    assert drive.ended() == ("no-answer", "NO_ANSWER")
    assert drive.legs == [("completed", "NORMAL_CLEARING"), ("no-answer", "NO_ANSWER")]


def test_there_is_no_way_to_the_second_party() -> None:
    drive = Masked()
    drive.reachable = False
    drive.feed(LegProgress(A, 180), LegAnswered(A, b"sdp"))
    assert drive.ended() == ("failed", "NORMAL_CIRCUIT_CONGESTION")
    assert drive.legs == [("completed", "NORMAL_CLEARING"), ("failed", "NORMAL_CIRCUIT_CONGESTION")]
    assert drive.told == ["initiated", "a_ringing", "a_answered", "failed"]


@pytest.mark.parametrize("leaves", [A, B])
def test_either_may_hang_up(leaves: int) -> None:
    drive = bridged()
    drive.after(30)
    drive.feed(LegEnded(leaves), LegEnded(B if leaves == A else A))
    assert drive.ended() == ("completed", "NORMAL_CLEARING")
    assert drive.shown["bill_duration_sec"] == 60


def test_the_limit_counts_from_the_second_answer_and_is_announced() -> None:
    drive = bridged(limit_s=60.0)
    assert drive.after(49.9) == []
    drive.after(0.1)
    assert [effect.leg for effect in drive.effects if isinstance(effect, PlaySounds)] == [A, B]
    assert drive.shown["status"] == "in-progress"
    drive.after(10)
    assert drive.ended() == ("completed", "ALLOTTED_TIMEOUT")
    assert {effect.leg for effect in drive.done(HangUpLeg)} == {A, B}
    assert (drive.shown["duration_sec"], drive.shown["bill_duration_sec"]) == (60, 60)


def test_a_short_limit_is_announced_half_way() -> None:
    drive = bridged(limit_s=10.0)
    drive.after(4.9)
    assert not drive.done(PlaySounds)
    drive.after(0.2)
    assert len(drive.done(PlaySounds)) == 2
    drive.after(4.9)
    assert drive.ended() == ("completed", "ALLOTTED_TIMEOUT")


@pytest.mark.parametrize("limit_s", [None, 600.0])
def test_a_limit_that_was_set_before_the_second_answer_holds(limit_s: float | None) -> None:
    drive = a_answered(limit_s=limit_s)
    drive.feed(TimeLimitRequested(90.0))
    drive.after(30)  # the ringing counts: it is the limit of any call
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    drive.after(59.9)
    assert drive.shown["status"] == "in-progress"
    assert len(drive.done(PlaySounds)) == 2
    drive.after(0.2)
    assert drive.ended() == ("completed", "ALLOTTED_TIMEOUT")


def test_no_limit_is_no_limit() -> None:
    drive = bridged()
    for _ in range(400):
        drive.after(60)
        if any(isinstance(effect, ExtendReserve) for effect in drive.effects):
            [*_, extend] = drive.done(ExtendReserve)
            drive.machine._charges.extended(extend.total_paise, drive.now)
            drive.timers.clear()
    assert drive.shown["status"] == "in-progress"


def test_the_wallet_is_empty_in_mid_call() -> None:
    drive = bridged()
    while not drive.done(ExtendReserve):
        drive.after(1)
    drive.feed(ReserveRefused())
    drive.after(60)
    assert drive.ended() == ("completed", "BALANCE_EXHAUSTED")
    assert drive.done(Finish)[0].charge_paise <= 10 * 60


def test_it_is_recorded_from_the_second_answer_on() -> None:
    drive = a_answered(record=True)
    drive.feed(LegProgress(B, 180))
    assert not drive.done(StartRecording)
    drive.feed(LegAnswered(B, b"sdp"))
    assert drive.done(StartRecording) == [StartRecording(A, 2)]
    drive.feed(LegEnded(A), RecordingEnded(A, "/r.wav", 1000))
    assert drive.ended() == ("completed", "NORMAL_CLEARING")
    assert drive.shown["recording_url"] is not None
    assert not a_answered().done(StartRecording)


def test_an_inbound_caller_is_answered_when_the_second_party_answers() -> None:
    drive = Masked(inbound=True)
    assert not drive.done(PlayRingback), "a caller who waits is told in signalling"
    drive.feed(LegProgress(B, 183, b"sdp"))
    assert RingLeg(A, 183, True) in drive.effects
    drive.feed(LegAnswered(B, b"sdp"))
    assert AnswerLeg(A) in drive.effects
    drive.feed(LegEnded(A))
    assert drive.ended() == ("completed", "NORMAL_CLEARING")
    assert drive.told == ["b_ringing", "in-progress", "completed"], "initiated is told with its record"


def test_an_inbound_caller_gives_up() -> None:
    drive = Masked(inbound=True)
    drive.feed(LegProgress(B, 180), LegCancelled(A))
    assert drive.ended() == ("no-answer", "ORIGINATOR_CANCEL")
    assert [leg for leg, _ in drive.legs] == ["no-answer", "canceled"]


def test_parties_of_a_masked_call_are_not_transferred() -> None:
    drive = bridged()
    for leg in (A, B):
        drive.feed(TransferRequested(leg, SipUri.parse("sip:+919899999999@example.com")))
        assert drive.effects == [RefuseTransfer(leg, 603)]
    machine = drive.machine
    assert reject_reason(machine, TransferCommand("a", make_party())) is not None
    assert reject_reason(machine, RedirectRequested("https://customer.example/")) is not None
    assert reject_reason(machine, StepsRequested(())) is not None
    assert reject_reason(machine, HangupRequested()) is None
    drive.feed(LegEnded(A))
    assert drive.ended() == ("completed", "NORMAL_CLEARING")


@pytest.mark.parametrize(
    ("events", "status", "charge_paise"),
    [
        ([], "failed", 0),
        ([LegProgress(A, 180)], "failed", 0),
        ([LegAnswered(A, b"sdp")], "failed", 60),
        ([LegAnswered(A, b"sdp"), LegProgress(B, 180)], "failed", 60),
        ([LegAnswered(A, b"sdp"), LegAnswered(B, b"sdp")], "completed", 120),
    ],
)
def test_a_call_that_a_restart_cut_off_has_an_end(
    events: list[Event], status: str, charge_paise: int
) -> None:
    drive = Masked()
    drive.after(1)
    drive.feed(*events)
    assert close_record(drive.record, CRASH, Rates(), PRODUCTS.of(drive.record)) == charge_paise
    assert (drive.shown["status"], drive.shown["hangup_cause"]) == (status, "CRASH")
    assert drive.shown["bill_duration_sec"] == (60 if status == "completed" else 0)
    assert drive.shown["duration_sec"] == 0
    if drive.shown["answered_at"] is not None:
        assert drive.shown["ended_at"] == drive.shown["answered_at"]
    made = PRODUCTS.of(drive.record).webhook_event(drive.record, "call.completed", {}, event_id="1", at=NOW)
    assert made is not None and made.event == f"masking.call.{status}"
