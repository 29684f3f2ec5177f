"""Reliable provisional responses and PRACK, sent and received (RFC 3262)."""

from typing import Any

import pytest

from sip import (
    Answered,
    Confirmed,
    Credentials,
    Ended,
    Failed,
    OfferAnswered,
    OfferReceived,
    Progress,
    Request,
    Response,
)
from sip.aio import InboundSession
from sip.session.prack import RAck, ReliableResponses, parse_rack, reliable_number
from sip.timers import Timers
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer, Side
from tests.support.sip_stage import ALICE, BOB, RAW, Stage
from tests.unit.sip.test_races import losing, sent
from tests.unit.sip.transactions.test_transactions import make_request


def numbered(text: str | None, require: str | None = "100rel") -> Response:
    response = Response(183)
    if text is not None:
        response.headers.add("RSeq", text)
    if require is not None:
        response.headers.add("Require", require)
    return response


class TestFields:
    @pytest.mark.parametrize(
        ("text", "rack"),
        [
            ("7 1 INVITE", RAck(7, 1, "INVITE")),
            ("  7   1  INVITE ", RAck(7, 1, "INVITE")),
            ("", None),
            ("7 INVITE", None),
            ("7 x INVITE", None),
            ("-7 1 INVITE", None),
            ("4294967296 1 INVITE", None),
            ("7 1 INVITE again", None),
        ],
    )
    def test_rack(self, text: str, rack: RAck | None) -> None:
        prack = make_request("PRACK")
        prack.headers.add("RAck", text)
        assert parse_rack(prack) == rack

    @pytest.mark.parametrize(
        ("text", "require", "number"),
        [
            ("7", "100rel", 7),
            (" 7 ", "timer, 100REL", 7),
            ("7", None, None),
            ("7", "timer", None),
            (None, "100rel", None),
            ("x", "100rel", None),
            ("99999999999", "100rel", None),
        ],
    )
    def test_rseq(self, text: str | None, require: str | None, number: int | None) -> None:
        assert reliable_number(numbered(text, require)) == number


class TestQueue:
    def test_one_is_on_its_way_and_the_others_wait(self) -> None:
        queue = ReliableResponses(5, 3, Timers())
        first, second = Response(180), Response(183, body=SDP)
        assert queue.submit(first) is first
        assert queue.submit(second) is None
        assert queue.holds_answer
        assert queue.acknowledge(RAck(6, 3, "INVITE")) is None
        assert queue.acknowledge(RAck(5, 4, "INVITE")) is None
        assert queue.acknowledge(RAck(5, 3, "BYE")) is None
        assert queue.next() is None
        assert queue.acknowledge(RAck(5, 3, "INVITE")) is first
        assert queue.acknowledge(RAck(5, 3, "INVITE")) is None
        assert queue.next() is second
        assert reliable_number(second) == 6
        assert queue.acknowledge(RAck(6, 3, "INVITE")) is second
        assert not queue.holds_answer

    def test_the_queue_is_bounded(self) -> None:
        queue = ReliableResponses(1, 1, Timers())
        for _ in range(100):
            queue.submit(Response(180))
        count = 1
        while queue.acknowledge(RAck(count, 1, "INVITE")) is not None and queue.next() is not None:
            count += 1
        assert count == 9


def rings(
    session: InboundSession, body: bytes = b"", reliable: bool | None = None, status: int = 180
) -> None:
    session.progress(status, body, reliable=reliable)


def raw_caller(stage: Stage, body: bytes = SDP, **fields: str) -> tuple[RawPeer, Side]:
    """A raw caller whose INVITE Bob has got and not answered."""
    stage.bob.answer = lambda session: None
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="invite", body=body, **fields))
    stage.advance()
    return raw, stage.bob.inbound[0]


def prack(
    raw: RawPeer, response: Response, cseq: int = 2, body: bytes = b"", rack: str | None = None
) -> None:
    rseq = response.headers.get("RSeq")
    raw.send(
        raw.request(
            "PRACK",
            branch=f"prack{cseq}",
            To=response.headers.get("To") or "",
            CSeq=f"{cseq} PRACK",
            RAck=rack if rack is not None else f"{rseq} 1 INVITE",
            body=body,
        )
    )


def ack(raw: RawPeer, response: Response, body: bytes = b"") -> None:
    raw.send(raw.request("ACK", branch="ack", To=response.headers.get("To") or "", CSeq="1 ACK", body=body))


class TestBothSides:
    async def test_ringing_with_a_description_is_acknowledged_and_settles_the_offer(
        self, stage: Stage
    ) -> None:
        stage.bob.answer = lambda session: rings(session, OTHER_SDP, status=183)
        alice = stage.alice.call(BOB)
        stage.advance()
        bob = stage.bob.inbound[0]
        progress = alice.last(Progress)
        assert (progress.status, progress.body, progress.reliable) == (183, OTHER_SDP, True)
        assert progress.tag == bob.session.key[1]
        assert len(sent(stage, b"PRACK")) == 1
        bob.session.answer(OTHER_SDP)
        stage.advance()
        assert alice.last(Answered).body == OTHER_SDP, "what holds, though the 200 does not repeat it"
        assert bob.names == ["Confirmed"]
        assert not [d for *_, d in stage.network.wire if d.startswith(b"SIP/2.0 200") and b"4000" in d]
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("lost", [b"SIP/2.0 183", b"PRACK", b"SIP/2.0 200"])
    async def test_with_losses(self, stage: Stage, lost: bytes) -> None:
        losing(stage, lost, 2)
        stage.bob.answer = lambda session: rings(session, SDP, status=183)
        alice = stage.alice.call(BOB)
        stage.advance(4)
        assert alice.names == ["Progress"]
        stage.bob.inbound[0].session.answer(SDP)
        stage.advance(4)
        assert alice.names == ["Progress", "Answered"]
        alice.session.hangup()
        stage.finish()

    async def test_everything_is_reliable_when_it_is_required(self, stage: Stage) -> None:
        stage.bob.answer = rings
        alice = stage.alice.call(BOB, rel100="required")
        stage.advance()
        stage.bob.inbound[0].session.progress(182)
        stage.advance()
        assert [event.status for event in alice.events if isinstance(event, Progress)] == [180, 182]
        assert len(sent(stage, b"PRACK")) == 2
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize(("rel100", "reliable"), [("off", None), ("off", True), ("supported", False)])
    async def test_off_on_either_side(self, stage: Stage, rel100: str, reliable: bool | None) -> None:
        stage.bob.answer = lambda session: rings(session, SDP, reliable, 183)
        alice = stage.alice.call(BOB, rel100=rel100)
        stage.advance()
        assert not alice.last(Progress).reliable
        assert sent(stage, b"PRACK") == []
        stage.bob.inbound[0].session.answer(OTHER_SDP)
        stage.advance()
        assert alice.last(Answered).body == OTHER_SDP
        alice.session.hangup()
        stage.finish()

    async def test_an_offer_the_invite_lacked_comes_with_the_ringing(self, stage: Stage) -> None:
        stage.bob.answer = lambda session: rings(session, SDP, status=183)
        alice = stage.alice.call(BOB, body=b"")
        stage.advance(1)
        assert alice.last(Progress).needs_answer
        assert sent(stage, b"PRACK") == []
        alice.session.accept_offer(OTHER_SDP)
        stage.advance()
        bob = stage.bob.inbound[0]
        assert bob.last(OfferAnswered).body == OTHER_SDP
        bob.session.answer(SDP)
        stage.advance()
        assert not alice.last(Answered).needs_answer
        assert bob.last(Confirmed).body == b""
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("refused", [True, False])
    async def test_nobody_answers_the_offer_of_the_ringing(self, stage: Stage, refused: bool) -> None:
        stage.bob.answer = lambda session: rings(session, SDP, status=183)
        alice = stage.alice.call(BOB, body=b"")
        stage.advance(1)
        if refused:
            alice.session.reject_offer()
        stage.advance(11)
        assert alice.last(Failed).status == 488
        assert stage.bob.inbound[0].names == ["Cancelled"]
        stage.finish()


class TestCalled:
    async def test_repeated_until_the_call_is_refused(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance(31)
        times = sent(stage, b"SIP/2.0 183")
        stage.advance(2)
        times = [round(at - times[0], 2) for at in sent(stage, b"SIP/2.0 183")]
        assert times == [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5]
        assert len(raw.responses("INVITE", 504)) >= 1
        assert bob.events == [Ended("local", "timeout")]
        stage.finish()

    async def test_required_in_every_response_and_numbered(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Require="100rel")
        for status in (180, 182):
            bob.session.progress(status, reliable=False)
        stage.advance()
        [ringing] = [r for r in raw.responses("INVITE") if r.status > 100]
        assert ringing.option_tags("Require") == ["100rel"]
        assert 1 <= int(ringing.headers.get("RSeq") or "") < 2**31
        prack(raw, ringing)
        stage.advance()
        [queued] = raw.responses("INVITE", 182)
        assert int(queued.headers.get("RSeq") or "") == int(ringing.headers.get("RSeq") or "") + 1
        assert len(raw.responses("PRACK", 200)) == 1
        bob.session.hangup()
        stage.advance(0.1)
        stage.finish()

    @pytest.mark.parametrize(
        ("rack", "status"),
        [("1 1 INVITE", 481), ("", 400), ("nonsense", 400)],
    )
    async def test_a_prack_that_fits_nothing(self, stage: Stage, rack: str, status: int) -> None:
        raw, bob = raw_caller(stage, Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance()
        prack(raw, raw.responses("INVITE", 183)[0], rack=rack or "-")
        stage.advance()
        assert len(raw.responses("PRACK", status)) == 1
        stage.advance(0.6)
        assert len(raw.responses("INVITE", 183)) == 2, "it is still repeated"
        bob.session.hangup()
        stage.finish()

    async def test_the_answer_waits_for_the_prack_of_a_description(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Supported="100rel")
        bob.session.progress(183, SDP)
        bob.session.answer(SDP)
        bob.session.progress(180)
        stage.advance()
        assert raw.responses("INVITE", 200) == []
        prack(raw, raw.responses("INVITE", 183)[0])
        stage.advance()
        [ok] = raw.responses("INVITE", 200)
        assert ok.body == b""
        assert raw.responses("INVITE", 180) == []
        ack(raw, ok)
        stage.advance()
        assert bob.names == ["Confirmed"]
        bob.session.hangup()
        stage.finish()

    async def test_ringing_without_a_description_holds_no_answer(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Require="100rel")
        bob.session.progress(180)
        bob.session.answer(SDP)
        stage.advance()
        [ok] = raw.responses("INVITE", 200)
        assert ok.body == SDP
        prack(raw, raw.responses("INVITE", 180)[0])
        stage.advance()
        assert len(raw.responses("PRACK", 200)) == 1, "the PRACK of a response before the answer"
        ack(raw, ok)
        stage.advance(2)
        assert len(raw.responses("INVITE", 180)) == 1
        bob.session.hangup()
        stage.finish()

    async def test_an_offer_in_the_prack(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance()
        prack(raw, raw.responses("INVITE", 183)[0], body=OTHER_SDP)
        stage.advance()
        assert bob.last(OfferReceived).body == OTHER_SDP
        bob.session.accept_offer(SDP)
        stage.advance()
        [ok] = raw.responses("PRACK", 200)
        assert ok.body == SDP
        bob.session.hangup()
        stage.finish()

    async def test_an_owner_that_never_answers_an_offer(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance()
        prack(raw, raw.responses("INVITE", 183)[0], body=OTHER_SDP)
        stage.advance(11)
        assert len(raw.responses("PRACK", 500)) == 1
        bob.session.answer(SDP)
        stage.advance()
        assert len(raw.responses("INVITE", 200)) == 1
        bob.session.hangup()
        stage.finish()

    async def test_a_prack_without_the_answer_leaves_the_offer_to_the_200(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, b"", Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance()
        prack(raw, raw.responses("INVITE", 183)[0])
        bob.session.answer(SDP)
        stage.advance()
        [ok] = raw.responses("INVITE", 200)
        assert ok.body == SDP
        ack(raw, ok, OTHER_SDP)
        stage.advance()
        assert bob.last(Confirmed).body == OTHER_SDP
        bob.session.hangup()
        stage.finish()

    async def test_no_offer_in_a_response_that_may_get_lost(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, b"")
        bob.session.progress(183, SDP)
        stage.advance()
        assert raw.responses("INVITE", 183)[0].body == b""
        bob.session.hangup()
        stage.finish()

    async def test_a_cancel_ends_the_repetitions(self, stage: Stage) -> None:
        raw, bob = raw_caller(stage, Supported="100rel")
        bob.session.progress(183, SDP)
        stage.advance()
        raw.send(raw.request("CANCEL", branch="invite", CSeq="1 CANCEL"))
        stage.advance(5)
        assert bob.names == ["Cancelled"]
        assert len(raw.responses("INVITE", 183)) == 1
        stage.finish()


def raw_callee(stage: Stage, **options: Any) -> tuple[RawPeer, Side, Request]:
    """A raw peer that Alice calls, and the INVITE it got."""
    raw = RawPeer(stage.network, RAW, ALICE)
    alice = stage.alice.call(RAW, **options)
    stage.advance()
    return raw, alice, raw.requests("INVITE")[0]


class TestCalling:
    async def test_only_the_next_number_is_acknowledged(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        assert invite.option_tags("Supported")[0] == "100rel"
        raw.respond(invite, 180, RSeq="10", Require="100rel")
        raw.respond(invite, 183, RSeq="12", Require="100rel")
        stage.advance()
        assert [p.headers.get("RAck") for p in raw.requests("PRACK")] == ["10 1 INVITE"]
        raw.respond(raw.requests("PRACK")[0], 200)
        raw.respond(invite, 180, RSeq="10", Require="100rel")
        raw.respond(invite, 182, RSeq="11", Require="100rel")
        stage.advance()
        raw.respond(invite, 183, RSeq="12", Require="100rel")
        stage.advance()
        racks = [p.headers.get("RAck") for p in raw.requests("PRACK")]
        assert list(dict.fromkeys(racks)) == ["10 1 INVITE", "11 1 INVITE", "12 1 INVITE"]
        assert [e.status for e in alice.events if isinstance(e, Progress)] == [180, 182, 183]
        alice.session.hangup()
        stage.finish()

    async def test_a_prack_that_failed_is_sent_anew_when_the_response_comes_again(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 180, RSeq="10", Require="100rel")
        stage.advance()
        raw.respond(raw.requests("PRACK")[0], 500)
        stage.advance()
        raw.respond(invite, 180, RSeq="10", Require="100rel")
        stage.advance()
        assert [p.cseq.number for p in raw.requests("PRACK")] == [2, 3]
        assert alice.names == ["Progress"]
        alice.session.hangup()
        stage.finish()

    async def test_a_challenged_prack_is_sent_with_credentials(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage, credentials=Credentials("alice", "secret"))
        raw.respond(invite, 180, RSeq="10", Require="100rel")
        stage.advance()
        challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
        raw.respond(raw.requests("PRACK")[0], 401, WWW_Authenticate=challenge)
        stage.advance()
        second = raw.requests("PRACK")[-1]
        assert second.headers.get("RAck") == "10 1 INVITE"
        assert "alice" in (second.headers.get("Authorization") or "")
        alice.session.hangup()
        stage.finish()

    async def test_the_description_of_a_reliable_response_is_the_answer(self, stage: Stage) -> None:
        raw, alice, invite = raw_callee(stage)
        raw.respond(invite, 183, body=SDP, RSeq="10", Require="100rel")
        stage.advance()
        raw.respond(invite, 180, body=OTHER_SDP)
        raw.respond(invite, 200, body=OTHER_SDP)
        stage.advance()
        assert [e.body for e in alice.events if isinstance(e, Progress)] == [SDP, b""]
        assert alice.last(Answered).body == SDP
        [acknowledgement] = raw.requests("ACK")
        assert acknowledgement.cseq.number == 1
        alice.session.hangup()
        stage.advance()
        assert raw.requests("BYE")[0].cseq.number == 3, "the PRACK had 2"
        raw.respond(raw.requests("BYE")[0], 200)
        stage.finish()
