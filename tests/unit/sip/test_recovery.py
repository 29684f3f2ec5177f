"""Sessions of a process that is gone, ended by the next one at the same address."""

import json
from functools import partial
from typing import Any

import pytest

from sip import Answered, Confirmed, Credentials, Ended, Failed, ParseError, Request
from tests.support.sip_agents import SDP, Agent, RawPeer
from tests.support.sip_stage import ALICE, RAW, Stage, make_stage

UP = {
    "kind": "up",
    "via": ["udp", "192.0.2.1", 5060],
    "call_id": "x",
    "local": "<sip:a@b>;tag=1",
    "remote": "<sip:c@d>;tag=2",
    "seq": 1,
    "target": "sip:c@d",
}
REASON = 'Q.850;cause=41;text="CRASH"'
# So many keys and refreshes of a long call may have been sent since it was saved.
UNSAVED = 500


async def reborn(stage: Stage, agent: Agent) -> Agent:
    """Kill an agent without a word and start another at its address."""
    agent.ua.layer.close()
    return await Agent(stage.network, agent.address).start()


def journalled(saved: dict[str, Any] | None) -> dict[str, Any]:
    """Return saved dialogs as a journal gives them back."""
    loaded: dict[str, Any] = json.loads(json.dumps(saved))
    return loaded


async def ended_by_the_next(stage: Stage) -> tuple[RawPeer, Request, Agent]:
    """A call with a raw peer that the next process ends: the peer, the INVITE it answered, the process."""
    raw, side, invite = stage.answered_by_raw()
    saved = journalled(side.session.saved())
    again = await reborn(stage, stage.alice)
    again.ua.terminate_recovered(saved, REASON, None, lambda: None)
    stage.advance()
    return raw, invite, again


@pytest.mark.parametrize("calling", [True, False])
async def test_a_peer_of_a_call_that_was_up_gets_a_bye_whichever_side_called(calling: bool) -> None:
    stage = await make_stage()
    one, other = (stage.alice, stage.bob) if calling else (stage.bob, stage.alice)
    side = one.call(other.address)
    stage.advance()
    peer = stage.bob.inbound[0] if calling else side
    saved = journalled((side if calling else stage.alice.inbound[0]).session.saved())
    again = await reborn(stage, stage.alice)
    over: list[bool] = []
    again.ua.terminate_recovered(saved, REASON, None, lambda: over.append(True))
    stage.advance(1)
    assert peer.last(Ended).reason_header == REASON
    assert over == [True]
    stage.alice = again
    stage.finish()


async def test_the_sequence_numbers_leave_room_for_requests_that_were_not_saved() -> None:
    stage = await make_stage()
    raw, invite, again = await ended_by_the_next(stage)
    [bye] = raw.requests("BYE")
    assert bye.cseq.number > invite.cseq.number + UNSAVED
    assert (bye.call_id, bye.from_.tag, bye.to.tag) == (invite.call_id, invite.from_.tag, "peer")
    raw.respond(bye, 200)
    stage.alice = again
    stage.finish()


async def test_a_party_that_still_rings_is_cancelled_and_its_refusal_acknowledged() -> None:
    stage = await make_stage()
    stage.bob.answer = lambda session: session.progress(180)
    side = stage.alice.call(stage.bob.address)
    stage.advance()
    saved = journalled(side.session.saved())
    again = await reborn(stage, stage.alice)
    over: list[bool] = []
    again.ua.terminate_recovered(saved, REASON, None, lambda: over.append(True))
    stage.advance(1)
    assert stage.bob.inbound[0].names[-1] == "Cancelled" and over == [True]
    stage.alice = again
    stage.finish()


async def test_an_answer_that_crosses_the_cancel_is_acknowledged_and_hung_up_on() -> None:
    stage = await make_stage()
    raw = stage.raw(stage.alice)
    side = stage.alice.call(RAW)
    stage.advance()
    [invite] = raw.requests("INVITE")
    saved = journalled(side.session.saved())
    again = await reborn(stage, stage.alice)
    over: list[bool] = []
    again.ua.terminate_recovered(saved, REASON, None, lambda: over.append(True))
    stage.advance()
    assert raw.requests("CANCEL")
    for _ in range(2):
        raw.respond(invite, 200, body=SDP)
        stage.advance()
    [bye] = raw.requests("BYE")
    assert len(raw.requests("ACK")) == 2 and not over
    raw.respond(bye, 200)
    stage.advance()
    assert over == [True]
    stage.alice = again
    stage.finish()


async def test_a_caller_that_waits_is_refused_at_once() -> None:
    stage = await make_stage()
    stage.bob.answer = lambda session: session.progress(180)
    side = stage.alice.call(stage.bob.address)
    stage.advance()
    saved = journalled(stage.bob.inbound[0].session.saved())
    again = await reborn(stage, stage.bob)
    again.ua.terminate_recovered(saved, REASON, None, lambda: None)
    stage.advance(1)
    assert side.last(Failed).status == 503
    stage.bob = again
    stage.finish()


async def test_a_caller_whose_repeated_invite_is_served_is_not_refused() -> None:
    """An INVITE repeated before its refusal becomes a call of the next process, which alone answers it."""
    stage = await make_stage()
    stage.bob.answer = lambda session: session.progress(180)
    side = stage.alice.call(stage.bob.address)
    stage.advance()
    saved = journalled(stage.bob.inbound[0].session.saved())
    invite = next(data for _, source, _, data in stage.network.wire if data.startswith(b"INVITE"))
    again = await reborn(stage, stage.bob)
    again.answer = lambda session: session.progress(180)
    stage.network.carry(invite, stage.alice.address, again.address)
    stage.advance()
    [inbound] = again.inbound
    over: list[bool] = []
    again.ua.terminate_recovered(saved, REASON, None, lambda: over.append(True))
    stage.advance(1)
    assert over == [True] and "Failed" not in side.names
    inbound.session.answer(SDP)
    stage.advance()
    assert side.last(Answered).body == SDP
    side.session.hangup()
    stage.bob = again
    stage.finish()


async def test_a_bye_of_a_former_call_is_answered_and_other_requests_are_told_that_it_is_over() -> None:
    stage = await make_stage()
    raw, invite, again = await ended_by_the_next(stage)
    raw.respond(raw.requests("BYE")[0], 200)
    fields = {
        "From": f"{invite.headers.get('To')};tag=peer",
        "To": invite.headers.get("From") or "",
        "Call_ID": invite.call_id,
    }
    for number, (method, status) in enumerate(
        [("INVITE", 481), ("UPDATE", 481), ("INFO", 481), ("OPTIONS", 481), ("BYE", 200), ("INVITE", 481)]
    ):
        before = again.ua.transactions
        raw.send(raw.request(method, branch=f"in{number}", CSeq=f"{number + 5} {method}", **fields))
        stage.advance()
        answer = raw.responses(method)[-1]
        assert (answer.status, answer.to.tag) == (status, invite.from_.tag)
        assert again.ua.transactions <= before, "nothing is kept of such a request"
    stage.alice = again
    stage.finish()


async def test_a_challenge_of_the_bye_is_answered_with_what_is_agreed_with_the_carrier() -> None:
    stage = await make_stage()
    raw, side, invite = stage.answered_by_raw()
    saved = journalled(side.session.saved())
    again = await reborn(stage, stage.alice)
    over: list[bool] = []
    again.ua.terminate_recovered(saved, REASON, Credentials("user", "secret"), lambda: over.append(True))
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 401, WWW_Authenticate='Digest realm="r", nonce="n", qop="auth"')
    stage.advance()
    second = raw.requests("BYE")[-1]
    assert second.headers.get("Authorization") is not None and not over
    raw.respond(second, 200)
    stage.advance()
    assert over == [True]
    stage.alice = again
    stage.finish()


async def test_hundreds_are_ended_at_a_pace_and_dead_peers_are_given_up() -> None:
    stage = await make_stage()
    sides = [stage.bob.call(ALICE) for _ in range(100)]
    stage.advance(1)
    assert all(side.last(Confirmed) for side in stage.alice.inbound)
    saved = [journalled(side.session.saved()) for side in stage.alice.inbound]
    again = await reborn(stage, stage.alice)
    over: list[bool] = []
    for each in saved:
        again.ua.terminate_recovered(each, REASON, None, lambda: over.append(True))
    stage.bob.ua.layer.close()
    stage.network.clock.advance(0.01)
    first = again.ua.transactions
    stage.advance(1)
    assert 0 < first < len(sides) == again.ua.transactions
    stage.advance(40)
    assert len(over) == len(sides)
    again.assert_clean()


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"kind": "sideways", "via": ["udp", "192.0.2.1", 5060]},
        {"kind": "up", "via": ["udp", "192.0.2.1", 5060], "call_id": "x"},
        {"kind": "up", "via": ["udp"], "call_id": "x"},
        {"kind": "calling", "via": ["udp", "192.0.2.1", 5060], "target": "sip:a@b", "fields": []},
        {"kind": "calling", "via": ["udp", "192.0.2.1", 5060], "target": "sip:a@b", "fields": [["Via"]]},
        {"kind": "called", "via": ["udp", "192.0.2.1", 5060], "target": ":", "fields": []},
        UP | {"routes": ["<sip:"]},
        UP | {"routes": "x"},
        UP | {"seq": float("inf")},
    ],
)
async def test_a_journal_that_cannot_be_read_is_told_of_and_harms_nothing(saved: dict[str, Any]) -> None:
    stage = await make_stage()
    with pytest.raises(ParseError):
        stage.alice.ua.terminate_recovered(saved, REASON, None, lambda: None)
    assert not stage.alice.ua._recovered._waiting
    stage.finish()


async def test_one_that_nothing_can_be_sent_for_does_not_hold_up_the_others() -> None:
    stage = await make_stage()
    sides = [stage.alice.call(stage.bob.address) for _ in range(3)]
    stage.advance()
    journal = [journalled(side.session.saved()) for side in sides]
    again = await reborn(stage, stage.alice)
    over: list[int] = []
    for number, saved in enumerate(journal):
        again.ua.terminate_recovered(saved, REASON, None, partial(over.append, number))
    damaged = again.ua._recovered._waiting[0]._session.dialog
    assert damaged is not None
    damaged.route_set = ("<sip:",)  # As nothing that was checked when it was restored can be.
    stage.advance(1)
    assert sorted(over) == [0, 1, 2]
    stage.bob.inbound[0].session.hangup()
    stage.advance(1)
    stage.alice = again
    stage.finish()


async def test_what_is_saved_holds_no_password_and_no_description() -> None:
    stage = await make_stage()
    stage.bob.answer = lambda session: session.progress(180)
    side = stage.alice.call(stage.bob.address, credentials=Credentials("user", "a secret"))
    stage.advance()
    for session in (side.session, stage.bob.inbound[0].session):
        text = json.dumps(session.saved())
        assert "a secret" not in text and "m=audio" not in text and "uthorization" not in text
    side.session.hangup()
    stage.advance(1)
    assert side.session.saved() is None
    stage.finish()
