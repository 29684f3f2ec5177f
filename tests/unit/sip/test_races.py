"""Messages lost, repeated and crossing on the wire (RFC 3261, RFC 5407)."""

from sip import Answered, Ended, Failed, Progress, Request, Response, parse_message
from sip.aio import InboundSession, UserAgentSettings
from sip.aio.transport import Address
from tests.support.sip_agents import OTHER_SDP, SDP
from tests.support.sip_stage import BOB, RAW, Stage, make_stage


def losing(stage: Stage, start: bytes, times: int) -> None:
    """Lose the first messages that begin like this."""
    left = [times]

    def drop(data: bytes, source: Address, target: Address) -> bool:
        if left[0] and data.startswith(start):
            left[0] -= 1
            return True
        return False

    stage.network.drop = drop


def sent(stage: Stage, start: bytes) -> list[float]:
    """When messages that begin like this were sent, from the first message of the test."""
    wire = stage.network.wire
    return [round(at - wire[0][0], 2) for at, _, _, data in wire if data.startswith(start)]


class TestAnswer:
    async def test_a_lost_200_is_repeated_until_the_ack(self, stage: Stage) -> None:
        losing(stage, b"SIP/2.0 200", 2)
        alice = stage.alice.call(BOB)
        stage.advance(10)
        assert alice.names == ["Answered"]
        assert stage.bob.inbound[0].names == ["Confirmed"]
        assert sent(stage, b"SIP/2.0 200") == [0.0, 0.5, 1.5]
        alice.session.hangup()
        stage.finish()

    async def test_a_lost_ack_is_sent_again_for_each_200(self, stage: Stage) -> None:
        losing(stage, b"ACK", 3)
        alice = stage.alice.call(BOB)
        stage.advance(10)
        assert alice.names == ["Answered"]
        assert stage.bob.inbound[0].names == ["Confirmed"]
        assert len(sent(stage, b"ACK")) == 4
        acks = {data for _, _, _, data in stage.network.wire if data.startswith(b"ACK")}
        assert len(acks) == 1, "the same ACK each time"
        alice.session.hangup()
        stage.finish()

    async def test_an_answer_that_is_never_acknowledged_ends_in_a_bye(self, stage: Stage) -> None:
        losing(stage, b"ACK", 1000)
        stage.alice.call(BOB)
        stage.advance(31)
        bob = stage.bob.inbound[0]
        assert bob.names == []
        stage.advance(2)
        assert bob.events == [Ended("local", "ack_timeout")]
        assert sent(stage, b"SIP/2.0 200 OK")[:11] == [
            0.0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5,
        ]  # fmt: skip
        assert sent(stage, b"BYE") == [32.0]
        stage.finish()

    async def test_the_ack_still_counts_after_the_last_repetition(self, stage: Stage) -> None:
        losing(stage, b"ACK", 10)
        alice = stage.alice.call(BOB)
        stage.advance(40)
        assert stage.bob.inbound[0].names == ["Confirmed"]
        alice.session.hangup()
        stage.finish()

    async def test_hanging_up_before_the_ack_waits_for_it(self, stage: Stage) -> None:
        losing(stage, b"ACK", 1)
        stage.alice.call(BOB)
        stage.advance()
        bob = stage.bob.inbound[0]
        bob.session.hangup()
        stage.advance(0.1)
        assert bob.events == [Ended("local", "bye")]
        assert sent(stage, b"BYE") == []
        stage.advance(1)
        assert sent(stage, b"BYE") == [0.5]
        stage.finish()

    async def test_hanging_up_without_any_ack_ends_in_a_bye_all_the_same(self, stage: Stage) -> None:
        losing(stage, b"ACK", 1000)
        stage.alice.call(BOB)
        stage.advance()
        stage.bob.inbound[0].session.hangup()
        stage.advance(40)
        assert sent(stage, b"BYE") == [32.0]
        assert stage.bob.inbound[0].names == ["Ended"]
        stage.finish()

    async def test_forty_copies_of_an_invite_are_one_call(self, stage: Stage) -> None:
        raw = stage.raw()
        invite = raw.request("INVITE", branch="a", body=SDP)
        stage.bob.answer = lambda session: session.progress(180)
        for _ in range(40):
            raw.send(invite)
        stage.advance()
        assert len(stage.bob.inbound) == 1
        stage.bob.inbound[0].session.reject(486)
        stage.advance()
        raw.send(raw.request("ACK", branch="a"))
        stage.finish()

    async def test_a_200_long_after_its_transaction_is_acknowledged_again(self, stage: Stage) -> None:
        raw = stage.raw(stage.alice)
        alice = stage.alice.call(RAW)
        stage.advance()
        invite = raw.requests("INVITE")[0]
        raw.respond(invite, 200, body=SDP)
        stage.advance(40)
        raw.respond(invite, 200, body=SDP)
        stage.advance()
        assert len(raw.requests("ACK")) == 2
        assert alice.names == ["Answered"]
        alice.session.hangup()
        stage.advance()
        raw.respond(raw.requests("BYE")[0], 200)
        stage.finish()


class TestForks:
    async def test_late_answers_of_other_forks_are_acknowledged_and_hung_up(self, stage: Stage) -> None:
        raw = stage.raw(stage.alice)
        alice = stage.alice.call(RAW)
        stage.advance()
        invite = raw.requests("INVITE")[0]
        raw.respond(invite, 180, tag="one")
        raw.respond(invite, 183, tag="two", body=SDP)
        raw.respond(invite, 200, tag="two", body=SDP)
        raw.respond(invite, 200, tag="one", body=OTHER_SDP)
        raw.respond(invite, 200, tag="one", body=OTHER_SDP)
        stage.advance()
        assert alice.names == ["Progress", "Progress", "Answered"]
        assert alice.last(Answered).body == SDP
        assert [ack.to.tag for ack in raw.requests("ACK")] == ["two", "one", "one"]
        byes = raw.requests("BYE")
        assert [bye.to.tag for bye in byes] == ["one"]
        raw.respond(byes[0], 200)
        alice.session.hangup()
        stage.advance()
        assert [bye.to.tag for bye in raw.requests("BYE")] == ["one", "two"]
        raw.respond(raw.requests("BYE")[1], 200)
        stage.finish()


class TestCancel:
    async def test_the_answer_crosses_the_cancel(self, stage: Stage) -> None:
        """RFC 5407 3.1.2: the callee's 200 wins, so the caller acknowledges it and hangs up."""
        stage.bob.answer = lambda session: session.progress(180)
        alice = stage.alice.call(BOB)
        stage.advance()
        bob = stage.bob.inbound[0]
        alice.session.hangup()
        bob.session.answer(SDP)
        stage.advance(0.5)
        assert [event.cause for event in alice.events if isinstance(event, Failed)] == ["cancelled"]
        assert alice.names == ["Progress", "Failed"]
        assert bob.names == ["Confirmed", "Ended"]
        assert stage.alice.ua.sessions == stage.bob.ua.sessions == 0
        stage.finish()

    async def test_cancel_waits_for_a_provisional_response(self, stage: Stage) -> None:
        raw = stage.raw(stage.alice)
        alice = stage.alice.call(RAW)
        stage.advance()
        alice.session.hangup()
        stage.advance()
        assert raw.requests("CANCEL") == []
        invite = raw.requests("INVITE")[0]
        raw.respond(invite, 100)
        stage.advance()
        cancel = raw.requests("CANCEL")[0]
        assert cancel.via.branch == invite.via.branch
        assert cancel.cseq.number == invite.cseq.number
        assert cancel.to.tag is None
        assert str(cancel.uri) == str(invite.uri)
        raw.respond(cancel, 200)
        raw.respond(invite, 487)
        stage.advance()
        assert alice.names == ["Failed"]
        stage.finish()

    async def test_a_peer_that_ignores_the_cancel_is_given_up(self, stage: Stage) -> None:
        raw = stage.raw(stage.alice)
        alice = stage.alice.call(RAW)
        stage.advance()
        raw.respond(raw.requests("INVITE")[0], 180)
        stage.advance()
        alice.session.hangup()
        stage.advance(33)
        assert alice.names == ["Progress", "Failed"]
        assert stage.alice.ua.sessions == 0
        stage.finish()

    async def test_a_repeated_cancel_gets_its_200_again_and_one_487(self, stage: Stage) -> None:
        raw = stage.raw()
        stage.bob.answer = lambda session: session.progress(180)
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        stage.advance()
        for _ in range(3):
            raw.send(raw.request("CANCEL", branch="a", Reason="Q.850;cause=16"))
        stage.advance()
        assert len(raw.responses("CANCEL", 200)) == 3
        tags = {response.to.tag for response in raw.responses("CANCEL")}
        assert tags == {raw.responses("INVITE", 180)[0].to.tag}
        assert len(raw.responses("INVITE", 487)) == 1
        assert stage.bob.inbound[0].names == ["Cancelled"]
        raw.send(raw.request("ACK", branch="a"))
        stage.finish()

    async def test_a_cancel_after_the_answer_changes_nothing(self, stage: Stage) -> None:
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        stage.advance()
        raw.send(raw.request("CANCEL", branch="a"))
        stage.advance()
        assert len(raw.responses("CANCEL", 200)) == 1
        assert stage.bob.inbound[0].names == []
        stage.finish()

    async def test_a_caller_may_hang_up_an_early_dialog_by_bye(self, stage: Stage) -> None:
        raw = stage.raw()
        stage.bob.answer = lambda session: session.progress(180)
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        stage.advance()
        to = raw.responses("INVITE", 180)[0].headers.get("To") or ""
        raw.send(raw.request("BYE", branch="b", To=to, CSeq="2 BYE"))
        stage.advance()
        assert len(raw.responses("BYE", 200)) == 1
        assert len(raw.responses("INVITE", 487)) == 1
        assert stage.bob.inbound[0].names == ["Cancelled"]
        raw.send(raw.request("ACK", branch="a"))
        stage.finish()


class TestBye:
    async def test_both_hang_up_at_once(self, stage: Stage) -> None:
        """RFC 5407 3.2.3 and following: each BYE is answered with 200."""
        alice = stage.alice.call(BOB)
        stage.advance()
        bob = stage.bob.inbound[0]
        alice.session.hangup()
        bob.session.hangup()
        stage.advance()
        assert alice.events[-1] == Ended("local", "bye")
        assert bob.events[-1] == Ended("local", "bye")
        statuses = [
            message.status
            for _, _, _, data in stage.network.wire
            if isinstance(message := parse_message(data), Response) and message.cseq.method == "BYE"
        ]
        assert statuses == [200, 200]
        stage.finish()

    async def test_a_bye_nobody_answers_is_given_up(self, stage: Stage) -> None:
        alice = stage.alice.call(BOB)
        stage.advance()
        stage.network.faults.loss = 1.0
        alice.session.hangup()
        stage.advance(33)
        assert alice.names == ["Answered", "Ended"]
        assert stage.alice.ua.sessions == 0
        stage.network.faults.loss = 0.0
        stage.bob.inbound[0].session.hangup()
        stage.finish()

    async def test_a_bye_before_the_ack_ends_the_call(self, stage: Stage) -> None:
        losing(stage, b"ACK", 1000)
        alice = stage.alice.call(BOB)
        stage.advance()
        alice.session.hangup()
        stage.advance()
        assert stage.bob.inbound[0].events == [Ended("remote", "bye")]
        stage.finish()

    async def test_a_lost_200_to_a_bye_is_sent_again(self, stage: Stage) -> None:
        alice = stage.alice.call(BOB)
        stage.advance()
        losing(stage, b"SIP/2.0 200", 1)
        alice.session.hangup()
        stage.advance(2)
        assert stage.bob.inbound[0].names.count("Ended") == 1
        assert stage.alice.ua.sessions == 0
        stage.finish()


async def test_many_calls_over_a_bad_network() -> None:
    """A tenth of all messages lost, some doubled, some late: every call comes about and ends, once."""
    stage = await make_stage(UserAgentSettings(first_response_timeout_s=30))
    faults = stage.network.faults
    faults.loss, faults.double, faults.reorder = 0.1, 0.05, 0.05

    def ring_and_answer(session: InboundSession) -> None:
        session.progress(180)
        session.answer(SDP)

    stage.bob.answer = ring_and_answer
    calls = [stage.alice.call(BOB) for _ in range(300)]
    stage.advance(33)
    assert all(call.last(Answered) for call in calls)
    assert len(stage.bob.inbound) == 300
    assert all(bob.names == ["Confirmed"] for bob in stage.bob.inbound)
    for call in calls[::2]:
        call.session.hangup()
    for bob in stage.bob.inbound:
        if stage.bob.ua.sessions:
            bob.session.hangup()
    stage.advance(60)
    for side in (*calls, *stage.bob.inbound):
        assert side.names.count("Ended") == 1
        assert side.names[-1] == "Ended"
    assert all(event.status == 180 for call in calls for event in call.events if isinstance(event, Progress))
    assert not any(isinstance(event, Failed) for call in calls for event in call.events)
    faults.loss = faults.double = faults.reorder = 0.0
    stage.finish()


async def test_requests_of_the_wire_are_well_formed(stage: Stage) -> None:
    alice = stage.alice.call(BOB)
    stage.advance()
    alice.session.hangup()
    stage.advance()
    for _, _, _, data in stage.network.wire:
        message = parse_message(data)
        assert "Content-Length" in message.headers
        if isinstance(message, Request):
            assert message.max_forwards == 70
    stage.finish()
