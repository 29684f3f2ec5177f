"""Digits between two real far ends of which each has its own way of sending and taking them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sip import Answered, InfoReceived
from tests.support.domain import CALLEE, OWN_NUMBER, make_carrier, make_gateway
from tests.support.keys import WAYS, Way, press, pressed
from tests.support.phone import Phone, PhoneCall, eventually
from tests.support.world import World, running

KEYS = "159#0*27"
PAIRS = [(a, b) for a in WAYS for b in WAYS if "tones" not in (a, b) or a == b]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


async def bridged(world: World, a_way: Way, b_way: Way, **call: Any) -> tuple[PhoneCall, PhoneCall]:
    """Two parties that talk to each other, each over a trunk of its own."""
    second = Phone(world.far_engine)
    await second.start()
    world.phones.append(second)
    world.directory.put(
        carriers=[
            make_carrier(dtmf_type=a_way),
            make_carrier("carrier-2", prefixes=(CALLEE,), dtmf_type=b_way),
        ],
        gateways=[make_gateway("gateway-b", port=second.port, carrier_sid="carrier-2")],
    )
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, **call)
    await a.wait(Answered)
    b = await second.next_call()
    for party in (a, b):
        party.kept_ms = 60_000
        # Both sides send before keys are pressed, as telephones do.
        party.open().play(bytes(1600))
    return a, b


@pytest.mark.parametrize(("a_way", "b_way"), PAIRS)
async def test_each_key_arrives_once_whatever_the_two_ways(world: World, a_way: Way, b_way: Way) -> None:
    a, b = await bridged(world, a_way, b_way)
    press(a, KEYS, a_way)
    assert await eventually(lambda: len(pressed(b, b_way)) >= len(KEYS)), pressed(b, b_way)
    press(b, "42", b_way)
    assert await eventually(lambda: len(pressed(a, a_way)) >= 2), pressed(a, a_way)
    # What comes twice comes soon after.
    assert not await eventually(lambda: len(pressed(b, b_way)) + len(pressed(a, a_way)) > len(KEYS) + 2, 0.6)
    assert (pressed(b, b_way), pressed(a, a_way)) == (KEYS, "42")
    for party, way in ((a, a_way), (b, b_way)):
        assert way == "info" or not pressed(party, "info")
        assert way == "rfc2833" or not party.digits
    reported = [event for event in world.records.event_names() if event == "call.dtmf"]
    if "tones" not in (a_way, b_way):
        assert len(reported) == len(KEYS) + 2
    a.hang_up()
    await world.ended()


@pytest.mark.parametrize(("accept", "kind"), [("application/sdp, application/dtmf", "application/dtmf")])
async def test_digits_go_in_the_form_that_the_party_takes(world: World, accept: str, kind: str) -> None:
    a, b = await bridged(world, "info", "rfc2833", headers=[("Accept", accept)])
    press(b, "7", "rfc2833")
    info = await a.wait(InfoReceived)
    assert isinstance(info, InfoReceived)
    assert (info.content_type, info.body) == (kind, b"7")
    a.hang_up()
    await world.ended()


async def test_digits_go_back_in_the_form_in_which_the_party_sends_them(world: World) -> None:
    a, b = await bridged(world, "rfc2833", "info")
    b.session.info("application/dtmf", b"1")
    await a.until(lambda: a.digits == "1")
    press(a, "2", "rfc2833")
    info = await b.wait(InfoReceived)
    assert isinstance(info, InfoReceived)
    assert (info.content_type, info.body) == ("application/dtmf", b"2")
    a.hang_up()
    await world.ended()
