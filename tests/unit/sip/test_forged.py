"""Forged messages by somebody who does not see the calls have no effect on them."""

import random

from sip import Answered, Ended, Failed, Progress, Request
from tests.support.sip_agents import SDP, RawPeer
from tests.support.sip_stage import Stage
from tests.unit.sip.session.test_prack import raw_callee

FORGER = ("203.0.113.66", 5060)
TRIES = 5000


async def test_no_guessed_response_is_taken_for_an_answer(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    forger = RawPeer(stage.network, FORGER, stage.alice.address)
    rng = random.Random(1)
    branch = invite.via.branch or ""
    for number in range(TRIES):
        guess = "".join(rng.choice("0123456789abcdef") for _ in range(len(branch) - 7))
        via = f"SIP/2.0/UDP {invite.via.host}:{invite.via.port};branch=z9hG4bK{guess};rport"
        # Even who has seen the Call-ID and the tag needs the branch.
        forged = Request("INVITE", invite.uri, invite.headers.copy())
        forged.headers.set("Via", via)
        forger.respond(forged, (200, 183, 486, 302, 603)[number % 5], tag="forged", body=SDP)
    for method in ("BYE", "CANCEL", "OPTIONS"):
        same = Request(method, invite.uri, invite.headers.copy())
        same.headers.set("CSeq", f"1 {method}")
        forger.respond(same, 200, tag="forged")
    stage.advance()
    assert not alice.events or not any(isinstance(e, Answered | Progress | Failed) for e in alice.events)
    raw.respond(invite, 200, tag="real", body=SDP)
    stage.advance()
    assert alice.session.remote.tag == "real"
    alice.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200, tag="real")
    stage.finish()


async def test_no_guessed_request_ends_a_call(stage: Stage) -> None:
    side = stage.alice.call(stage.bob.address)
    stage.advance()
    [bob] = stage.bob.inbound
    forger = RawPeer(stage.network, FORGER, stage.bob.address)
    call_id = bob.session.call_id
    ours, theirs = bob.session.local.tag, bob.session.remote.tag
    for number, (to, from_) in enumerate(
        [("x", theirs), (ours, "x"), ("", theirs), (theirs, ours), ("x", "y")]
    ):
        for method in ("BYE", "INVITE", "UPDATE", "REFER", "INFO", "CANCEL", "ACK"):
            forger.send(
                forger.request(
                    method,
                    branch=f"{method}{number}",
                    To="<sip:bob@example.net>" + (f";tag={to}" if to else ""),
                    From=f"<sip:alice@example.net>;tag={from_}",
                    Call_ID=call_id,
                    CSeq=f"{99 + number} {method}",
                )
            )
    stage.advance()
    assert not any(isinstance(event, Ended) for event in (*side.events, *bob.events))
    assert forger.responses("BYE", 200) == [] and forger.responses("CANCEL", 200) == []
    for extra in stage.bob.inbound[1:]:
        extra.session.hangup()
    side.session.hangup()
    stage.advance()
    assert any(isinstance(event, Ended) for event in bob.events)
