"""Calls to gateways at whose port nobody listens end, or go on to the next gateway, within a second."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.models import CallStatus
from sip import Ended, Failed
from sip.aio import Listen
from tests.support.domain import OWN_NUMBER, make_carrier, make_gateway
from tests.support.phone import PhoneCall, eventually
from tests.support.ports import free_port
from tests.support.world import World, running

SECOND = "+919812345678"
PROTOCOLS = ["udp", "tcp"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    listens = [Listen(transport, "127.0.0.1", 0) for transport in PROTOCOLS]
    async with running(tmp_path, sip_listens=listens) as world:
        yield world


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


def put_dead(world: World, protocol: str, **fields: Any) -> None:
    """Add a gateway at a dead port, before all others."""
    fields = {"port": free_port(), "protocol": protocol, "priority": -1, **fields}
    world.directory.put(gateways=[make_gateway("gateway-dead", **fields)])


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_placed_call_without_another_gateway_ends(world: World, protocol: str) -> None:
    world.directory.put(gateways=[make_gateway(outbound=False, port=world.phone.port)])
    put_dead(world, protocol)
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await world.place({"verb": "pause", "length": 5})
    assert await eventually(lambda: bool(world.records.finished))
    assert clock() - began_s < 1.0
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "DESTINATION_OUT_OF_ORDER")
    assert record.hangup_source == "carrier"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_placed_call_goes_to_the_next_gateway(world: World, protocol: str) -> None:
    put_dead(world, protocol)
    world.phone.on_call = ring_and_answer
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await world.place({"verb": "pause", "length": 5})
    b = await world.phone.next_call()
    assert clock() - began_s < 1.0
    await b.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "NORMAL_CLEARING")


async def test_a_forwarded_call_fails_towards_its_caller(world: World) -> None:
    world.directory.put(gateways=[make_gateway(outbound=False, port=world.phone.port)])
    put_dead(world, "udp")
    world.forward()
    clock = asyncio.get_running_loop().time
    began_s = clock()
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert clock() - began_s < 1.0
    assert isinstance(failed, Failed) and failed.status == 503
    assert (await world.ended()).hangup_cause == "DESTINATION_OUT_OF_ORDER"


async def test_the_b_leg_of_a_bridge_fails_and_its_a_leg_goes_on(world: World) -> None:
    world.directory.put(carriers=[make_carrier("carrier-2", prefixes=(SECOND,))])
    put_dead(world, "udp", carrier_sid="carrier-2")
    world.phone.on_call = ring_and_answer
    dial = {"verb": "dial", "target": [{"type": "phone", "number": SECOND}]}
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await world.place(dial, {"verb": "pause", "length": 5})
    a = await world.phone.next_call()
    await a.wait(Ended)
    assert 5.0 <= clock() - began_s < 7.0
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "NORMAL_CLEARING")


async def test_a_large_invite_that_goes_as_a_datagram_after_all_is_saved_as_such(world: World) -> None:
    """Nobody listens for its connection; after a crash its CANCEL must follow the one that rings."""
    world.phone.on_call = lambda call: call.ring()
    padding = {f"X-Padding-{index}": "x" * 200 for index in range(8)}
    await world.place({"verb": "pause", "length": 5}, headers=padding)
    record = world.records.only()
    b = await world.phone.next_call()
    assert await eventually(lambda: record.status is CallStatus.RINGING)
    [saved] = record.dialogs.values()
    assert saved["via"] == ["udp", "127.0.0.1", world.phone.port]
    assert "SIP/2.0/UDP" in dict(saved["fields"])["Via"]
    b.reject(486)
    await world.ended()
