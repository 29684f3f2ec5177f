"""Requests too large for a datagram (RFC 3261 18.1.1), on virtual time."""

import pytest

from sip import Answered, Failed, Request
from sip.aio import UserAgentSettings
from tests.support.sip_agents import SDP
from tests.support.sip_network import break_connection
from tests.support.sip_stage import ALICE, BOB, RAW, Stage, make_stage

LARGE = [("X-Padding", "x" * 1300)]


def sent(stage: Stage, method: str = "INVITE") -> list[bytes]:
    return [
        data
        for _, source, _, data in stage.network.wire
        if source == ALICE and data.startswith(method.encode())
    ]


async def test_a_large_request_takes_a_connection() -> None:
    stage = await make_stage()
    side = stage.alice.call(BOB, headers=LARGE)
    stage.advance()
    assert isinstance(side.events[-1], Answered)
    [invite] = sent(stage)
    assert invite.count(b"\r\nVia: ") == 1
    assert b"\r\nVia: SIP/2.0/TCP 192.0.2.1:5060;branch=" in invite
    assert b"\r\nContact: <sip:192.0.2.1:5060>\r\n" in invite, "small requests may come as datagrams"
    assert stage.bob.inbound[0].session.transport == "tcp"
    side.session.hangup()
    stage.finish()


async def test_a_small_request_stays_a_datagram() -> None:
    stage = await make_stage()
    side = stage.alice.call(BOB)
    stage.advance()
    assert stage.bob.inbound[0].session.transport == "udp"
    side.session.hangup()
    stage.finish()


async def test_the_limit_can_be_turned_off() -> None:
    stage = await make_stage(UserAgentSettings(max_udp_request_bytes=0))
    side = stage.alice.call(BOB, headers=LARGE)
    stage.advance()
    assert stage.bob.inbound[0].session.transport == "udp"
    side.session.hangup()
    stage.finish()


@pytest.mark.parametrize("silent", [False, True])
async def test_without_a_connection_it_goes_as_a_datagram_after_all(silent: bool) -> None:
    """Once, under a Via of its own; and the next large request does not even try."""
    stage = await make_stage()
    if silent:
        stage.network.silent.add(RAW)
    raw = stage.raw(stage.alice)
    side = stage.alice.call(RAW, headers=LARGE)
    stage.advance(1.4)
    if silent:
        assert sent(stage) == []
    stage.advance(0.2)
    invites = raw.requests("INVITE")
    assert {invite.via.transport for invite in invites} == {"UDP"}
    assert len({invite.via.branch for invite in invites}) == 1
    assert len(invites[0].headers.get_all("Via")) == 1
    raw.respond(invites[0], 200, body=SDP)
    stage.advance()
    assert isinstance(side.events[-1], Answered)
    raw.received.clear()
    stage.alice.call(RAW, headers=LARGE)
    stage.advance()
    assert [invite.via.transport for invite in raw.requests("INVITE")] == ["UDP"]
    stage.advance(601)
    raw.received.clear()
    stage.alice.call(RAW, headers=LARGE)
    stage.advance()
    assert bool(raw.requests("INVITE")) is not silent, "connections are tried again in the end"


async def test_hung_up_before_the_connection_is_up_nothing_is_sent() -> None:
    stage = await make_stage()
    stage.network.silent.add(RAW)
    raw = stage.raw(stage.alice)
    side = stage.alice.call(RAW, headers=LARGE)
    stage.advance(0.5)
    side.session.hangup()
    stage.advance(3)
    assert isinstance(side.events[-1], Failed)
    assert raw.received == []
    stage.finish()


async def test_a_silent_connection_does_not_make_a_second_invite() -> None:
    """The request may have arrived: sent again as a datagram it could ring twice."""
    stage = await make_stage()
    stage.bob.answer = lambda session: None
    side = stage.alice.call(BOB, headers=LARGE)
    stage.advance(0.01)
    break_connection(stage.alice.ua.layer.transports[1].flow_to(BOB))
    stage.advance()
    assert len(sent(stage)) == 1
    failed = side.last(Failed)
    assert (failed.status, failed.cause) == (503, "transport")
    for inbound in stage.bob.inbound:
        inbound.session.hangup()
    stage.finish()


async def test_a_cancel_follows_the_way_its_invite_took() -> None:
    stage = await make_stage()
    raw = stage.raw(stage.alice)
    side = stage.alice.call(RAW, headers=LARGE)
    stage.advance()
    invite = raw.requests("INVITE")[0]
    raw.respond(invite, 180)
    stage.advance()
    side.session.hangup()
    stage.advance()
    [cancel] = raw.requests("CANCEL")
    assert isinstance(cancel, Request)
    assert cancel.via == invite.via
    raw.respond(cancel, 200)
    raw.respond(invite, 487)
    stage.advance()
    assert raw.requests("ACK")[0].via == invite.via
    stage.finish()
