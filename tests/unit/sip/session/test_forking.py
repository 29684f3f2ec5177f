"""Early dialogs: forks of our INVITE, and requests while it still rings (RFC 3261 12, 13.2.2; RFC 6228)."""

from typing import Any

import pytest

from sip import Answered, Credentials, InfoReceived, Progress, Request
from sip.events import ForkEnded
from sip.session.forking import MAX_FORKS, MAX_PRACKS
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer
from tests.support.sip_stage import Stage
from tests.unit.sip.session.test_prack import raw_callee


def within(
    raw: RawPeer, invite: Request, method: str, tag: str, cseq: int = 1, **changes: str | bytes
) -> None:
    """A request of the called party, in the dialog of one of its tags."""
    raw.send(
        raw.request(
            method,
            branch=f"{tag}{cseq}{method}",
            From=f"<sip:bob@example.net>;tag={tag}",
            To=invite.headers.get("From") or "",
            Call_ID=invite.call_id,
            CSeq=f"{cseq} {method}",
            **changes,
        )
    )


async def test_each_party_that_rings_is_told_of_and_the_last_description_holds(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 183, tag="one", body=SDP)
    raw.respond(invite, 180, tag="two")
    raw.respond(invite, 183, tag="two", body=OTHER_SDP)
    stage.advance()
    told = [(e.status, e.tag, e.body) for e in alice.events if isinstance(e, Progress)]
    assert told == [(183, "one", SDP), (180, "two", b""), (183, "two", OTHER_SDP)]
    raw.respond(invite, 200, tag="one")
    stage.advance()
    assert alice.last(Answered).body == SDP, "that of the party that answered, though it is not repeated"
    assert alice.session.remote.tag == "one"
    within(raw, invite, "INFO", "two", body=b"x", Content_Type="text/plain")
    stage.advance()
    assert len(raw.responses("INFO", 481)) == 1
    alice.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200, tag="one")
    stage.finish()


async def test_requests_while_it_rings(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 180, tag="one")
    stage.advance()
    within(raw, invite, "INFO", "one", 1, body=b"x", Content_Type="text/plain")
    within(raw, invite, "OPTIONS", "one", 2)
    within(raw, invite, "UPDATE", "one", 3)
    within(raw, invite, "UPDATE", "one", 4, body=SDP)
    within(raw, invite, "INVITE", "one", 5, body=SDP)
    within(raw, invite, "PRACK", "one", 6, RAck="1 1 INVITE")
    within(raw, invite, "INFO", "stranger", 7)
    within(raw, invite, "INFO", "one", 2, body=b"y")
    stage.advance()
    assert alice.last(InfoReceived).body == b"x"
    statuses = [(r.cseq.number, r.cseq.method, r.status) for r in raw.received if not isinstance(r, Request)]
    assert set(statuses) == {
        (1, "INFO", 200),
        (2, "OPTIONS", 200),
        (3, "UPDATE", 200),
        (4, "UPDATE", 491),
        (5, "INVITE", 491),
        (6, "PRACK", 481),
        (7, "INFO", 481),
        (2, "INFO", 500),
    }
    alice.session.info("text/plain", b"z")
    stage.advance()
    [info] = raw.requests("INFO")
    assert (info.to.tag, info.cseq.number) == ("one", 2)
    raw.respond(invite, 486, tag="one")
    stage.finish()


async def test_a_target_learned_while_it_rings_and_a_route_of_the_answer(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 180, tag="one", Record_Route="<sip:192.0.2.9;lr;early>")
    stage.advance()
    within(raw, invite, "UPDATE", "one", 1, Contact="<sip:moved@192.0.2.9>")
    stage.advance()
    alice.session.info("text/plain", b"z")
    stage.advance()
    [info] = raw.requests("INFO")
    assert (str(info.uri), info.headers.get("Route")) == ("sip:moved@192.0.2.9", "<sip:192.0.2.9;lr;early>")
    raw.respond(info, 200, tag="one")
    raw.respond(
        invite, 200, tag="one", body=SDP, Record_Route="<sip:192.0.2.9;lr;late>", Contact="<sip:n@192.0.2.9>"
    )
    stage.advance()
    [ack] = raw.requests("ACK")
    assert (str(ack.uri), ack.headers.get("Route")) == ("sip:n@192.0.2.9", "<sip:192.0.2.9;lr;late>")
    within(raw, invite, "INFO", "one", 1)
    stage.advance()
    assert len(raw.responses("INFO", 500)) == 1, "the early dialog's sequence numbers go on"
    alice.session.hangup()
    stage.advance()
    bye = raw.requests("BYE")[0]
    assert bye.cseq.number == 3
    raw.respond(bye, 200, tag="one")
    stage.finish()


@pytest.mark.parametrize("reliable", [True, False])
async def test_a_party_is_out_before_the_others(stage: Stage, reliable: bool) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 180, tag="one")
    raw.respond(invite, 180, tag="two")
    fields: dict[str, Any] = {"RSeq": "5", "Require": "100rel"} if reliable else {}
    raw.respond(invite, 199, tag="one", Reason="SIP;cause=486", **fields)
    stage.advance()
    assert alice.last(ForkEnded) == ForkEnded("one", "SIP;cause=486")
    assert bool(raw.requests("PRACK")) is reliable
    within(raw, invite, "INFO", "one")
    stage.advance()
    assert len(raw.responses("INFO", 481)) == 1
    raw.respond(invite, 486, tag="two")
    stage.finish()


async def test_a_bye_ends_only_the_party_that_sent_it(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 180, tag="one")
    stage.advance()
    within(raw, invite, "BYE", "one")
    stage.advance()
    assert len(raw.responses("BYE", 200)) == 1
    assert alice.names == ["Progress", "ForkEnded"]
    raw.respond(invite, 200, tag="two", body=SDP)
    stage.advance()
    assert alice.last(Answered).body == SDP
    alice.session.hangup()
    stage.finish()


async def test_parties_beyond_the_bound_are_left_alone(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    for number in range(MAX_FORKS + 5):
        raw.respond(invite, 180, tag=f"t{number}", RSeq="1", Require="100rel")
    stage.advance()
    assert len(alice.events) == MAX_FORKS
    assert len({p.to.tag for p in raw.requests("PRACK")}) == MAX_FORKS
    alice.session.hangup()
    stage.finish()


async def test_a_response_without_a_tag_makes_no_dialog(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 180, tag="")
    stage.advance()
    alice.session.info("text/plain", b"z")
    stage.advance()
    assert raw.requests("INFO") == []
    alice.session.hangup()
    stage.finish()


@pytest.mark.parametrize("gone", [True, False])
async def test_a_challenged_request_is_sent_again_to_the_party_that_rings(stage: Stage, gone: bool) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("alice", "secret"))
    raw.respond(invite, 180, tag="one")
    stage.advance()
    alice.session.info("text/plain", b"z")
    stage.advance()
    if gone:
        raw.respond(invite, 199, tag="one")
        stage.advance()
    challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
    raw.respond(raw.requests("INFO")[0], 401, tag="one", WWW_Authenticate=challenge)
    stage.advance()
    assert [info.headers.get("Authorization") is not None for info in raw.requests("INFO")] == (
        [False] if gone else [False, True]
    )
    raw.respond(invite, 486, tag="one")
    stage.finish()


async def test_a_storm_of_reliable_responses_is_not_answered_by_one_of_pracks(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    for number in range(1000):
        raw.respond(invite, 183, tag=f"t{number % 4}", Require="100rel", RSeq=str(number // 4 + 1))
    stage.advance()
    assert len(raw.requests("PRACK")) == MAX_PRACKS
    assert stage.alice.ua.transactions <= MAX_PRACKS + 1
    raw.respond(invite, 200, tag="t0", body=SDP)
    stage.advance()
    assert alice.last(Answered)
    alice.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200, tag="t0")
    stage.finish()
