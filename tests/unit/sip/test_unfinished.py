"""Requests of ours that a peer never finishes are forgotten with their session."""

from sip import State
from tests.support.sip_agents import OTHER_SDP
from tests.support.sip_stage import make_stage


async def test_a_reinvite_that_only_got_a_provisional_response() -> None:
    stage = await make_stage()
    raw, call, _ = stage.answered_by_raw()
    call.session.reinvite(OTHER_SDP)
    stage.advance()
    again = raw.requests("INVITE")[-1]
    raw.respond(again, 100)
    stage.advance()
    call.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.advance()
    assert call.session.state is State.ENDED
    raw.respond(again, 487)
    stage.advance()
    assert any(ack.cseq.number == again.cseq.number for ack in raw.requests("ACK"))
    stage.finish()


async def test_a_reinvite_that_is_never_answered() -> None:
    stage = await make_stage()
    raw, call, _ = stage.answered_by_raw()
    call.session.reinvite(OTHER_SDP)
    stage.advance()
    raw.respond(raw.requests("INVITE")[-1], 100)
    stage.advance()
    call.session.hangup()
    stage.finish()


async def test_a_reinvite_that_was_taken_back_in_vain() -> None:
    stage = await make_stage()
    raw, call, _ = stage.answered_by_raw()
    call.session.reinvite(OTHER_SDP)
    stage.advance()
    raw.respond(raw.requests("INVITE")[-1], 180)
    stage.advance(33)
    raw.respond(raw.requests("CANCEL")[-1], 200)
    stage.advance(33)
    assert stage.alice.ua.transactions == 0
    call.session.hangup()
    stage.finish()
