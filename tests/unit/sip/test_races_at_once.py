"""Requests that arrive before the ACK could, or together with the answer (RFC 5407 3.1): a scripted trunk."""

from sip import Ended
from tests.support.sip_agents import SDP, RawPeer, Side
from tests.support.sip_stage import RAW, Stage


def rung(stage: Stage) -> tuple[RawPeer, Side]:
    """Alice calls the raw peer, whose INVITE waits for its answer."""
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    return raw, alice


def within(raw: RawPeer, method: str, cseq: int, **fields: str | bytes) -> None:
    """Send a request of the called side."""
    invite = raw.requests("INVITE")[0]
    raw.send(
        raw.request(
            method,
            branch=f"within{cseq}",
            From=f"{invite.headers.get('To')};tag=peer",
            To=invite.headers.get("From") or "",
            Call_ID=invite.call_id,
            CSeq=f"{cseq} {method}",
            **fields,
        )
    )


async def test_a_bye_right_after_the_200(stage: Stage) -> None:
    raw, alice = rung(stage)
    raw.respond(raw.requests("INVITE")[0], 200, body=SDP)
    within(raw, "BYE", 1, Reason="Q.850;cause=16")
    stage.advance()
    assert len(raw.requests("ACK")) == 1
    assert [response.status for response in raw.responses("BYE")] == [200]
    assert alice.names == ["Answered", "Ended"]
    assert alice.last(Ended) == Ended("remote", "bye", "Q.850;cause=16")
    stage.finish()


async def test_a_reinvite_right_after_the_200(stage: Stage) -> None:
    raw, alice = rung(stage)
    raw.respond(raw.requests("INVITE")[0], 200, body=SDP)
    within(raw, "INVITE", 1, body=SDP)
    stage.advance()
    alice.session.accept_offer(SDP)
    stage.advance()
    assert alice.names == ["Answered", "OfferReceived"]
    assert raw.responses("INVITE", 200)[0].body == SDP
    within(raw, "ACK", 1)
    within(raw, "BYE", 2)
    stage.advance()
    stage.finish()


async def test_the_200_three_times_and_a_late_180(stage: Stage) -> None:
    raw, alice = rung(stage)
    invite = raw.requests("INVITE")[0]
    for _ in range(3):
        raw.respond(invite, 200, body=SDP)
    raw.respond(invite, 180)
    stage.advance()
    assert alice.names == ["Answered"]
    assert len(raw.requests("ACK")) == 3
    within(raw, "BYE", 1)
    stage.advance()
    stage.finish()


async def test_a_reinvite_overtakes_the_200(stage: Stage) -> None:
    """The network may reorder: what comes before the dialog stands is told to come again or is unknown."""
    raw, alice = rung(stage)
    invite = raw.requests("INVITE")[0]
    within(raw, "INVITE", 1, body=SDP)
    stage.advance()
    assert raw.responses("INVITE")[-1].status in (481, 491, 500)
    raw.respond(invite, 200, body=SDP)
    stage.advance()
    assert alice.names == ["Answered"]
    within(raw, "BYE", 2)
    stage.advance()
    assert alice.names[-1] == "Ended"
    stage.finish()
