"""Digits between two real far ends of which each has its own way of sending and taking them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from media.capabilities import built_codecs
from sip import Answered, InfoReceived
from tests.support.domain import CALLEE, OWN_NUMBER, make_carrier, make_gateway
from tests.support.keys import WAYS, Way, press, pressed
from tests.support.phone import Phone, PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

KEYS = "159#0*27"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


async def bridged(
    world: World, a_way: Way, b_way: Way, *, a_codec: str = "PCMU", b_codec: str = "PCMU", **call: Any
) -> tuple[PhoneCall, PhoneCall]:
    """Two parties that talk to each other, each over a trunk of its own."""
    second = Phone(world.far_engine, codecs=(b_codec,))
    await second.start()
    world.phones.append(second)
    world.directory.put(
        carriers=[
            make_carrier(dtmf_type=a_way, codecs=(a_codec,)),
            make_carrier("carrier-2", prefixes=(CALLEE,), dtmf_type=b_way, codecs=(b_codec,)),
        ],
        gateways=[make_gateway("gateway-b", port=second.port, carrier_sid="carrier-2")],
    )
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, codecs=(a_codec,), **call)
    await a.wait(Answered)
    b = await second.next_call()
    for party in (a, b):
        party.kept_ms = 60_000
        # Both sides send before keys are pressed, as telephones do.
        party.open().play(bytes(1600))
    return a, b


@pytest.mark.parametrize("b_way", WAYS)
@pytest.mark.parametrize("a_way", WAYS)
async def test_each_key_arrives_once_whatever_the_two_ways(world: World, a_way: Way, b_way: Way) -> None:
    a, b = await bridged(world, a_way, b_way)
    press(a, KEYS, a_way)
    assert await eventually(lambda: len(pressed(b, b_way)) >= len(KEYS)), pressed(b, b_way)
    # A tone that comes while ours is being sent, or soon after, is taken for its echo.
    await time_passes(0.6)
    press(b, "42", b_way)
    assert await eventually(lambda: len(pressed(a, a_way)) >= 2), pressed(a, a_way)
    # What comes twice comes soon after.
    assert not await eventually(lambda: len(pressed(b, b_way)) + len(pressed(a, a_way)) > len(KEYS) + 2, 0.6)
    assert (pressed(b, b_way), pressed(a, a_way)) == (KEYS, "42")
    for party, way in ((a, a_way), (b, b_way)):
        assert way == "info" or not pressed(party, "info")
        assert way == "rfc2833" or not party.digits
    reported = [
        json.loads(event.body)["data"] for event in world.records.events if event.event == "call.dtmf"
    ]
    assert "".join(digit["digit"] for digit in reported if digit["leg"] == "a") == KEYS
    assert "".join(digit["digit"] for digit in reported if digit["leg"] == "b") == "42"
    a.hang_up()
    await world.ended()


@pytest.mark.skipif("OPUS" not in built_codecs(), reason="the engine was built without Opus")
async def test_telephone_events_pass_between_clocks_and_payload_types(world: World) -> None:
    """Opus has a clock of 48 kHz and G.711 one of 8 kHz; so have their telephone events."""
    a, b = await bridged(world, "rfc2833", "rfc2833", a_codec="OPUS", b_codec="PCMA")
    a_remote, b_remote = a.open().remote, b.open().remote
    assert a_remote is not None and b_remote is not None
    assert (a_remote.clock_rate, b_remote.clock_rate) == (48_000, 8_000)
    assert a_remote.dtmf_payload_type != b_remote.dtmf_payload_type
    press(a, KEYS, "rfc2833")
    press(b, "42", "rfc2833")
    assert await eventually(lambda: len(b.digits) >= len(KEYS) and len(a.digits) >= 2), (a.digits, b.digits)
    assert not await eventually(lambda: len(b.digits) + len(a.digits) > len(KEYS) + 2, 0.6)
    assert (b.digits, a.digits) == (KEYS, "42")
    reported = [
        json.loads(event.body)["data"] for event in world.records.events if event.event == "call.dtmf"
    ]
    assert len(reported) == len(KEYS) + 2
    assert all(100 <= digit["duration_ms"] <= 220 for digit in reported), reported
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
