"""Trunk policy between real far ends: digits from RTP into INFO, limits of trunks, headers that pass."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callcontrol.errors import ServiceUnavailable
from sip import Answered, Failed, InfoReceived
from tests.support.domain import (
    CALLEE,
    OWN_NUMBER,
    MemoryPlaces,
    make_carrier,
    make_gateway,
    make_number,
)
from tests.support.phone import Phone, PhoneCall, eventually
from tests.support.world import World, running


@pytest.fixture(params=["own", "shared"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A server that counts the legs at trunks with limits itself, or with others."""
    places = MemoryPlaces() if request.param == "shared" else None
    async with running(tmp_path, places=places) as world:
        yield world


async def other_trunk(world: World, **policy: Any) -> Phone:
    """A telephone behind the gateway of a second carrier, which serves the callee's number alone."""
    phone = Phone(world.far_engine)
    await phone.start()
    world.phones.append(phone)
    world.directory.put(
        carriers=[make_carrier("carrier-2", prefixes=(CALLEE,), **policy)],
        gateways=[make_gateway("gateway-b", port=phone.port, carrier_sid="carrier-2")],
    )
    return phone


def infos(call: PhoneCall) -> list[bytes]:
    return [event.body for event in call.events if isinstance(event, InfoReceived)]


async def test_digits_in_rtp_go_on_in_info_and_the_other_way_round(world: World) -> None:
    second = await other_trunk(world, dtmf_type="info")
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await second.next_call()
    assert b"telephone-event" not in b.request.body
    a.open().send_dtmf("42")
    assert await eventually(lambda: len(infos(b)) == 2)
    assert [body.splitlines()[0] for body in infos(b)] == [b"Signal=4", b"Signal=2"]
    b.session.info("application/dtmf", b"9")
    await a.until(lambda: a.digits == "9")
    assert not infos(a)
    a.hang_up()
    await world.ended()


async def test_a_digit_too_short_to_be_sent_is_sent_longer(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    b.session.info("application/dtmf-relay", b"Signal=5\r\nDuration=10\r\n")
    await a.until(lambda: a.digits == "5")
    a.hang_up()
    await world.ended()


def _decided(call: PhoneCall) -> bool:
    return any(isinstance(event, Answered | Failed) for event in call.events)


async def test_fifty_callers_at_once_and_room_for_ten(world: World) -> None:
    world.directory.put(carriers=[make_carrier(max_concurrent_calls=10)])
    await other_trunk(world)
    world.forward()
    callers = [world.phone.call(OWN_NUMBER, world.port) for _ in range(50)]
    for call in callers:
        await call.until(partial(_decided, call))
    up = [call for call in callers if any(isinstance(event, Answered) for event in call.events)]
    refused = [event for call in callers for event in call.events if isinstance(event, Failed)]
    assert (len(up), {event.status for event in refused}) == (10, {503})
    assert all(event.retry_after_s for event in refused)
    capacity = world.control._capacity
    assert (capacity.calls, capacity.legs_at("carrier-1"), capacity.legs_at("gateway-b")) == (10, 10, 10)
    for call in up:
        call.hang_up()
    assert await eventually(lambda: len(world.records.finished) == 10)
    assert await eventually(lambda: not capacity.calls + capacity.legs_at("carrier-1"))
    assert not capacity.legs_at("gateway-1") + capacity.legs_at("gateway-b") + capacity.legs_at("carrier-2")
    assert world.wallets.balance_paise == 100_000 - 10 * 100


async def test_a_carrier_that_is_full_in_between_fails_over_to_the_next(world: World) -> None:
    """Both calls found the way while it was free; only one of them may take it."""
    world.directory.put(gateways=[make_gateway(port=world.phone.port, max_concurrent_calls=1)])
    second = await world.add_phone()
    first_call = await world.place({"verb": "pause", "length": 20})
    second_call = await world.place({"verb": "pause", "length": 20})
    await world.phone.next_call()
    await second.next_call()
    assert len(world.phone.calls) == len(second.calls) == 1
    for call in (world.phone.calls[0], second.calls[0]):
        call.hang_up()
    assert await eventually(lambda: len(world.records.finished) == 2)
    assert {first_call.status, second_call.status} == {"completed"}


async def test_every_trunk_full_is_refused_and_counts_legs_of_both_directions(world: World) -> None:
    world.directory.put(carriers=[make_carrier(max_concurrent_calls=2)])
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    with pytest.raises(ServiceUnavailable):
        await world.place({"verb": "hangup"})
    refused = world.phone.call(OWN_NUMBER, world.port)
    failed = await refused.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 503 and failed.retry_after_s
    assert len(world.records.records) == 1
    a.hang_up()
    await world.ended()
    again = world.phone.call(OWN_NUMBER, world.port)
    await again.wait(Answered)
    again.hang_up()
    assert await eventually(lambda: world.control.active_calls == 0)


async def test_the_next_call_goes_by_the_new_policy(world: World) -> None:
    world.forward()
    users = []
    for policy in ({}, {"number_format": "national"}):
        world.directory.put(carriers=[make_carrier(**policy)])
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        users.append((await world.phone.next_call(len(world.phone.calls))).request.uri.user)
        a.hang_up()
        assert await eventually(lambda: world.control.active_calls == 0)
    assert users == [CALLEE, "0" + CALLEE.removeprefix("+91")]


async def test_the_application_sees_what_the_invite_said(world: World) -> None:
    world.directory.put(numbers=[make_number("+918047491800")])
    world.forward(caller_id="+918047491800")
    fields = [
        ("X-Ticket", "7"),
        ("User-to-User", "00ff;encoding=hex"),
        ("Identity", "a.b.c;info=<https://x>"),
    ]
    a = world.phone.call(OWN_NUMBER, world.port, headers=fields)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    assert "Identity" not in b.request.headers  # it is of a number that is not shown
    assert b.request.headers.get("User-to-User") == "00ff;encoding=hex"
    a.hang_up()
    await world.ended()
    seen = world.published("call.completed")["data"]["sip"]
    assert seen["headers"] == {"X-Ticket": "7"}
    assert seen["identity"] == ["a.b.c;info=<https://x>"]
