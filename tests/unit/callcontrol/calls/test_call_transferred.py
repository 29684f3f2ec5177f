"""Calls whose parties have each other transferred, on virtual time."""

import pytest

from callcontrol.calls.effects.agent import MoveAgent, TellAgentError
from callcontrol.calls.effects.media import (
    LinkMedia,
    PlayAudio,
    PlayRingback,
    RelayDigit,
    SendDigits,
    StopAudio,
)
from callcontrol.calls.effects.records import Finish
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg
from callcontrol.calls.effects.transfers import (
    AcceptTransfer,
    AdoptLeg,
    AnswerPartner,
    AskPartner,
    LinkPartner,
    PassDigit,
    ReferLeg,
    RefuseReplacement,
    RefuseTransfer,
    TellTransfer,
)
from callcontrol.calls.events.agent import AgentTransfer
from callcontrol.calls.events.answers import RouteRefused
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.events.legs import (
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegProgress,
    LegRefused,
)
from callcontrol.calls.events.media import DigitReceived, MediaSilent
from callcontrol.calls.events.transfers import (
    JoinRequested,
    PartnerDigit,
    PartnerFound,
    PartnerGone,
    PartnerMissing,
    PartnerReady,
    PartnerRefused,
    ReplacementCalled,
    TransferRequested,
)
from callcontrol.calls.hangup_cause import CALL_REJECTED
from callcontrol.calls.plan import Answer, Dial, Hangup, Pause, Play
from callcontrol.calls.transfers.manager import DIALLED_WITHIN_S, MAX_DIALLED
from callcontrol.calls.transfers.transfer import party_of
from callcontrol.errors import DomainError
from callcontrol.models.parties import PhoneTarget, SipTarget
from sip import Replaces, SipUri
from tests.support.call_drive import (
    A,
    B,
    C,
    Drive,
    assert_nothing_left,
    bridged,
    forward,
    make_party,
    outcome,
    placed,
    streamed,
)

D = 3
TARGET = SipUri.parse("tel:+919812345678")
REPLACES = Replaces("other", "to", "from")
PARTNER = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"


def asked(leg: int, uri: SipUri = TARGET, **changes: object) -> TransferRequested:
    return TransferRequested(leg, uri, **changes)  # type: ignore[arg-type]


def told(drive: Drive) -> list[int]:
    return [effect.status for effect in drive.done(TellTransfer)]


@pytest.mark.parametrize(("leg", "other"), [(A, B), (B, A)])
class TestBlind:
    def test_the_target_takes_the_place_of_the_party_that_asked(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg))
        assert drive.done(AcceptTransfer) == [AcceptTransfer(leg)]
        dialled = drive.done(DialLeg)[-1]
        assert (dialled.leg, dialled.party.target) == (C, PhoneTarget("+919812345678"))
        drive.feed(LegProgress(C, 180))
        drive.feed(LegAnswered(C, b"sdp"))
        assert LinkMedia(other, C) in drive.effects
        assert told(drive) == [180, 200]
        assert "call.transferred" in drive.events()
        drive.feed(LegEnded(leg))
        assert not drive.record.status.ended
        drive.after(60)
        drive.feed(LegEnded(C))
        assert drive.record.status.value == "completed"
        assert_nothing_left(drive)

    def test_a_party_that_asked_and_stays_is_hung_up(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), LegAnswered(C, b"sdp"))
        assert drive.after(1) == []
        assert [effect.leg for effect in drive.after(2) if isinstance(effect, HangUpLeg)] == [leg]
        drive.feed(LegEnded(other))
        assert_nothing_left(drive)

    def test_a_target_that_is_busy_leaves_everything_as_it_was(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), LegFailed(C, 486, "Busy Here"))
        assert told(drive) == [486]
        assert not drive.record.status.ended
        drive.feed(asked(leg), LegAnswered(D, b"sdp"), LegEnded(leg))
        assert told(drive) == [486, 200]
        drive.feed(LegEnded(D))
        assert_nothing_left(drive)

    def test_the_party_that_asked_goes_ahead(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), LegEnded(leg))
        assert PlayRingback(other) in drive.effects
        drive.feed(LegProgress(C, 180), LegAnswered(C, b"sdp"))
        assert StopAudio(other) in drive.effects and LinkMedia(other, C) in drive.effects
        drive.after(10)
        assert not drive.record.status.ended
        drive.feed(LegEnded(C))
        assert_nothing_left(drive)

    def test_nobody_is_left_to_go_back_to(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), LegEnded(leg), LegFailed(C, 486, "Busy Here"))
        assert outcome(drive)[0] == "completed"
        assert [effect.leg for effect in drive.done(HangUpLeg)] == [other]
        assert_nothing_left(drive)

    def test_the_other_party_hangs_up_meanwhile(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), LegProgress(C, 180), LegEnded(other))
        assert told(drive) == [180, 487]
        assert {effect.leg for effect in drive.done(HangUpLeg)} == {leg, C}
        assert_nothing_left(drive)

    def test_one_transfer_at_a_time(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), asked(other))
        assert drive.done(RefuseTransfer) == [RefuseTransfer(other, 491)]
        drive.feed(HangupRequested())
        assert_nothing_left(drive)

    def test_a_target_that_may_not_be_dialled(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.obliging = False
        drive.feed(asked(leg), RouteRefused(CALL_REJECTED, "no"))
        assert drive.done(RefuseTransfer) == [RefuseTransfer(leg, 403)]
        assert len(drive.done(DialLeg)) == 1
        drive.feed(LegEnded(A))
        assert_nothing_left(drive)

    def test_the_ring_timeout_ends_the_transfer_and_not_the_call(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg), LegProgress(C, 180))
        drive.after(61)
        assert told(drive)[-1] >= 400
        assert not drive.record.status.ended
        drive.feed(LegEnded(A))
        assert_nothing_left(drive)


def test_every_party_is_charged_for_its_own_time() -> None:
    drive = bridged()
    drive.after(30)
    drive.feed(asked(A), LegAnswered(C, b"sdp"), LegEnded(A))
    drive.after(90)
    drive.feed(LegEnded(B))
    # The caller one pulse at 40; the callee two minutes and the target a minute and a half, at 60 each.
    assert drive.done(Finish)[0].charge_paise == 40 + 2 * 60 + 2 * 60
    assert (drive.record.duration_sec, drive.record.bill_duration_sec) == (120, 180)


def test_a_party_that_is_joined_elsewhere_is_billed_after_the_one_it_succeeds() -> None:
    drive = Drive(Answer(), Pause(300.0), Dial(make_party())).start()
    drive.after(300)
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    drive.after(30)
    drive.feed(asked(A, replaces=REPLACES), PartnerFound(PARTNER, 7), PartnerReady(PARTNER, 8), LegEnded(A))
    drive.after(90)
    drive.feed(PartnerGone())
    # The caller's six minutes at 40, the callee's two at 60; the call's own time is both in turn.
    assert drive.done(Finish)[0].charge_paise == 6 * 40 + 2 * 60
    assert (drive.record.duration_sec, drive.record.bill_duration_sec) == (420, 6 * 60 + 2 * 60)


def test_what_the_plan_had_for_a_party_that_is_gone_is_left_out() -> None:
    drive = Drive(Dial(make_party()), Play("prompt:bye"), Hangup()).start()
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"), LegConfirmed(A))
    drive.feed(asked(A), LegAnswered(C, b"sdp"), LegEnded(A), LegEnded(B))
    assert not drive.done(PlayAudio)
    assert_nothing_left(drive)


def test_the_plan_does_not_go_on_for_a_party_that_went_ahead() -> None:
    drive = Drive(Dial(make_party()), Play("prompt:bye"), Pause(600.0)).start()
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"), LegConfirmed(A))
    drive.feed(asked(A), LegEnded(A), LegEnded(B))
    assert not drive.done(PlayAudio)
    assert told(drive) == [487]
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_the_plan_goes_on_for_a_party_whose_transfer_is_given_up() -> None:
    """Its peer is gone, so there is nobody left to be transferred."""
    drive = Drive(Dial(make_party()), Pause(600.0)).start()
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"), LegConfirmed(A))
    drive.feed(asked(A), LegProgress(C, 180), LegEnded(B))
    assert told(drive) == [180, 487]
    assert [effect.leg for effect in drive.done(HangUpLeg)] == [C]
    assert not drive.record.status.ended
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


@pytest.mark.parametrize("first", [A, B])
def test_who_asked_first_is_hung_up_when_its_successor_asks_too(first: int) -> None:
    drive = bridged()
    drive.feed(asked(first), LegAnswered(C, b"sdp"))
    drive.feed(asked(C), LegAnswered(D, b"sdp"))
    drive.after(3)
    assert [effect.leg for effect in drive.done(HangUpLeg)] == [first, C]
    assert not drive.record.status.ended
    drive.feed(LegEnded(D))
    assert_nothing_left(drive)


def test_an_agent_does_not_transfer_a_party_that_transfers_itself() -> None:
    drive = streamed()
    drive.feed(asked(A), LegProgress(B, 180))
    drive.feed(AgentTransfer("+919812345678"), AgentTransfer("tel:+911", mode="refer"))
    assert [effect.ref for effect in drive.done(TellAgentError)] == ["transfer", "transfer"]
    assert len(drive.done(DialLeg)) == 1 and not drive.done(ReferLeg)
    drive.feed(LegAnswered(B, b"sdp"), LegEnded(A), LegEnded(B))
    assert_nothing_left(drive)


@pytest.mark.parametrize("leg", [A, B])
def test_the_silence_of_a_party_that_is_gone_ends_nothing(leg: int) -> None:
    drive = bridged()
    drive.feed(asked(leg), LegEnded(leg), MediaSilent(leg, 60.0))
    assert not drive.record.status.ended
    drive.feed(LegAnswered(C, b"sdp"), LegEnded(C))
    assert_nothing_left(drive)


def test_nobody_is_transferred_before_the_answer() -> None:
    drive = forward()
    drive.feed(asked(A), asked(B))
    assert drive.done(RefuseTransfer) == [RefuseTransfer(A, 603), RefuseTransfer(B, 603)]
    drive.feed(LegCancelled(A))
    assert_nothing_left(drive)


def test_the_caller_of_an_agent_hands_it_to_someone_else() -> None:
    drive = streamed()
    drive.feed(asked(A), LegAnswered(B, b"sdp"))
    assert MoveAgent(B) in drive.effects
    drive.feed(LegEnded(A))
    assert not drive.record.status.ended
    drive.feed(LegEnded(B))
    assert_nothing_left(drive)


def test_an_agents_transfer_comes_first() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), asked(A))
    assert drive.done(RefuseTransfer) == [RefuseTransfer(A, 491)]
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_a_party_that_we_dialled_may_ask_too() -> None:
    drive = placed(Dial(make_party()))
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    drive.feed(asked(A), LegAnswered(C, b"sdp"), LegEnded(A), LegEnded(C))
    assert_nothing_left(drive)


@pytest.mark.parametrize(("leg", "other"), [(A, B), (B, A)])
class TestAttended:
    def test_two_calls_are_joined(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerFound(PARTNER, 7))
        assert drive.effects[-2:] == [AcceptTransfer(leg), AskPartner(PARTNER, 7)]
        drive.feed(PartnerReady(PARTNER, 8))
        assert LinkPartner(other, PARTNER, 8) in drive.effects
        assert told(drive) == [200]
        drive.feed(LegEnded(leg))
        assert not drive.record.status.ended
        drive.feed(PartnerGone())
        assert drive.record.status.value == "completed"
        assert_nothing_left(drive)

    def test_the_end_of_the_remaining_party_ends_the_call(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerFound(PARTNER, 7), PartnerReady(PARTNER, 8))
        drive.after(3)
        drive.feed(LegEnded(other))
        assert_nothing_left(drive)

    def test_digits_go_on_to_the_other_call_and_come_from_it(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerFound(PARTNER, 7), PartnerReady(PARTNER, 8))
        drive.feed(DigitReceived(other, "5", 100, in_band=False), DigitReceived(leg, "6", 100))
        assert drive.done(PassDigit) == [PassDigit("5", 100, in_band=False)]
        drive.feed(PartnerDigit("7", 120, in_band=True), PartnerDigit("8", 120, in_band=False))
        assert drive.done(RelayDigit) == [RelayDigit(other, "7", 120)]
        assert drive.done(SendDigits) == [SendDigits(other, "8", 120)]
        drive.feed(PartnerGone())
        assert_nothing_left(drive)

    def test_the_other_call_gives_up_its_leg(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(JoinRequested(PARTNER, leg))
        assert drive.done(AnswerPartner) == [AnswerPartner(PARTNER, other)]
        assert [effect.leg for effect in drive.done(HangUpLeg)] == [leg]
        assert not drive.record.status.ended
        drive.feed(LegEnded(other))
        assert_nothing_left(drive)

    def test_the_other_call_refuses(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerFound(PARTNER, 7), PartnerRefused())
        assert told(drive) == [603]
        drive.feed(LegEnded(other))
        assert_nothing_left(drive)

    def test_the_other_call_ends_before_it_answers(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerFound(PARTNER, 7), PartnerGone())
        assert told(drive) == [603]
        assert not drive.record.status.ended
        drive.feed(asked(leg), LegAnswered(C, b"sdp"))
        assert told(drive) == [603, 200]
        drive.feed(LegEnded(C))
        assert_nothing_left(drive)

    def test_nobody_is_left_when_the_other_call_ends(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerFound(PARTNER, 7), LegEnded(leg), PartnerGone())
        assert_nothing_left(drive)

    def test_a_dialog_that_is_not_ours_is_for_the_target_to_replace(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(asked(leg, replaces=REPLACES), PartnerMissing())
        assert drive.done(DialLeg)[-1].party.replaces == str(REPLACES)
        drive.feed(LegAnswered(C, b"sdp"), LegEnded(leg), LegEnded(C))
        assert_nothing_left(drive)

    def test_a_call_in_the_making_is_not_joined(self, leg: int, other: int) -> None:
        drive = forward()
        drive.feed(JoinRequested(PARTNER, leg))
        assert drive.done(AnswerPartner) == [AnswerPartner(PARTNER, None)]
        drive.feed(LegCancelled(A))
        assert_nothing_left(drive)


@pytest.mark.parametrize(("leg", "other"), [(A, B), (B, A)])
class TestReplacement:
    def test_a_caller_takes_the_place_of_a_party(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.feed(ReplacementCalled(leg, 1, "+919800000000"))
        assert drive.done(AdoptLeg) == [AdoptLeg(C, 1)]
        assert AnswerLeg(C) in drive.effects and LinkMedia(other, C) in drive.effects
        assert [effect.leg for effect in drive.done(HangUpLeg)] == [leg]
        drive.feed(LegConfirmed(C))
        drive.after(30)
        drive.feed(LegEnded(C))
        assert_nothing_left(drive)

    def test_an_offer_that_cannot_be_used(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.obliging = False
        drive.feed(ReplacementCalled(leg, 1), LegRefused(C, "codec"))
        assert drive.done(RejectLeg)[0].status == 488
        assert not drive.record.status.ended
        drive.feed(LegEnded(A))
        assert_nothing_left(drive)

    def test_the_newcomer_gives_up(self, leg: int, other: int) -> None:
        drive = bridged()
        drive.obliging = False
        drive.feed(ReplacementCalled(leg, 1), LegCancelled(C))
        assert not drive.record.status.ended
        drive.feed(LegEnded(A))
        assert_nothing_left(drive)

    def test_a_call_in_the_making_takes_nobody(self, leg: int, other: int) -> None:
        drive = forward()
        drive.feed(ReplacementCalled(leg, 1))
        assert drive.done(RefuseReplacement) == [RefuseReplacement(1)]
        drive.feed(LegCancelled(A))
        assert_nothing_left(drive)


class TestWhomAReferNames:
    @pytest.mark.parametrize(
        ("uri", "local", "target"),
        [
            ("tel:+919812345678", False, PhoneTarget("+919812345678")),
            ("tel:+91-98123-45678", False, PhoneTarget("+919812345678")),
            ("tel:98123-45678;phone-context=+91", False, PhoneTarget("+919812345678")),
            ("sip:+919812345678@192.0.2.1", True, PhoneTarget("+919812345678")),
            ("sip:9812345678@192.0.2.1;user=phone", True, PhoneTarget("+919812345678")),
            ("sip:carol@gateway.example:5070", False, SipTarget("carol", "gateway.example", 5070)),
        ],
    )
    def test_targets(self, uri: str, local: bool, target: object) -> None:
        party = party_of(asked(A, SipUri.parse(uri), local=local), forward().record)
        assert (party.target, party.passthrough) == (target, False)

    def test_custom_header_fields_go_along_and_others_do_not(self) -> None:
        uri = SipUri.parse("sip:carol@g?X-Foo=bar%20b&Subject=no&x-bar=1&Route=%3Csip:evil%3E")
        party = party_of(asked(A, uri), forward().record)
        assert party.headers == (("X-Foo", "bar b"), ("x-bar", "1"))

    @pytest.mark.parametrize(
        ("uri", "local"),
        [("sips:carol@g", False), ("sip:g", False), ("sip:carol@us", True), ("tel:12", False)],
    )
    def test_nobody(self, uri: str, local: bool) -> None:
        with pytest.raises(DomainError):
            party_of(asked(A, SipUri.parse(uri), local=local), forward().record)


def test_refused_targets_are_not_called_one_after_another_without_end() -> None:
    drive = bridged()
    for number in range(20):
        drive.feed(asked(A), LegFailed(C + number, 486, "Busy Here"))
    assert told(drive) == [486] * MAX_DIALLED
    assert drive.done(RefuseTransfer) == [RefuseTransfer(A, 503)] * (20 - MAX_DIALLED)
    drive.after(DIALLED_WITHIN_S)
    drive.feed(asked(A))
    assert len(drive.done(AcceptTransfer)) == MAX_DIALLED + 1
