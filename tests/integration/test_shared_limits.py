"""Limits of trunks that are counted over all servers, where others have legs, between real far ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from callcontrol.calls.live.requests import LiveUpdate, TransferRequest
from callcontrol.errors import InsufficientBalance, ServiceUnavailable
from sip import Answered, Failed
from tests.support.domain import CALLEE, OWN_NUMBER, MemoryPlaces, make_carrier, make_gateway
from tests.support.phone import Phone, eventually
from tests.support.world import World, running

WAIT = {"verb": "pause", "length": 20}


@pytest.fixture
def places() -> MemoryPlaces:
    return MemoryPlaces()


@pytest.fixture
async def world(tmp_path: Path, places: MemoryPlaces) -> AsyncIterator[World]:
    async with running(tmp_path, places=places) as world:
        yield world


async def limited_trunk(world: World) -> Phone:
    """A telephone behind a second carrier, which serves the callee's number and takes one leg."""
    phone = Phone(world.far_engine)
    await phone.start()
    world.phones.append(phone)
    world.directory.put(
        carriers=[make_carrier("carrier-2", prefixes=(CALLEE,), max_concurrent_calls=1)],
        gateways=[make_gateway("gateway-b", port=phone.port, carrier_sid="carrier-2")],
    )
    return phone


async def test_a_call_goes_by_the_first_gateway_with_a_place(world: World, places: MemoryPlaces) -> None:
    world.directory.put(gateways=[make_gateway(port=world.phone.port, max_concurrent_calls=1)])
    second = await world.add_phone()
    places.elsewhere["gateway-1"] = 1
    record = await world.place(WAIT)
    call = await second.next_call()
    assert (record.gateway_sid, world.phone.calls, places.held) == ("gateway-2", [], {})
    call.hang_up()
    await world.ended()


async def test_a_call_without_any_place_is_refused_before_it_is_recorded(
    world: World, places: MemoryPlaces
) -> None:
    world.directory.put(carriers=[make_carrier(max_concurrent_calls=1)])
    places.elsewhere["carrier-1"] = 1
    with pytest.raises(ServiceUnavailable, match="No carrier can take this call now"):
        await world.place(WAIT)
    assert not world.records.records and not world.phone.calls
    assert world.control.refused_calls()["trunk"] == 1
    del places.elsewhere["carrier-1"]
    await world.place(WAIT)
    call = await world.phone.next_call()
    assert [place.limits[0].sid for place in places.held.values()] == ["carrier-1"]
    call.hang_up()
    await world.ended()
    assert not places.held


async def test_a_call_that_cannot_be_paid_takes_no_place(world: World, places: MemoryPlaces) -> None:
    world.directory.put(carriers=[make_carrier(max_concurrent_calls=1)])
    world.wallets.balance_paise = 0
    with pytest.raises(InsufficientBalance):
        await world.place(WAIT)
    assert not places.held


async def test_a_caller_by_a_full_trunk_is_refused(world: World, places: MemoryPlaces) -> None:
    world.directory.put(carriers=[make_carrier(max_concurrent_calls=1)])
    await limited_trunk(world)
    world.forward()
    places.elsewhere["carrier-1"] = 1
    failed = await world.phone.call(OWN_NUMBER, world.port).wait(Failed)
    assert isinstance(failed, Failed) and (failed.status, failed.retry_after_s) == (503, 5)
    assert not world.records.records
    assert world.control.refused_calls()["trunk"] == 1


async def test_the_second_leg_takes_a_place_before_it_is_dialled(world: World, places: MemoryPlaces) -> None:
    second = await limited_trunk(world)
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    await second.next_call()
    assert [place.limits[0].sid for place in places.held.values()] == ["carrier-2"]
    places.elsewhere["carrier-2"] = 1
    a.hang_up()
    await world.ended()
    assert not places.held


async def test_a_second_leg_without_a_place_is_not_dialled(world: World, places: MemoryPlaces) -> None:
    second = await limited_trunk(world)
    world.forward()
    places.elsewhere["carrier-2"] = 1
    failed = await world.phone.call(OWN_NUMBER, world.port).wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 503
    await world.ended()
    assert not second.calls


async def test_a_caller_who_leaves_meanwhile_takes_no_place(world: World, places: MemoryPlaces) -> None:
    """The caller cancels while the second leg waits for its place: nobody is dialled."""
    second = await limited_trunk(world)
    world.forward()
    places.may_answer.clear()
    a = world.phone.call(OWN_NUMBER, world.port)
    assert await eventually(lambda: bool(world.records.records))
    a.hang_up()
    assert await eventually(lambda: bool(world.records.finished))
    places.may_answer.set()
    await world.ended()
    assert not second.calls and not places.held


async def test_a_second_party_is_checked_before_the_first_rings(world: World, places: MemoryPlaces) -> None:
    await limited_trunk(world)
    record = await world.place(WAIT, to="+919876500000")
    places.elsewhere["carrier-2"] = 1
    call = await world.phone.next_call()
    assert await eventually(lambda: record.answered_at is not None)
    update = LiveUpdate(transfer=TransferRequest(to=CALLEE))
    with pytest.raises(ServiceUnavailable, match="No carrier can take this call now"):
        await world.control.update_call(record.account_sid, record.call_sid, update)
    call.hang_up()
    await world.ended()
