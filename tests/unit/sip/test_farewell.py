"""Header fields of a session's BYE beside its Reason."""

import pytest

from sip import Ended, InvalidValue
from tests.support.sip_agents import SDP
from tests.support.sip_stage import ALICE, RAW, Stage

FIELDS = [("User-to-User", "00cafe;encoding=hex"), ("X-Why", "enough")]


def test_fields_of_the_owner_are_sent_and_told_to_the_other_side(stage: Stage) -> None:
    alice = stage.alice.call(stage.bob.address)
    stage.advance()
    alice.session.hangup(reason="Q.850;cause=16", headers=FIELDS)
    stage.advance()
    ended = stage.bob.inbound[0].last(Ended)
    assert (ended.by, ended.cause, ended.reason_header) == ("remote", "bye", "Q.850;cause=16")
    assert [(name, ended.headers.get(name)) for name, _ in FIELDS] == FIELDS
    assert alice.last(Ended).headers is None
    stage.finish()


def test_a_called_side_says_them_too(stage: Stage) -> None:
    stage.bob.answer = lambda session: session.answer(SDP)
    alice = stage.alice.call(stage.bob.address)
    stage.advance()
    stage.bob.inbound[0].session.hangup(headers=FIELDS)
    stage.advance()
    assert alice.last(Ended).headers.get("X-Why") == "enough"
    stage.finish()


def test_a_cancel_says_nothing_of_them(stage: Stage) -> None:
    peer = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    peer.respond(peer.requests("INVITE")[0], 180)
    stage.advance()
    alice.session.hangup(headers=FIELDS)
    stage.advance()
    [cancel] = peer.requests("CANCEL")
    assert cancel.headers.get("User-to-User") is None


def test_what_is_no_field_is_refused_and_the_call_goes_on(stage: Stage) -> None:
    alice = stage.alice.call(stage.bob.address)
    stage.advance()
    with pytest.raises(InvalidValue):
        alice.session.hangup(headers=[("User-to-User", "a\r\nEvil: yes")])
    assert alice.session.state.name == "CONFIRMED"
    assert stage.alice.address == ALICE
