"""Session-ID in the messages of a session, as its owner gave it (RFC 7989 6)."""

import pytest

from tests.support.sip_agents import SDP
from tests.support.sip_stage import RAW, Stage

OURS, THEIRS, NIL = "a" * 32, "b" * 32, "0" * 32
GIVEN = [("Session-ID", f"{OURS};remote={NIL}")]


def test_every_message_of_a_call_placed_has_it_from_the_first_ack_on(stage: Stage) -> None:
    peer = stage.raw(stage.alice)
    alice = stage.alice.call(RAW, headers=GIVEN)
    stage.advance()
    peer.respond(peer.requests("INVITE")[0], 200, body=SDP, Session_ID=f"{THEIRS};remote={OURS}")
    stage.advance()
    both = f"{OURS};remote={THEIRS}"
    assert peer.requests("ACK")[0].headers.get("Session-ID") == both
    alice.session.hangup()
    stage.advance()
    assert peer.requests("BYE")[0].headers.get("Session-ID") == both


@pytest.mark.parametrize("theirs", [None, "", "nonsense", f"{THEIRS.upper()};remote={OURS}", "b" * 31])
def test_a_peer_that_tells_none_leaves_it_as_it_was(stage: Stage, theirs: str | None) -> None:
    peer = stage.raw(stage.alice)
    stage.alice.call(RAW, headers=GIVEN)
    stage.advance()
    fields = {} if theirs is None else {"Session_ID": theirs}
    peer.respond(peer.requests("INVITE")[0], 200, body=SDP, **fields)
    stage.advance()
    assert peer.requests("ACK")[0].headers.get("Session-ID") == f"{OURS};remote={NIL}"


def test_cancel_and_the_ack_of_a_refusal_repeat_that_of_the_invite(stage: Stage) -> None:
    peer = stage.raw(stage.alice)
    alice = stage.alice.call(RAW, headers=GIVEN)
    stage.advance()
    [invite] = peer.requests("INVITE")
    peer.respond(invite, 180)
    stage.advance()
    alice.session.hangup()
    stage.advance()
    peer.respond(peer.requests("CANCEL")[0], 200)
    peer.respond(invite, 487)
    stage.advance()
    for method in ("CANCEL", "ACK"):
        assert peer.requests(method)[0].headers.get("Session-ID") == f"{OURS};remote={NIL}"


def test_answers_to_requests_of_the_peer_have_it_once(stage: Stage) -> None:
    peer = stage.raw(stage.alice)
    alice = stage.alice.call(RAW, headers=GIVEN)
    stage.advance()
    peer.respond(peer.requests("INVITE")[0], 200, body=SDP)
    stage.advance()
    alice.session.set_session_id(f"{OURS};remote={THEIRS}")
    [ack] = peer.requests("ACK")
    turned = {"From": ack.headers.get("To") or "", "To": ack.headers.get("From") or ""}
    peer.send(peer.request("BYE", branch="bye", Call_ID=ack.call_id, **turned))
    stage.advance()
    [answer] = peer.responses("BYE", 200)
    assert answer.headers.get_all("Session-ID") == [f"{OURS};remote={THEIRS}"]


def test_a_call_without_one_gets_none(stage: Stage) -> None:
    peer = stage.raw(stage.alice)
    stage.alice.call(RAW)
    stage.advance()
    peer.respond(peer.requests("INVITE")[0], 200, body=SDP, Session_ID=f"{THEIRS};remote={NIL}")
    stage.advance()
    assert peer.requests("ACK")[0].headers.get("Session-ID") is None
