"""Messages that are legal and rare, or nearly legal (RFC 3261 8.1.3, 17.1.3, 17.2.3; RFC 4320)."""

import pytest

from sip import Answered, Failed, Progress, reply, serialise
from tests.support.sip_agents import SDP
from tests.support.sip_stage import RAW, Stage


@pytest.mark.parametrize(
    ("status", "events"),
    [
        (155, ["Progress"]),
        (181, ["Progress"]),
        (182, ["Progress"]),
        (288, ["Answered"]),
        (399, ["Failed"]),
        (477, ["Failed"]),
        (577, ["Failed"]),
        (677, ["Failed"]),
    ],
)
async def test_unknown_codes_count_as_their_class(stage: Stage, status: int, events: list[str]) -> None:
    """RFC 3261 8.1.3.2."""
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    raw.respond(raw.requests("INVITE")[0], status, body=SDP if 200 <= status < 300 else b"")
    stage.advance()
    assert alice.names == events
    [event] = alice.events
    assert isinstance(event, Answered) or (isinstance(event, Progress | Failed) and event.status == status)
    assert len(raw.requests("ACK")) == (status >= 200)


async def test_a_response_of_another_branch_or_method_is_dropped(stage: Stage) -> None:
    """RFC 3261 17.1.3; a branch of ours cannot be guessed."""
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    invite = raw.requests("INVITE")[0]
    branch = invite.via.branch or ""
    busy = serialise(reply(invite, 486, to_tag="peer"))
    raw.send(busy.replace(branch.encode(), b"z9hG4bKguessed"))
    raw.send(busy.replace(b"1 INVITE", b"1 OPTIONS"))
    stage.advance()
    assert alice.names == []
    raw.respond(invite, 486)
    stage.advance()
    assert alice.names == ["Failed"]
    stage.finish()


async def test_branches_from_before_the_magic_cookie(stage: Stage) -> None:
    """RFC 3261 17.2.3: they are not unique, so two calls of one branch are two, and a repetition is none."""
    raw = stage.raw()
    stage.bob.answer = lambda session: session.progress(180)
    via = "SIP/2.0/UDP 192.0.2.9:5060;branch=1;rport"
    first = raw.request("INVITE", branch="x", Via=via, body=SDP)
    second = raw.request("INVITE", branch="x", Via=via, body=SDP, Call_ID="another")
    for request in (first, first, second, first):
        raw.send(request)
    stage.advance()
    assert len(stage.bob.inbound) == 2
    raw.send(raw.request("CANCEL", branch="x", Via=via, Call_ID="another"))
    stage.advance()
    assert [side.names for side in stage.bob.inbound] == [[], ["Cancelled"]]
    assert len(raw.responses("INVITE", 487)) == 1


@pytest.mark.parametrize("method", ["OPTIONS", "INFO", "UPDATE", "PRACK", "SUBSCRIBE", "FROBNICATE", "REFER"])
async def test_other_requests_are_answered_at_once(stage: Stage, method: str) -> None:
    """RFC 4320 4: a final response without delay, none before it, and never 408."""
    raw = stage.raw()
    raw.send(raw.request(method, branch="a"))
    stage.advance(0.01)
    [response] = raw.responses(method)
    assert response.status >= 200 and response.status != 408
    stage.advance(40)
    assert len(raw.responses(method)) == 1
    stage.bob.assert_clean()


async def test_what_peers_from_before_rfc_3261_leave_out(stage: Stage) -> None:
    """No tag in From, none in To, no Contact in the answer (RFC 3261 12.1.1, 12.1.2): a call all the same."""
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP, From="<sip:raw@example.net>"))
    stage.advance()
    to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
    for method, cseq in (("ACK", 1), ("BYE", 2)):
        fields = {"To": to, "From": "<sip:raw@example.net>", "CSeq": f"{cseq} {method}"}
        raw.send(raw.request(method, branch=method, **fields))
        stage.advance()
    assert raw.responses("BYE", 200)
    assert stage.bob.inbound[0].names == ["Confirmed", "Ended"]
    stage.finish()
