"""Offers after the first: re-INVITE, UPDATE, glare (RFC 3261 14, RFC 3311, RFC 6141)."""

import pytest

from sip import Confirmed, OfferAnswered, OfferFailed, OfferReceived, Request
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer, Side
from tests.support.sip_stage import BOB, RAW, Stage

HOLD = SDP + b"a=sendonly\r\n"


def call(stage: Stage) -> tuple[Side, Side]:
    alice = stage.alice.call(BOB)
    stage.advance()
    return alice, stage.bob.inbound[0]


def answered_raw(stage: Stage, **invite: object) -> tuple[RawPeer, str]:
    """A raw caller whose call Bob has answered and the caller acknowledged; and Bob's To."""
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    stage.advance()
    to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
    raw.send(raw.request("ACK", branch="ack", To=to))
    stage.advance()
    return raw, to


async def test_an_offer_is_accepted(stage: Stage) -> None:
    alice, bob = call(stage)
    alice.session.reinvite(HOLD)
    stage.advance()
    assert bob.last(OfferReceived).body == HOLD
    bob.session.accept_offer(OTHER_SDP)
    stage.advance()
    assert alice.last(OfferAnswered).body == OTHER_SDP
    bob.session.reinvite(SDP)
    stage.advance()
    alice.session.accept_offer(SDP)
    stage.advance()
    assert bob.last(OfferAnswered).body == SDP
    alice.session.hangup()
    stage.finish()


@pytest.mark.parametrize("early", [True, False])
async def test_an_offer_made_before_the_call_is_up_follows_as_soon_as_it_is(
    stage: Stage, early: bool
) -> None:
    if early:
        stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB)
    if early:
        stage.advance()
        alice.session.reinvite(HOLD)
        stage.bob.inbound[0].session.answer(SDP)
    else:
        stage.network.clock.advance(0.0015)
        stage.bob.inbound[0].session.reinvite(HOLD)
    stage.advance()
    taker, maker = (stage.bob.inbound[0], alice) if early else (alice, stage.bob.inbound[0])
    assert taker.last(OfferReceived).body == HOLD
    taker.session.accept_offer(SDP)
    stage.advance()
    assert maker.last(OfferAnswered).body == SDP
    alice.session.hangup()
    stage.finish()


async def test_a_refused_offer_leaves_the_call_up(stage: Stage) -> None:
    alice, bob = call(stage)
    alice.session.reinvite(HOLD)
    stage.advance()
    bob.session.reject_offer(488, '304 trunkline "No common codec"')
    stage.advance()
    assert alice.last(OfferFailed) == OfferFailed(488, "Not Acceptable Here")
    assert alice.session.state == bob.session.state
    alice.session.reinvite(SDP)
    stage.advance()
    bob.session.accept_offer(SDP)
    stage.advance()
    assert alice.last(OfferAnswered)
    alice.session.hangup()
    stage.finish()


async def test_glare_both_try_again_and_both_succeed(stage: Stage) -> None:
    """The caller, owner of the Call-ID, waits 2.1 to 4 s, the called side 0 to 2 s."""
    alice, bob = call(stage)
    alice.session.reinvite(HOLD)
    bob.session.reinvite(OTHER_SDP)
    stage.advance(0.02)
    assert "OfferReceived" not in alice.names + bob.names
    stage.advance(2.05)
    assert alice.last(OfferReceived).body == OTHER_SDP
    alice.session.accept_offer(SDP)
    stage.advance(2.1)
    assert bob.last(OfferReceived).body == HOLD
    bob.session.accept_offer(SDP)
    stage.advance(1)
    assert "OfferAnswered" in alice.names
    assert "OfferAnswered" in bob.names
    alice.session.hangup()
    stage.finish()


async def test_our_offer_waits_while_the_peers_is_unanswered(stage: Stage) -> None:
    alice, bob = call(stage)
    alice.session.reinvite(HOLD)
    stage.advance()
    bob.session.reinvite(OTHER_SDP)
    stage.advance()
    assert "OfferReceived" not in alice.names
    bob.session.accept_offer(SDP)
    stage.advance()
    assert alice.last(OfferReceived).body == OTHER_SDP
    alice.session.accept_offer(SDP)
    stage.advance()
    assert "OfferAnswered" in bob.names
    bob.session.hangup()
    stage.finish()


async def test_a_second_offer_before_the_answer_to_the_first(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    raw.send(raw.request("INVITE", branch="b", To=to, CSeq="2 INVITE", body=HOLD))
    raw.send(raw.request("INVITE", branch="c", To=to, CSeq="3 INVITE", body=HOLD))
    raw.send(raw.request("UPDATE", branch="d", To=to, CSeq="4 UPDATE", body=HOLD))
    stage.advance()
    refused = raw.responses("INVITE", 500) + raw.responses("UPDATE", 500)
    assert len(refused) == 2
    assert all(0 <= (response.retry_after_s or 0) <= 10 for response in refused)
    assert stage.bob.inbound[0].names == ["Confirmed", "OfferReceived"]
    stage.bob.inbound[0].session.hangup()
    stage.advance()
    assert len(raw.responses("INVITE", 487)) == 1, "the open re-INVITE ends with the dialog"
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_update_offers_and_refreshes(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    bob = stage.bob.inbound[0]
    raw.send(raw.request("UPDATE", branch="b", To=to, CSeq="2 UPDATE", body=HOLD))
    stage.advance()
    bob.session.accept_offer(OTHER_SDP)
    stage.advance()
    answer = raw.responses("UPDATE", 200)[0]
    assert answer.body == OTHER_SDP
    assert answer.contacts
    stage.advance(10)
    assert len(raw.responses("UPDATE", 200)) == 1, "no ACK follows, so nothing is repeated"
    moved = ("192.0.2.10", 5070)
    raw.send(
        raw.request("UPDATE", branch="c", To=to, CSeq="3 UPDATE", Contact=f"<sip:x@{moved[0]}:{moved[1]}>")
    )
    stage.advance()
    assert bob.names.count("OfferReceived") == 1
    elsewhere = RawPeer(stage.network, moved, BOB)
    bob.session.hangup()
    stage.advance()
    bye = elsewhere.requests("BYE")[0]
    assert str(bye.uri) == "sip:x@192.0.2.10:5070", "target refresh"
    elsewhere.respond(bye, 200)
    stage.finish()


async def test_a_reinvite_without_offer_is_asked_for_one(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    bob = stage.bob.inbound[0]
    raw.send(raw.request("INVITE", branch="b", To=to, CSeq="2 INVITE"))
    stage.advance()
    assert bob.last(OfferReceived).body == b""
    bob.session.accept_offer(OTHER_SDP)
    stage.advance(0.6)
    answers = [response for response in raw.responses("INVITE", 200) if response.cseq.number == 2]
    assert len(answers) == 2, "repeated until the ACK"
    assert answers[0].body == OTHER_SDP
    raw.send(raw.request("ACK", branch="ack2", To=to, CSeq="2 ACK", body=SDP))
    stage.advance(5)
    assert bob.last(OfferAnswered).body == SDP
    assert len([r for r in raw.responses("INVITE", 200) if r.cseq.number == 2]) == 2
    bob.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_a_reinvite_implies_the_lost_ack(stage: Stage) -> None:
    """RFC 5407 3.1.4: the caller has our 200, or it could not know the dialog is confirmed."""
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    stage.advance()
    to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
    raw.send(raw.request("INVITE", branch="b", To=to, CSeq="2 INVITE", body=HOLD))
    stage.advance()
    bob = stage.bob.inbound[0]
    assert bob.names == ["Confirmed", "OfferReceived"]
    assert bob.last(Confirmed).body == b""
    bob.session.accept_offer(SDP)
    stage.advance()
    raw.send(raw.request("ACK", branch="c", To=to, CSeq="2 ACK"))
    stage.advance(5)
    assert len([r for r in raw.responses("INVITE", 200) if r.cseq.number == 1]) == 1
    bob.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_an_unacknowledged_reinvite_ends_the_call(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    raw.send(raw.request("INVITE", branch="b", To=to, CSeq="2 INVITE", body=HOLD))
    stage.advance()
    bob = stage.bob.inbound[0]
    bob.session.accept_offer(SDP)
    stage.advance(33)
    assert bob.names[-1] == "Ended"
    assert bob.events[-1].cause == "ack_timeout"  # type: ignore[attr-defined]
    stage.finish()


async def test_a_cancelled_reinvite(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    raw.send(raw.request("INVITE", branch="b", To=to, CSeq="2 INVITE", body=HOLD))
    stage.advance()
    raw.send(raw.request("CANCEL", branch="b", To=to, CSeq="2 CANCEL"))
    stage.advance()
    assert len(raw.responses("CANCEL", 200)) == 1
    assert [r.cseq.number for r in raw.responses("INVITE", 487)] == [2]
    bob = stage.bob.inbound[0]
    bob.session.accept_offer(SDP)
    stage.advance()
    assert len([r for r in raw.responses("INVITE", 200) if r.cseq.number == 2]) == 0
    raw.send(raw.request("ACK", branch="b", To=to, CSeq="2 ACK"))
    bob.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_a_dialog_the_peer_no_longer_knows_is_hung_up(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    raw.respond(raw.requests("INVITE")[0], 200, body=SDP)
    stage.advance()
    alice.session.reinvite(HOLD)
    stage.advance()
    raw.respond(raw.requests("INVITE")[1], 481)
    stage.advance()
    assert alice.events[-1].cause == "timeout"  # type: ignore[attr-defined]
    assert raw.requests("BYE")
    raw.respond(raw.requests("BYE")[0], 481)
    stage.finish()


async def test_a_reinvite_that_rings_for_ever_is_given_up(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    raw.respond(raw.requests("INVITE")[0], 200, body=SDP)
    stage.advance()
    alice.session.reinvite(HOLD)
    stage.advance()
    reinvite: Request = raw.requests("INVITE")[1]
    raw.respond(reinvite, 100)
    stage.advance(33)
    assert alice.last(OfferFailed).status == 408
    assert raw.requests("CANCEL")
    raw.respond(raw.requests("CANCEL")[0], 200)
    raw.respond(reinvite, 487)
    stage.advance()
    alice.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()
