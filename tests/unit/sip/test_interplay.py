"""One extension meets another, or the end of the call: nothing is left behind, nothing is misread."""

import pytest

from sip import Credentials, Failed, InfoReceived, OfferAnswered, OfferReceived, Replaces
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer, Side
from tests.support.sip_stage import BOB, Stage
from tests.unit.sip.session.test_forking import within
from tests.unit.sip.session.test_offer_answer import HOLD, answered_raw
from tests.unit.sip.session.test_prack import prack, raw_callee, raw_caller


def offered_while_ringing(stage: Stage) -> tuple[RawPeer, Side]:
    """A raw caller whose offer was answered while it rings at Bob, and whose UPDATE Bob has not answered."""
    raw, bob = raw_caller(stage, Supported="100rel")
    bob.session.progress(183, SDP)
    stage.advance()
    ringing = raw.responses("INVITE", 183)[0]
    prack(raw, ringing)
    stage.advance()
    to = ringing.headers.get("To") or ""
    raw.send(raw.request("UPDATE", branch="update", To=to, CSeq="3 UPDATE", body=OTHER_SDP))
    stage.advance()
    assert bob.last(OfferReceived).body == OTHER_SDP
    return raw, bob


class TestUpdateUnansweredAtTheEnd:
    """An UPDATE whose offer is still unanswered gets its final response when the call ends while it rings."""

    async def test_the_caller_cancels(self, stage: Stage) -> None:
        raw, _ = offered_while_ringing(stage)
        raw.send(raw.request("CANCEL", branch="invite"))
        stage.advance()
        raw.send(raw.request("ACK", branch="invite"))
        assert len(raw.responses("UPDATE")) == 1
        stage.finish()

    @pytest.mark.parametrize("how", ["reject", "hangup"])
    async def test_the_called_side_refuses(self, stage: Stage, how: str) -> None:
        raw, bob = offered_while_ringing(stage)
        if how == "reject":
            bob.session.reject(486)
        else:
            bob.session.hangup()
        stage.advance()
        raw.send(raw.request("ACK", branch="invite"))
        assert len(raw.responses("UPDATE")) == 1
        stage.finish()

    async def test_the_call_of_ours_is_refused(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 183, tag="one", body=SDP, RSeq="1", Require="100rel")
        stage.advance()
        raw.respond(raw.requests("PRACK")[0], 200, tag="one")
        within(raw, invite, "UPDATE", "one", 1, body=OTHER_SDP)
        stage.advance()
        assert alice.last(OfferReceived).body == OTHER_SDP
        raw.respond(invite, 486, tag="one")
        stage.advance()
        assert len(raw.responses("UPDATE")) == 1
        stage.finish()


class TestReferUnansweredAtTheEnd:
    @pytest.mark.parametrize("ours", [True, False])
    async def test_the_call_ends_before_the_owner_decides(self, stage: Stage, ours: bool) -> None:
        raw, to = answered_raw(stage)
        bob = stage.bob.inbound[0]
        bob.session.allows_refer = True
        raw.send(raw.request("REFER", branch="refer", To=to, CSeq="2 REFER", Refer_To="<sip:c@192.0.2.7>"))
        stage.advance()
        assert bob.names[-1] == "ReferReceived"
        if ours:
            bob.session.hangup()
            stage.advance()
            raw.respond(raw.requests("BYE")[0], 200)
        else:
            raw.send(raw.request("BYE", branch="bye", To=to, CSeq="3 BYE"))
        stage.advance()
        assert len(raw.responses("REFER")) == 1
        assert raw.responses("REFER")[0].status >= 300
        stage.finish()

    async def test_nobody_answers_the_offer_of_the_2xx_either(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage, body=b"")
        alice.session.allows_refer = True
        raw.respond(invite, 200, tag="one", body=SDP)
        stage.advance(5)
        within(raw, invite, "REFER", "one", 1, Refer_To="<sip:c@192.0.2.7>")
        stage.advance(5.1)
        raw.respond(raw.requests("BYE")[0], 200, tag="one")
        stage.advance()
        assert [r.status for r in raw.responses("REFER")] == [487]
        stage.finish()

    async def test_a_late_answer_to_our_refer_starts_nothing(self, stage: Stage) -> None:
        raw, to = answered_raw(stage)
        bob = stage.bob.inbound[0]
        bob.session.refer("sip:c@192.0.2.7")
        stage.advance()
        raw.send(raw.request("BYE", branch="bye", To=to, CSeq="2 BYE"))
        stage.advance()
        raw.respond(raw.requests("REFER")[0], 202)
        stage.advance(40)
        stage.bob.assert_clean()
        assert bob.names[-1] == "Ended"


async def test_an_answer_repeated_after_the_end_holds_no_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = stage.alice.call(BOB, "tcp")
    stage.advance()
    flow = alice.session.flow
    holds: list[int] = []
    monkeypatch.setattr(type(flow), "hold", lambda self: holds.append(1))
    monkeypatch.setattr(type(flow), "release", lambda self: holds.append(-1))
    wire = stage.network.wire
    answer = next(data for _, source, _, data in wire if source == BOB and data.startswith(b"SIP/2.0 200"))
    before = sum(holds)
    alice.session.hangup()
    stage.advance()
    assert sum(holds) < before
    ended = sum(holds)
    flow.arrive(answer)
    assert sum(holds) == ended
    stage.finish()


async def test_an_early_dialog_of_our_calling_is_replaced(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 180, tag="one")
    stage.advance()
    alice.session.allows_refer = True
    call_id, tag = alice.session.key
    replaces = str(Replaces(call_id, tag, "one"))
    raw.send(raw.request("INVITE", branch="new", body=SDP, Call_ID="new", Replaces=replaces))
    stage.advance()
    assert raw.responses("INVITE", 200), [r.status for r in raw.responses("INVITE")]
    assert raw.requests("CANCEL")
    raw.respond(raw.requests("CANCEL")[0], 200)
    raw.respond(invite, 487, tag="one")
    stage.advance()
    assert alice.last(Failed)


async def test_a_new_call_that_was_cancelled_replaces_nothing(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    bob = stage.bob.inbound[0]
    bob.session.allows_refer = True
    call_id, tag = bob.session.key
    stage.bob.answer = lambda session: None
    replaces = str(Replaces(call_id, tag, "raw"))
    raw.send(raw.request("INVITE", branch="new", body=SDP, Call_ID="new", Replaces=replaces))
    stage.advance()
    raw.send(raw.request("CANCEL", branch="new", Call_ID="new"))
    stage.advance()
    stage.bob.inbound[1].session.answer(SDP)
    stage.advance()
    assert not raw.requests("BYE")


async def test_silence_after_a_challenge_is_as_short_as_before_it(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("a", "b"))
    raw.respond(invite, 100)
    raw.respond(invite, 407, Proxy_Authenticate='Digest realm="x", nonce="1"')
    stage.advance(5)
    assert len({r.cseq.number for r in raw.requests("INVITE")}) == 2
    failed = alice.last(Failed)
    assert (failed.status, failed.cause) == (408, "timeout")
    stage.finish()


async def test_a_fork_that_leaves_takes_the_wait_for_the_answer_to_its_offer_along(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, body=b"")
    raw.respond(invite, 180, tag="two")
    raw.respond(invite, 183, tag="one", body=SDP, RSeq="1", Require="100rel")
    stage.advance()
    raw.respond(invite, 199, tag="one")
    stage.advance(15)
    assert "Failed" not in alice.names
    raw.respond(invite, 486, tag="two")
    stage.finish()


async def test_a_late_challenge_of_an_offer_given_up_leaves_the_peers_offer_alone(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("a", "b"))
    raw.respond(invite, 200, tag="one", body=SDP)
    stage.advance()
    alice.session.reinvite(HOLD)
    stage.advance()
    reinvite = raw.requests("INVITE")[-1]
    raw.respond(reinvite, 100)
    stage.advance(33)
    assert alice.names[-1] == "OfferFailed"
    within(raw, invite, "INVITE", "one", 1, body=OTHER_SDP)
    stage.advance()
    raw.respond(reinvite, 401, WWW_Authenticate='Digest realm="x", nonce="1"')
    stage.advance()
    alice.session.reinvite(SDP)
    stage.advance()
    assert raw.requests("INVITE")[-1].cseq.number == reinvite.cseq.number, "theirs is answered first"


async def test_the_ack_of_a_reinvite_carries_its_credentials(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("a", "b"))
    raw.respond(invite, 407, Proxy_Authenticate='Digest realm="x", nonce="1"')
    stage.advance()
    raw.respond(raw.requests("INVITE")[-1], 200, tag="one", body=SDP)
    stage.advance()
    alice.session.reinvite(HOLD)
    stage.advance()
    reinvite = raw.requests("INVITE")[-1]
    raw.respond(reinvite, 200, tag="one", body=SDP)
    stage.advance()
    ack = raw.requests("ACK")[-1]
    assert ack.cseq.number == reinvite.cseq.number
    credentials = reinvite.headers.get("Proxy-Authorization")
    assert credentials is not None
    assert ack.headers.get("Proxy-Authorization") == credentials
    alice.session.hangup()
    stage.finish()


@pytest.mark.parametrize("what", ["info", "reinvite", "update"])
async def test_a_connection_that_breaks_within_a_call_does_not_end_it(stage: Stage, what: str) -> None:
    alice = stage.alice.call(BOB, "tcp")
    stage.advance()
    stage.network.silent.add(BOB)
    if what == "info":
        alice.session.info("text/plain", b"x")
    elif what == "reinvite":
        alice.session.reinvite(HOLD)
    else:
        alice.session.update(HOLD)
    alice.session.flow.break_off()
    stage.network.silent.clear()
    stage.advance(1)
    assert "Ended" not in alice.names
    alice.session.hangup()
    stage.advance()
    assert stage.bob.inbound[0].names[-1] == "Ended"
    stage.finish()


async def test_an_offer_that_the_ack_does_not_answer_ends_the_call(stage: Stage) -> None:
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a"))
    stage.advance()
    to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
    raw.send(raw.request("ACK", branch="ack", To=to))
    stage.advance()
    [bye] = raw.requests("BYE")
    assert "488" in (bye.headers.get("Reason") or "")
    raw.respond(bye, 200)
    assert stage.bob.inbound[0].names[-1] == "Ended"
    stage.finish()


async def test_options_within_a_call_say_what_those_outside_say(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    raw.send(raw.request("OPTIONS", branch="in", To=to, CSeq="2 OPTIONS"))
    raw.send(raw.request("OPTIONS", branch="out", Call_ID="other"))
    stage.advance()
    inside, outside = raw.responses("OPTIONS", 200)
    for name in ("Allow", "Accept", "Supported"):
        assert inside.headers.get(name) == outside.headers.get(name)


@pytest.mark.parametrize("contact", ["<sip:raw@192.0.2.9;transport=tls>", "<sip:raw@[2001:db8::9]>"])
async def test_a_contact_out_of_reach_is_answered_where_it_was_heard(stage: Stage, contact: str) -> None:
    """A peer that names a transport or an address family we do not have came by one that we have."""
    raw, alice, invite = raw_callee(stage)
    raw.respond(invite, 200, tag="one", body=SDP, Contact=contact)
    stage.advance()
    assert len(raw.requests("ACK")) == 1
    alice.session.hangup()
    stage.advance()
    [bye] = raw.requests("BYE")
    assert f"<{bye.uri}>" == contact
    raw.respond(bye, 200)
    stage.finish()


async def test_the_202_to_a_refer_names_our_contact(stage: Stage) -> None:
    raw, to = answered_raw(stage)
    bob = stage.bob.inbound[0]
    bob.session.allows_refer = True
    raw.send(raw.request("REFER", branch="refer", To=to, CSeq="2 REFER", Refer_To="<sip:c@192.0.2.7>"))
    stage.advance()
    bob.session.accept_refer()
    stage.advance()
    [accepted] = raw.responses("REFER", 202)
    assert accepted.headers.get("Contact") == raw.responses("INVITE", 200)[0].headers.get("Contact")
    raw.respond(raw.requests("NOTIFY")[0], 200)
    raw.send(raw.request("BYE", branch="bye", To=to, CSeq="3 BYE"))
    stage.finish()


async def test_a_call_is_cancelled_though_its_connection_broke_while_it_rang(stage: Stage) -> None:
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB, "tcp")
    stage.advance()
    alice.session.flow.break_off()
    alice.session.hangup()
    stage.advance()
    assert stage.bob.inbound[0].names == ["Cancelled"]
    stage.advance(1)
    assert stage.alice.ua.sessions == 0
    stage.finish()


async def test_an_update_that_times_out_before_the_ack_blocks_no_later_offer(stage: Stage) -> None:
    raw, bob = raw_caller(stage, Supported="100rel", Allow="INVITE, ACK, BYE, PRACK, UPDATE")
    bob.session.progress(183, SDP)
    stage.advance()
    ringing = raw.responses("INVITE", 183)[0]
    to = ringing.headers.get("To") or ""
    prack(raw, ringing)
    stage.advance()
    bob.session.update(OTHER_SDP)
    stage.advance(31)
    assert raw.requests("UPDATE")
    bob.session.answer(SDP)
    stage.advance(2)
    raw.send(raw.request("ACK", branch="ack", To=to))
    stage.advance()
    assert bob.names[-1] == "Confirmed", bob.names
    raw.send(raw.request("INVITE", branch="again", To=to, CSeq="3 INVITE", body=OTHER_SDP))
    stage.advance()
    assert bob.last(OfferReceived).body == OTHER_SDP


async def test_requests_after_we_hung_up_before_the_ack(stage: Stage) -> None:
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    stage.advance()
    to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
    bob = stage.bob.inbound[0]
    bob.session.hangup()
    raw.send(raw.request("REFER", branch="r", To=to, CSeq="2 REFER", Refer_To="<sip:c@192.0.2.7>"))
    raw.send(raw.request("UPDATE", branch="u", To=to, CSeq="3 UPDATE", body=SDP))
    raw.send(raw.request("ACK", branch="ack", To=to))
    stage.advance()
    assert [r.status for r in raw.responses("REFER")] == [481]
    assert [r.status for r in raw.responses("UPDATE")] == [481]
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_requests_within_a_call_find_a_new_connection(stage: Stage) -> None:
    alice = stage.alice.call(BOB, "tcp")
    stage.advance()
    bob = stage.bob.inbound[0]
    alice.session.flow.break_off()
    alice.session.reinvite(HOLD)
    stage.advance()
    bob.session.accept_offer(SDP)
    stage.advance()
    assert alice.last(OfferAnswered).body == SDP
    bob.session.flow.break_off()
    bob.session.info("text/plain", b"x")
    stage.advance()
    assert alice.last(InfoReceived).body == b"x"
    bob.session.hangup()
    stage.advance()
    assert alice.names[-1] == "Ended"
    stage.finish()


async def test_a_challenge_a_minimum_and_another_challenge_in_one_attempt(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("a", "b"), session_expires_s=100)
    raw.respond(invite, 407, Proxy_Authenticate='Digest realm="proxy", nonce="1", qop="auth"')
    stage.advance()
    raw.respond(raw.requests("INVITE")[-1], 422, Min_SE="200")
    stage.advance()
    raw.respond(raw.requests("INVITE")[-1], 401, WWW_Authenticate='Digest realm="end", nonce="2"')
    stage.advance()
    last = raw.requests("INVITE")[-1]
    assert [r.cseq.number for r in raw.requests("INVITE")] == [1, 2, 3, 4]
    assert len({r.via.branch for r in raw.requests("INVITE")}) == 4
    assert len({r.headers.get("From") for r in raw.requests("INVITE")}) == 1
    assert last.headers.get("Session-Expires") == "200"
    assert last.headers.get("Authorization") and last.headers.get("Proxy-Authorization")
    raw.respond(last, 183, tag="one", body=SDP, RSeq="5", Require="100rel")
    stage.advance()
    [request] = raw.requests("PRACK")
    assert (request.cseq.number, request.headers.get("RAck")) == (5, "5 4 INVITE")
    assert request.headers.get("Authorization")
    raw.respond(request, 401, tag="one", WWW_Authenticate='Digest realm="end", nonce="3", stale=true')
    stage.advance()
    again = raw.requests("PRACK")[-1]
    assert again.cseq.number == 6
    assert 'nonce="3"' in (again.headers.get("Authorization") or "")
    raw.respond(again, 200, tag="one")
    raw.respond(last, 200, tag="one")
    stage.advance()
    [ack] = [r for r in raw.requests("ACK") if r.cseq.number == 4]
    assert ack.headers.get("Proxy-Authorization") == last.headers.get("Proxy-Authorization")
    alice.session.hangup()
    stage.advance()
    assert raw.requests("BYE")[0].cseq.number == 7
    raw.respond(raw.requests("BYE")[0], 200, tag="one")
    stage.finish()


async def test_a_strict_router_gets_all_requests_of_the_dialog_its_way(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage)
    routes = "<sip:far.example;lr>, <sip:192.0.2.9:5060;transport=udp>"
    raw.respond(
        invite, 200, tag="one", body=SDP, Record_Route=routes, Contact="<sip:end@10.9.9.9;maddr=1.1.1.1>"
    )
    stage.advance()
    alice.session.info("text/plain", b"x")
    alice.session.hangup()
    stage.advance()
    for method in ("ACK", "INFO", "BYE"):
        [request] = raw.requests(method)
        assert str(request.uri) == "sip:192.0.2.9:5060;transport=udp"
        assert request.headers.get_all("Route") == [
            "<sip:far.example;lr>",
            "<sip:end@10.9.9.9;maddr=1.1.1.1>",
        ]


@pytest.mark.parametrize("knows_timers", [True, False])
async def test_a_refresh_falls_due_while_the_peers_offer_waits(stage: Stage, knows_timers: bool) -> None:
    raw, alice, invite = raw_callee(stage, session_expires_s=90)
    raw.respond(invite, 200, tag="one", body=SDP, Session_Expires="90;refresher=uac", Require="timer")
    stage.advance(40)
    within(raw, invite, "INVITE", "one", 1, body=OTHER_SDP, Supported="timer" if knows_timers else "")
    stage.advance(6)
    alice.session.accept_offer(HOLD)
    stage.advance()
    [answer] = raw.responses("INVITE", 200)
    within(raw, invite, "ACK", "one", 1)
    stage.advance(46)
    refreshes = raw.requests("UPDATE") + raw.requests("INVITE")[1:]
    assert refreshes, "the interval begins anew, and is kept"
    assert "Ended" not in alice.names
    assert (answer.headers.get("Session-Expires") is not None) == knows_timers


@pytest.mark.parametrize("stale", [True, False])
async def test_digits_in_a_row_that_are_all_challenged_all_arrive(stage: Stage, stale: bool) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("a", "b"))
    if stale:
        raw.respond(invite, 401, WWW_Authenticate='Digest realm="end", nonce="old"')
        stage.advance()
    raw.respond(raw.requests("INVITE")[-1], 200, tag="one", body=SDP)
    stage.advance()
    for digit in (b"1", b"2", b"3"):
        alice.session.info("application/dtmf", digit)
    stage.advance()
    for number, request in enumerate(raw.requests("INFO")):
        challenge = f'Digest realm="end", nonce="{number}"' + (", stale=true" if stale else "")
        raw.respond(request, 401, tag="one", WWW_Authenticate=challenge)
    stage.advance()
    again = raw.requests("INFO")[3:]
    assert [request.body for request in again] == [b"1", b"2", b"3"]
    assert all("nonce=" in (request.headers.get("Authorization") or "") for request in again)
    assert len({request.cseq.number for request in again}) == 3


async def test_a_challenge_that_cannot_be_answered_is_not_answered_again_and_again(stage: Stage) -> None:
    raw, alice, invite = raw_callee(stage, credentials=Credentials("a", "b"))
    raw.respond(invite, 200, tag="one", body=SDP)
    stage.advance()
    alice.session.info("application/dtmf", b"1")
    stage.advance()
    raw.respond(raw.requests("INFO")[0], 401, tag="one", WWW_Authenticate='Digest realm="x", algorithm=odd')
    stage.advance()
    alice.session.info("application/dtmf", b"2")
    stage.advance()
    raw.respond(raw.requests("INFO")[1], 401, tag="one", WWW_Authenticate='Digest realm="x", algorithm=odd')
    stage.advance()
    assert len(raw.requests("INFO")) == 2
