"""Whole calls between two user agents, and how they end (RFC 3261 13 to 15)."""

import asyncio
import gc

import pytest

from sip import (
    Answered,
    Cancelled,
    Confirmed,
    Ended,
    Failed,
    InfoReceived,
    InvalidValue,
    Progress,
    Request,
    State,
    parse_message,
)
from sip.aio import InboundSession, UserAgentSettings
from sip.aio.transport import Address
from tests.support.sip_agents import OTHER_SDP, SDP
from tests.support.sip_network import break_connection
from tests.support.sip_stage import ALICE, BOB, RAW, Stage, make_stage

TRANSPORTS = pytest.mark.parametrize("transport", ["udp", "tcp"])


@TRANSPORTS
async def test_a_call_from_ringing_to_the_callers_bye(stage: Stage, transport: str) -> None:
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB, transport)
    stage.advance()
    bob = stage.bob.inbound[0]
    assert alice.names == ["Progress"]
    assert alice.last(Progress).status == 180
    bob.session.answer(OTHER_SDP)
    stage.advance()
    assert alice.last(Answered).body == OTHER_SDP
    assert bob.session.request.body == SDP
    assert bob.last(Confirmed).body == b""
    assert (alice.session.state, bob.session.state) == (State.CONFIRMED, State.CONFIRMED)
    alice.session.hangup(reason='Q.850;cause=16;text="Normal"')
    stage.advance()
    assert alice.events[-1] == Ended("local", "bye", 'Q.850;cause=16;text="Normal"')
    assert bob.events[-1] == Ended("remote", "bye", 'Q.850;cause=16;text="Normal"')
    assert alice.names.count("Ended") == bob.names.count("Ended") == 1
    stage.finish()


async def test_a_bye_that_was_lost_is_waited_for(stage: Stage) -> None:
    byes: list[bytes] = []

    def drop(data: bytes, source: Address, target: Address) -> bool:
        if data.startswith(b"BYE "):
            byes.append(data)
        return len(byes) == 1

    stage.network.drop = drop
    alice = stage.alice.call(BOB)
    stage.advance()
    assert not await stage.alice.ua.wait_without_sessions(0.0), "the call is up"
    alice.session.hangup()
    stage.advance()
    assert alice.names[-1] == "Ended"
    waiting = asyncio.create_task(stage.alice.ua.wait_without_sessions(60.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    stage.advance(0.6)
    assert await waiting
    assert len(byes) == 2 and stage.bob.inbound[0].events[-1] == Ended("remote", "bye")
    stage.finish()


@TRANSPORTS
async def test_the_called_side_hangs_up(stage: Stage, transport: str) -> None:
    alice = stage.alice.call(BOB, transport)
    stage.advance()
    stage.bob.inbound[0].session.hangup()
    stage.advance()
    assert alice.events[-1] == Ended("remote", "bye")
    assert stage.bob.inbound[0].events[-1] == Ended("local", "bye")
    stage.finish()


@TRANSPORTS
async def test_a_call_is_refused(stage: Stage, transport: str) -> None:
    stage.bob.answer = lambda session: session.reject(486, headers=[("Retry-After", "12 (lunch)")])
    alice = stage.alice.call(BOB, transport)
    stage.advance()
    failed = alice.last(Failed)
    assert (failed.status, failed.reason, failed.cause, failed.retry_after_s) == (
        486,
        "Busy Here",
        "response",
        12,
    )
    assert stage.bob.inbound[0].events == [Ended("local", "rejected")]
    stage.finish()


@TRANSPORTS
async def test_a_call_is_cancelled_while_it_rings(stage: Stage, transport: str) -> None:
    stage.bob.answer = lambda session: session.progress(183, SDP)
    alice = stage.alice.call(BOB, transport)
    stage.advance()
    alice.session.hangup(reason='SIP;cause=200;text="Call completed elsewhere"')
    assert alice.names == ["Progress"], "a command never calls back from within itself"
    stage.advance()
    assert alice.last(Failed).cause == "cancelled"
    assert isinstance(stage.bob.inbound[0].events[-1], Cancelled)
    assert stage.bob.ua.sessions == stage.alice.ua.sessions == 0
    stage.finish()


async def test_commands_after_the_end_do_nothing(stage: Stage) -> None:
    alice = stage.alice.call(BOB)
    stage.advance()
    bob = stage.bob.inbound[0]
    alice.session.hangup()
    stage.advance()
    for session in (alice.session, bob.session):
        session.hangup()
        session.reinvite(SDP)
        session.accept_offer(SDP)
        session.reject_offer()
        session.info("text/plain", b"late")
    bob.session.progress()
    bob.session.answer(SDP)
    bob.session.reject(486)
    stage.advance()
    assert alice.names.count("Ended") == bob.names.count("Ended") == 1
    stage.finish()


async def test_an_unanswered_offerless_call_brings_the_offer_in_the_answer(stage: Stage) -> None:
    alice = stage.alice.call(BOB, body=b"")
    stage.advance()
    answered = alice.last(Answered)
    assert answered.needs_answer
    assert answered.body == SDP
    assert "Confirmed" not in stage.bob.inbound[0].names
    alice.session.accept_offer(OTHER_SDP)
    stage.advance()
    assert stage.bob.inbound[0].last(Confirmed).body == OTHER_SDP
    alice.session.hangup()
    stage.finish()


async def test_hanging_up_instead_of_answering_the_offer(stage: Stage) -> None:
    alice = stage.alice.call(BOB, body=b"")
    stage.advance()
    alice.session.hangup()
    stage.advance()
    assert stage.bob.inbound[0].names == ["Confirmed", "Ended"]
    stage.finish()


async def test_info_is_answered_and_reported(stage: Stage) -> None:
    alice = stage.alice.call(BOB)
    stage.advance()
    alice.session.info("application/dtmf-relay", b"Signal=5\r\n")
    stage.advance()
    assert stage.bob.inbound[0].last(InfoReceived) == InfoReceived("application/dtmf-relay", b"Signal=5\r\n")
    alice.session.hangup()
    stage.finish()


async def test_ringing_has_a_limit_on_the_calling_side() -> None:
    stage = await make_stage(caller=UserAgentSettings(max_ringing_s=60))
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB)
    stage.advance(59)
    assert alice.names == ["Progress"]
    stage.advance(2)
    failed = alice.last(Failed)
    assert (failed.status, failed.cause) == (487, "timeout")
    assert stage.bob.inbound[0].names == ["Cancelled"]
    stage.finish()


async def test_an_owner_that_never_answers_is_given_up() -> None:
    stage = await make_stage(caller=UserAgentSettings(max_ringing_s=400))
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB)
    stage.advance(301)
    assert stage.bob.inbound[0].events == [Ended("local", "timeout")]
    assert alice.last(Failed).status == 480
    stage.finish()


async def test_ringing_has_a_limit_even_if_the_owner_sets_none(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    raw.respond(raw.requests("INVITE")[0], 100)
    stage.advance(301)
    assert alice.last(Failed).cause == "timeout"
    stage.finish()


async def test_the_reason_for_hanging_up_goes_with_the_cancel(stage: Stage) -> None:
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB)
    stage.advance()
    alice.session.hangup(reason="Q.850;cause=31")
    stage.advance()
    assert stage.bob.inbound[0].events == [Cancelled("Q.850;cause=31")]
    stage.finish()


async def test_hops_are_counted_and_our_own_fields_protected(stage: Stage) -> None:
    stage.alice.call(BOB, max_forwards=7, headers=[("User-Agent", "Other")])
    stage.advance()
    request = stage.bob.inbound[0].session.request
    assert request.max_forwards == 7
    assert request.headers.get_all("User-Agent") == ["Other"]
    for name in ("Max-Forwards", "Contact", "i", "VIA"):
        with pytest.raises(InvalidValue):
            stage.alice.call(BOB, headers=[(name, "1")])
    with pytest.raises(InvalidValue):
        stage.alice.call(BOB, headers=[("X-Split", "1\r\nX-Evil: 2")])
    assert stage.alice.ua.sessions == 1


async def test_statuses_of_the_wrong_kind_are_refused(stage: Stage) -> None:
    stage.bob.answer = lambda session: None
    stage.alice.call(BOB)
    stage.advance()
    session = stage.bob.inbound[0].session
    with pytest.raises(InvalidValue):
        session.progress(200)
    with pytest.raises(InvalidValue):
        session.progress(100)
    with pytest.raises(InvalidValue):
        session.reject(200)
    with pytest.raises(InvalidValue):
        session.hangup(status=180)
    with pytest.raises(InvalidValue):
        session.reject_offer(200)
    session.reject(404)
    stage.advance()
    stage.finish()


async def test_a_dead_destination_fails_after_four_seconds_and_is_troubled_no_more(stage: Stage) -> None:
    alice = stage.alice.call(("192.0.2.77", 5060))
    stage.advance(3.9)
    assert alice.names == []
    stage.advance(0.2)
    failed = alice.last(Failed)
    assert (failed.status, failed.cause) == (408, "timeout")
    sent_by_then = len(stage.network.wire)
    stage.finish()
    assert len(stage.network.wire) == sent_by_then


async def test_a_destination_that_wakes_up_after_it_was_given_up_is_cancelled(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(raw.address)
    stage.advance(5)
    invite = raw.requests("INVITE")[0]
    raw.respond(invite, 180)
    stage.advance()
    assert len(raw.requests("CANCEL")) == 1
    raw.respond(raw.requests("CANCEL")[0], 200)
    raw.respond(invite, 487)
    stage.advance()
    assert raw.requests("ACK")
    assert alice.names == ["Failed"]
    stage.finish()


async def test_a_refused_connection_fails_at_once(stage: Stage) -> None:
    alice = stage.alice.call(("192.0.2.77", 5060), "tcp")
    assert alice.names == []
    stage.advance(0)
    assert alice.last(Failed).cause == "transport"
    stage.finish()


async def test_a_transport_that_is_not_served_fails(stage: Stage) -> None:
    alice = stage.alice.call(BOB, "sctp")
    stage.advance(0)
    assert alice.last(Failed).cause == "transport"
    stage.finish()


async def test_a_connection_that_breaks_before_any_response(stage: Stage) -> None:
    stage.network.faults.delay_s = 0.1
    alice = stage.alice.call(BOB, "tcp")
    transport = stage.alice.ua.layer.transports[1]
    connection = transport.flow_to(BOB)
    break_connection(connection)
    stage.advance()
    assert alice.last(Failed).cause == "transport"
    stage.finish()


async def test_a_response_whose_connection_is_gone_opens_another(stage: Stage) -> None:
    """RFC 3261 18.2.2: to the address the request came from, at the port of its Via."""
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB, "tcp")
    stage.advance()
    break_connection(stage.alice.ua.layer.transports[1].flow_to(BOB))
    stage.bob.inbound[0].session.reject(486)
    stage.advance()
    assert alice.last(Failed).status == 486
    stage.finish()


async def test_an_error_in_the_owners_callback_harms_nobody(stage: Stage) -> None:
    def fail(session: object) -> None:
        raise RuntimeError("owner")

    stage.bob.answer = fail
    alice = stage.alice.call(BOB)
    stage.advance()
    assert alice.last(Failed).status == 500
    stage.finish()


async def test_every_message_is_traced_in_order() -> None:
    records: list[tuple[str, str]] = []
    stage = await make_stage(
        on_message=lambda *noted: records.append((noted[1], noted[4].split(b"\r\n")[0].decode()))
    )
    alice = stage.alice.call(BOB)
    stage.advance()
    alice.session.hangup()
    stage.advance()
    assert records == [
        ("in", "INVITE sip:bob@192.0.2.2:5060 SIP/2.0"),
        ("out", "SIP/2.0 200 OK"),
        ("in", "ACK sip:192.0.2.2:5060 SIP/2.0"),
        ("in", "BYE sip:192.0.2.2:5060 SIP/2.0"),
        ("out", "SIP/2.0 200 OK"),
    ]


async def test_what_an_invite_says(stage: Stage) -> None:
    stage.alice.call(BOB, headers=[("X-Customer", "7")], call_id="my-call")
    stage.advance()
    invite = parse_message(stage.network.wire[0][3])
    assert isinstance(invite, Request)
    assert invite.call_id == "my-call"
    assert invite.headers.get("X-Customer") == "7"
    assert invite.via.rport == ""
    assert str(invite.contacts[0].uri) == f"sip:{ALICE[0]}:{ALICE[1]}"
    assert invite.from_.tag
    assert invite.to.tag is None
    assert invite.max_forwards == 70
    assert invite.content_type == "application/sdp"


@pytest.mark.parametrize(
    ("expires", "ends_after_s", "status"),
    [("20", 20, 487), ("4000", 300, 480), ("0", 300, 480), ("soon", 300, 480), ("9" * 12, 300, 480)],
)
async def test_a_caller_limits_how_long_it_waits(expires: str, ends_after_s: int, status: int) -> None:
    """RFC 3261 13.3.1: the Expires of an INVITE; what makes no sense there is passed over."""
    stage = await make_stage()
    stage.bob.answer = lambda session: session.progress(180)
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP, Expires=expires))
    stage.advance(ends_after_s - 1)
    assert not raw.responses("INVITE", status)
    stage.advance(2)
    assert raw.responses("INVITE", status)
    assert stage.bob.inbound[0].last(Ended).cause == "timeout"
    raw.send(raw.request("ACK", branch="a"))
    stage.finish()


async def test_proxies_hear_every_minute_that_it_still_rings() -> None:
    """RFC 3261 13.3.1.1: a proxy that hears nothing for three minutes cancels."""
    stage = await make_stage()
    stage.bob.answer = lambda session: session.progress(180, headers=[("X-Tone", "1")])
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    stage.advance(59)
    assert len(raw.responses("INVITE", 180)) == 1
    stage.advance(122)
    ringing = raw.responses("INVITE", 180)
    assert len(ringing) == 4
    assert {response.headers.get("X-Tone") for response in ringing} == {"1"}
    stage.bob.inbound[0].session.answer(SDP)
    stage.advance(0.1)
    to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
    raw.send(raw.request("ACK", branch="ack", To=to))
    stage.advance(100)
    assert len(raw.responses("INVITE", 180)) == 4
    raw.send(raw.request("BYE", branch="bye", To=to, CSeq="2 BYE"))
    stage.finish()


async def test_an_ended_session_is_gone_at_once_though_its_requests_are_remembered(stage: Stage) -> None:
    alice = stage.alice.call(BOB)
    stage.advance()
    call_id = alice.session.call_id

    def kept() -> int:
        found = (item for item in gc.get_objects() if isinstance(item, InboundSession))
        return sum(session.call_id == call_id for session in found)

    assert kept() == 1
    alice.session.hangup()
    stage.advance()
    stage.bob.inbound.clear()
    gc.collect()
    assert stage.bob.ua.transactions and not kept()
    stage.finish()
