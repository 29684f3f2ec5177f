"""UPDATE, sent and received, while it rings and after (RFC 3311), and who may offer when (RFC 6337)."""

from typing import Any

import pytest

from sip import OfferAnswered, OfferFailed, OfferReceived
from sip.aio import InboundSession
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer, Side
from tests.support.sip_stage import BOB, Stage
from tests.unit.sip.session.test_forking import within
from tests.unit.sip.session.test_offer_answer import HOLD, answered_raw, call
from tests.unit.sip.session.test_prack import prack, raw_callee, raw_caller
from tests.unit.sip.test_races import losing, sent

ALLOW = "INVITE, ACK, BYE, UPDATE, PRACK"


def ringing_early(session: InboundSession) -> None:
    session.progress(183, SDP)


async def settled_call(stage: Stage) -> tuple[Side, Side]:
    """Alice's call rings at Bob, and the offer of the INVITE has been answered reliably."""
    stage.bob.answer = ringing_early
    alice = stage.alice.call(BOB)
    stage.advance()
    return alice, stage.bob.inbound[0]


class TestRinging:
    @pytest.mark.parametrize("by_caller", [True, False])
    async def test_either_side_offers_while_it_rings(self, stage: Stage, by_caller: bool) -> None:
        alice, bob = await settled_call(stage)
        maker, taker = (alice, bob) if by_caller else (bob, alice)
        maker.session.update(OTHER_SDP)
        stage.advance()
        assert taker.last(OfferReceived).body == OTHER_SDP
        taker.session.accept_offer(HOLD)
        stage.advance()
        assert maker.last(OfferAnswered).body == HOLD
        bob.session.answer(SDP)
        stage.advance()
        holds = alice.events[-1]
        assert getattr(holds, "body", None) == (HOLD if by_caller else OTHER_SDP), "Bob's latest description"
        assert len(sent(stage, b"UPDATE")) == 1
        assert len(sent(stage, b"INVITE")) == 1
        alice.session.hangup()
        stage.finish()

    async def test_an_update_crosses_the_other(self, stage: Stage) -> None:
        alice, bob = await settled_call(stage)
        alice.session.update(OTHER_SDP)
        bob.session.update(HOLD)
        stage.advance()
        assert len(sent(stage, b"SIP/2.0 491")) == 2
        for _ in range(8):
            stage.advance(1)
            for side in (alice, bob):
                if side.names[-1:] == ["OfferReceived"]:
                    side.session.accept_offer(SDP)
        assert alice.last(OfferAnswered) and bob.last(OfferAnswered)
        bob.session.hangup()
        stage.finish()

    async def test_a_lost_update_is_repeated(self, stage: Stage) -> None:
        alice, bob = await settled_call(stage)
        losing(stage, b"UPDATE", 2)
        alice.session.update(OTHER_SDP)
        stage.advance(3)
        bob.session.accept_offer(SDP)
        stage.advance()
        assert alice.last(OfferAnswered).body == SDP
        alice.session.hangup()
        stage.finish()

    async def test_an_update_nobody_answers(self, stage: Stage) -> None:
        alice, bob = await settled_call(stage)
        losing(stage, b"UPDATE", 1000)
        alice.session.update(OTHER_SDP)
        stage.advance(33)
        assert alice.last(OfferFailed).status == 408
        bob.session.answer(SDP)
        stage.advance()
        assert alice.names[-1] == "Answered"
        alice.session.hangup()
        stage.finish()

    async def test_before_the_first_answer_an_offer_is_put_off(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Allow=ALLOW)
        bob.session.progress(183, SDP)
        stage.advance()
        to = raw.responses("INVITE", 183)[0].headers.get("To") or ""
        raw.send(raw.request("UPDATE", branch="u", To=to, CSeq="2 UPDATE", body=OTHER_SDP))
        raw.send(raw.request("UPDATE", branch="v", To=to, CSeq="3 UPDATE"))
        raw.send(raw.request("INVITE", branch="w", To=to, CSeq="4 INVITE", body=OTHER_SDP))
        stage.advance()
        assert raw.responses("UPDATE", 500)[0].headers.get("Retry-After") is not None
        assert len(raw.responses("UPDATE", 200)) == 1
        assert len(raw.responses("INVITE", 500)) == 1
        bob.session.update(OTHER_SDP)
        stage.advance()
        assert raw.requests("UPDATE") == []
        bob.session.hangup()
        stage.finish()

    async def test_a_second_offer_before_the_first_is_answered(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Allow=ALLOW, Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance()
        early = raw.responses("INVITE", 183)[0]
        prack(raw, early)
        to = early.headers.get("To") or ""
        for number in (3, 4):
            raw.send(
                raw.request("UPDATE", branch=f"u{number}", To=to, CSeq=f"{number} UPDATE", body=OTHER_SDP)
            )
        stage.advance()
        assert [r.cseq.number for r in raw.responses("UPDATE", 500)] == [4]
        bob.session.answer(SDP)
        stage.advance()
        bob.session.accept_offer(SDP)
        stage.advance()
        [ok] = raw.responses("UPDATE", 200)
        assert ok.body == SDP
        bob.session.hangup()
        stage.finish()

    async def test_an_offer_that_waits_for_a_party_is_made_to_the_one_that_answers(
        self, stage: Stage
    ) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 183, tag="one", body=SDP, RSeq="1", Require="100rel", Allow=ALLOW)
        stage.advance()
        alice.session.update(OTHER_SDP)
        stage.advance()
        [first] = raw.requests("UPDATE")
        raw.respond(invite, 200, tag="two", body=SDP, Allow=ALLOW)
        stage.advance()
        raw.respond(first, 200, tag="one", body=SDP)
        stage.advance()
        assert "OfferAnswered" not in alice.names, "the party that was asked is out"
        second = raw.requests("UPDATE")[-1]
        assert second.to.tag == "two"
        raw.respond(second, 200, tag="two", body=HOLD)
        stage.advance()
        assert alice.last(OfferAnswered).body == HOLD
        alice.session.hangup()
        stage.finish()

    async def test_an_offer_of_a_party_that_is_out_is_dropped(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 183, tag="one", body=SDP, RSeq="1", Require="100rel")
        stage.advance()
        within(raw, invite, "UPDATE", "one", body=OTHER_SDP)
        stage.advance()
        raw.respond(invite, 200, tag="two", body=SDP)
        stage.advance()
        assert len(raw.responses("UPDATE", 481)) == 1
        alice.session.accept_offer(SDP)
        alice.session.hangup()
        stage.finish()


class TestConfirmed:
    async def test_by_update_where_the_peer_allows_it(self, stage: Stage) -> None:
        alice, bob = call(stage)
        alice.session.update(HOLD)
        stage.advance()
        bob.session.accept_offer(OTHER_SDP)
        stage.advance()
        assert alice.last(OfferAnswered).body == OTHER_SDP
        bob.session.update(SDP)
        stage.advance()
        alice.session.reject_offer(488)
        stage.advance()
        assert bob.last(OfferFailed).status == 488
        assert len(sent(stage, b"UPDATE")) == 2
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("body", [OTHER_SDP, b""])
    async def test_by_reinvite_where_it_does_not(self, stage: Stage, body: bytes) -> None:
        raw, _ = answered_raw(stage)
        bob = stage.bob.inbound[0]
        bob.session.update(body)
        stage.advance()
        assert raw.requests("UPDATE") == []
        assert raw.requests("INVITE")[0].body == (body or SDP), "to refresh, our description is repeated"
        bob.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("status", [405, 501])
    async def test_by_reinvite_when_the_peer_knew_no_better(self, stage: Stage, status: int) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 200, body=SDP, Allow=ALLOW)
        stage.advance()
        alice.session.update(OTHER_SDP)
        stage.advance()
        raw.respond(raw.requests("UPDATE")[0], status)
        stage.advance()
        raw.respond(raw.requests("INVITE")[-1], 200, body=HOLD)
        stage.advance()
        assert alice.last(OfferAnswered).body == HOLD
        alice.session.hangup()
        stage.finish()

    async def test_a_refresh_offers_nothing(self, stage: Stage) -> None:
        alice, bob = call(stage)
        before = (alice.names, bob.names)
        alice.session.update()
        stage.advance()
        assert (alice.names, bob.names) == before
        assert len(sent(stage, b"UPDATE")) == 1
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("body", [OTHER_SDP, b""])
    async def test_an_update_of_a_dialog_the_peer_forgot_ends_it(self, stage: Stage, body: bytes) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 200, body=SDP, Allow=ALLOW)
        stage.advance()
        alice.session.update(body)
        stage.advance()
        raw.respond(raw.requests("UPDATE")[0], 481)
        stage.advance()
        assert alice.names[-1] == "Ended"
        stage.finish()

    @pytest.mark.parametrize(("status", "fields"), [(491, {}), (500, {"Retry-After": "2"})])
    async def test_an_update_that_crossed_an_offer_is_made_again(
        self, stage: Stage, status: int, fields: dict[str, Any]
    ) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 200, body=SDP, Allow=ALLOW)
        stage.advance()
        alice.session.update(OTHER_SDP)
        stage.advance()
        raw.respond(raw.requests("UPDATE")[0], status, **fields)
        stage.advance(4.5)
        second = raw.requests("UPDATE")[-1]
        assert second.cseq.number == 3
        raw.respond(second, 500)
        stage.advance()
        assert alice.last(OfferFailed).status == 500
        alice.session.hangup()
        stage.finish()

    async def test_an_owner_that_never_answers(self, stage: Stage) -> None:
        raw, to = answered_raw(stage)
        raw.send(raw.request("INVITE", branch="hold", To=to, CSeq="2 INVITE", body=HOLD))
        stage.advance(11)
        assert {r.cseq.number for r in raw.responses("INVITE", 500)} == {2}
        raw.send(raw.request("ACK", branch="hold", To=to, CSeq="2 ACK"))
        raw.send(raw.request("UPDATE", branch="u", To=to, CSeq="3 UPDATE", body=HOLD))
        stage.advance(1)
        stage.bob.inbound[0].session.accept_offer(SDP)
        stage.advance()
        assert len(raw.responses("UPDATE", 200)) == 1
        stage.bob.inbound[0].session.hangup()
        stage.finish()


class TestOldAnswers:
    async def test_a_repeated_answer_to_an_earlier_offer_settles_nothing(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 200, body=SDP)
        stage.advance()
        alice.session.reinvite(OTHER_SDP)
        stage.advance()
        first = raw.requests("INVITE")[-1]
        raw.respond(first, 200, body=SDP)
        stage.advance()
        alice.session.reinvite(HOLD)
        stage.advance()
        second = raw.requests("INVITE")[-1]
        raw.respond(first, 200, body=SDP)
        stage.advance()
        assert alice.names.count("OfferAnswered") == 1
        assert [a.cseq.number for a in raw.requests("ACK")] == [1, 2, 2]
        raw.respond(second, 200, body=OTHER_SDP)
        stage.advance()
        assert alice.last(OfferAnswered).body == OTHER_SDP
        alice.session.hangup()
        stage.finish()

    async def test_an_offer_wanted_while_another_is_out_follows_it(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 200, body=SDP)
        stage.advance()
        alice.session.reinvite(OTHER_SDP)
        stage.advance()
        alice.session.reinvite(HOLD)
        raw.respond(raw.requests("INVITE")[-1], 200, body=SDP)
        stage.advance()
        assert raw.requests("INVITE")[-1].body == HOLD
        alice.session.hangup()
        stage.finish()


async def test_a_late_offer_the_owner_never_answers(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, body=b"")
    assert isinstance(raw, RawPeer)
    raw.respond(invite, 200, body=SDP)
    stage.advance(11)
    assert len(raw.requests("ACK")) == len(raw.requests("BYE")[:1]) == 1
    assert alice.names == ["Answered", "Ended"]
    stage.finish()
