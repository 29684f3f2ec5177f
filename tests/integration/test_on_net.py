"""Calls to numbers held here: by SIP from the server to itself, with both records; no way in for others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.aio.on_net import OnNet
from callcontrol.models import Binding, CallRecord, CallStatus
from callcontrol.routing.on_net import MAX_NUMBERS
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from sip import Answered, Confirmed, Ended, Failed
from sip.aio import Listen, UserAgentSettings
from tests.support.domain import (
    ACCOUNT_SID,
    CALLEE,
    CALLER,
    OTHER_SID,
    OWN_NUMBER,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)
from tests.support.phone import PATIENCE_S, engine_settings, eventually
from tests.support.world import World, running

SECOND, THIRD = "+918047491801", "+918047491802"
ADVERTISED = "203.0.113.9"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        world.directory.put(accounts=[make_account(max_cps=100, max_calls=100)])
        yield world
        assert await eventually(lambda: world.control.on_net.user_agent.sessions == 0)


@pytest.fixture
async def agent() -> AsyncIterator[DemoAgent]:
    made = DemoAgent(tone(700.0, 3000))
    await made.start()
    yield made
    await made.stop()


def hold(world: World, number: str, **binding: Any) -> None:
    """A number of the account, bound to something."""
    world.directory.put(numbers=[make_number(number, Binding(**binding) if binding else None)])


def forwards(world: World, *numbers: str) -> None:
    """Forward each number to the next one."""
    for number, following in zip(numbers, numbers[1:], strict=False):
        hold(world, number, target="forward", forward_to=following, caller_id="passthrough")


async def ended(world: World, count: int) -> dict[tuple[str, str], CallRecord]:
    """The records of so many calls by direction and called number, once all are over."""
    assert await eventually(lambda: len(world.records.finished) == count), world.records.records
    assert await eventually(lambda: world.control.active_calls == 0)
    return {(record.direction, record.to): record for record in world.records.records.values()}


async def test_both_sides_are_calls_of_their_own_and_hear_each_other(world: World) -> None:
    forwards(world, OWN_NUMBER, SECOND, CALLEE)
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    a.hang_up()
    await b.wait(Ended)
    found = await ended(world, 2)
    first, second = found["inbound", OWN_NUMBER], found["inbound", SECOND]
    assert (first.carrier_sid, second.carrier_sid, second.gateway_sid) == ("carrier-1", None, None)
    assert first.from_ == second.from_ == CALLER, "the caller-ID is as it was sent"
    assert b.request.from_.uri.user == CALLER
    assert (first.hangup_source, second.hangup_source) == ("caller", "caller")
    assert first.price_paise == second.price_paise == 40 + 60, "each is charged as any inbound call"


async def test_a_call_by_the_api_has_a_record_and_a_trace_on_each_side(world: World) -> None:
    hold(world, SECOND, target="forward", forward_to=CALLEE, caller_id="passthrough")
    await world.place({"verb": "pause", "length": 60}, to=SECOND)
    b = await world.phone.next_call(1)
    assert b.request.from_.uri.user == OWN_NUMBER
    assert await eventually(
        lambda: {record.status for record in world.records.records.values()} == {CallStatus.IN_PROGRESS}
    )
    b.hang_up()
    found = await ended(world, 2)
    out, inbound = found["outbound", SECOND], found["inbound", SECOND]
    assert (out.status, inbound.status) == (CallStatus.COMPLETED, CallStatus.COMPLETED)
    assert (out.hangup_source, inbound.hangup_source) == ("callee", "callee")
    assert (out.carrier_sid, out.gateway_sid) == (None, None)
    assert out.sip_call_id == inbound.sip_call_id
    assert (out.price_paise, inbound.price_paise) == (60, 40 + 60)

    def crossed() -> bool:
        ours, theirs = (messages(world, record, out.sip_call_id) for record in (out, inbound))
        opposite = all({direction, theirs.get(text)} == {"in", "out"} for text, direction in ours.items())
        return opposite and len(ours) == len(theirs) > 4

    traces = world.control.trace(out.call_sid), world.control.trace(inbound.call_sid)
    assert await eventually(crossed), traces


def messages(world: World, record: CallRecord, call_id: str | None) -> dict[str, str]:
    """Directions of the traced messages of one leg of a call."""
    entries = world.control.trace(record.call_sid)
    return {entry.message: entry.direction for entry in entries if entry.call_id == call_id}


async def test_the_number_of_another_account_is_reached_and_charged_to_it(world: World) -> None:
    theirs = make_number(SECOND, account_sid=OTHER_SID)
    world.directory.put(accounts=[make_account(OTHER_SID)], numbers=[theirs])
    await world.place({"verb": "hangup"}, to=SECOND)
    found = await ended(world, 2)
    assert found["inbound", SECOND].account_sid == OTHER_SID
    assert found["outbound", SECOND].account_sid != OTHER_SID


async def test_a_number_on_the_accounts_own_carrier_is_reached_from_a_leased_one(world: World) -> None:
    binding = Binding(target="forward", forward_to=CALLEE, caller_id="passthrough")
    world.directory.put(
        carriers=[make_carrier("own", ACCOUNT_SID)],
        gateways=[make_gateway("gateway-own", port=world.phone.port, carrier_sid="own")],
        numbers=[make_number(SECOND, binding, carrier_sid="own")],
    )
    await world.place({"verb": "pause", "length": 60}, to=SECOND)
    b = await world.phone.next_call(1)
    assert b.request.from_.uri.user == OWN_NUMBER
    await b.wait(Confirmed)
    b.hang_up()
    found = await ended(world, 2)
    assert {record.status for record in found.values()} == {CallStatus.COMPLETED}
    assert (found["inbound", SECOND].carrier_sid, found["outbound", SECOND].carrier_sid) == (None, None)


async def test_a_number_that_another_account_claims_for_its_own_carrier_is_called_by_a_carrier(
    world: World,
) -> None:
    """Nobody has verified that the other account owns it."""
    binding = Binding(target="forward", forward_to=CALLEE)
    world.directory.put(
        accounts=[make_account(OTHER_SID)],
        carriers=[make_carrier("theirs", OTHER_SID)],
        numbers=[make_number(SECOND, binding, account_sid=OTHER_SID, carrier_sid="theirs")],
    )
    await world.place({"verb": "hangup"}, to=SECOND)
    b = await world.phone.next_call(1)
    assert b.request.uri.user == SECOND
    found = await ended(world, 1)
    assert found["outbound", SECOND].carrier_sid == "carrier-1"


@pytest.mark.parametrize(
    ("number", "status", "cause", "inbound"),
    [
        ({}, CallStatus.NO_ANSWER, "NO_ANSWER", True),
        ({"status": "suspended"}, CallStatus.FAILED, "UNALLOCATED_NUMBER", False),
    ],
)
async def test_a_number_that_goes_nowhere_tells_the_caller_why(
    world: World, number: dict[str, Any], status: CallStatus, cause: str, inbound: bool
) -> None:
    world.directory.put(numbers=[make_number(SECOND, **number)])
    await world.place({"verb": "hangup"}, to=SECOND)
    found = await ended(world, 1 + inbound)
    out = found["outbound", SECOND]
    assert (out.status, out.hangup_cause) == (status, cause)
    assert (("inbound", SECOND) in found) is inbound
    assert world.phone.calls == []


async def test_a_loop_of_numbers_ends_at_once(world: World) -> None:
    forwards(world, OWN_NUMBER, SECOND, THIRD, OWN_NUMBER)
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    assert failed.headers is not None and "cause=25" in (failed.headers.get("Reason") or "")
    found = await ended(world, 3)
    assert {number for _, number in found} == {OWN_NUMBER, SECOND, THIRD}
    assert {record.hangup_cause for record in found.values()} == {"EXCHANGE_ROUTING_ERROR"}
    assert all(record.price_paise == 0 for record in found.values())
    assert world.control.refused_calls()["loop"] == 1


@pytest.mark.parametrize(("count", "reached"), [(MAX_NUMBERS, True), (MAX_NUMBERS + 1, False)])
async def test_a_chain_of_numbers_is_no_loop_but_has_an_end(world: World, count: int, reached: bool) -> None:
    numbers = [OWN_NUMBER, *(f"+9180474918{place:02}" for place in range(1, count))]
    forwards(world, *numbers, CALLEE)
    a = world.phone.call(OWN_NUMBER, world.port)
    if reached:
        await a.wait(Answered)
        a.hang_up()
        await ended(world, count)
    else:
        await a.wait(Failed)
        await ended(world, count - 1)
        assert world.control.refused_calls()["loop"] == 1
    assert len(world.phone.calls) == 1 + reached


async def test_nobody_else_is_taken_for_the_server_itself(world: World) -> None:
    """Not even a sender on the same host that knows Call-ID and tag of an on-net call, as its trace shows."""
    world.directory.put(gateways=[make_gateway(host="192.0.2.1")])
    hold(world, SECOND, target="missed_call", timeout_s=30)
    record = await rings(world)
    invite = world.control.trace(record.call_sid)[0].message
    forged = invite.replace("CSeq: 1 INVITE", "CSeq: 7 INVITE").replace("branch=z9hG4bK", "branch=z9hG4bKf")
    assert "CSeq: 7" in forged
    assert (await answer_to(forged.encode(), world.port)).startswith(b"SIP/2.0 403")
    guard = world.control.guard
    for _ in range(30):
        guard.protection.on_malformed("127.0.0.1", asyncio.get_running_loop().time())
    assert "127.0.0.1" in guard.banned
    again = await rings(world)
    assert "127.0.0.1" in guard.banned, "our own calls are let in, and nobody else"
    for sid in (record.call_sid, again.call_sid):
        await world.control.hangup_call(record.account_sid, sid)
    await ended(world, 4)


async def rings(world: World) -> CallRecord:
    """A call to the second number, once it rings."""
    record = await world.place({"verb": "hangup"}, to=SECOND)
    assert await eventually(lambda: world.records.records[record.call_sid].status is CallStatus.RINGING), (
        world.records.records
    )
    return record


async def answer_to(datagram: bytes, port: int) -> bytes:
    """The first answer to a datagram that is sent from a socket of its own."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        await loop.sock_sendto(sock, datagram, ("127.0.0.1", port))
        async with asyncio.timeout(PATIENCE_S):
            return await loop.sock_recv(sock, 65_535)


async def test_behind_a_nat_nothing_leaves_the_server(tmp_path: Path, agent: DemoAgent) -> None:
    """The NAT would not turn back what is sent to the address that the server advertises."""
    listens = [Listen("udp", "127.0.0.1", 0, ADVERTISED)]
    async with running(tmp_path, sip_listens=listens, media=engine_settings(advertise=ADVERTISED)) as world:
        hold(world, SECOND, target="media_stream", stream_url=agent.url)
        await world.place(to=SECOND, stream_url=agent.url)
        for index in range(2):
            session = await asyncio.wait_for(agent.session(index), PATIENCE_S)
            await asyncio.wait_for(session.hears(2 * 16_000), PATIENCE_S)
            found = find_tone(samples_of(bytes(session.heard)), session.sample_rate_hz)
            assert found.frequency_hz == pytest.approx(700.0, abs=5), "the other side's greeting came across"
        await agent.sessions[0].hang_up()
        over = await ended(world, 2)
        assert {record.status for record in over.values()} == {CallStatus.COMPLETED}
        assert {record.hangup_cause for record in over.values()} == {"NORMAL_CLEARING"}


async def test_a_server_that_drains_sends_itself_no_calls(world: World) -> None:
    hold(world, SECOND, target="forward", forward_to=CALLEE)
    await world.control.drain(0.0)
    assert world.control.on_net.gateway is None


async def test_a_server_without_a_udp_address_has_no_on_net_calls() -> None:
    on_net = OnNet(UserAgentSettings())
    await on_net.start([Listen("tcp", "127.0.0.1", 5060)], lambda *_: None)
    assert (on_net.gateway, on_net.source) == (None, None)
    await on_net.close()
